"""
framework: trl
packages: [trl, transformers, accelerate, datasets, torch]
style: "TRL SFTTrainer (axolotl prints the same): tiny random Llama, 2 epochs, gradient accumulation 2, logging_steps=10, eval every 20 steps; dict log lines with entropy, num_tokens, mean_token_accuracy between redraws of the tqdm bar"
synthetic: false
outcome: ok
shown: step/total percent eta it/s (tqdm); dict logs with loss grad_norm learning_rate entropy num_tokens mean_token_accuracy epoch; map/tokenize bars before; eval dicts; train_runtime summary
note: '240/240 (100%), epoch 3, last logged loss 0.3026, the run''s mean train_loss 1.346; bars of dataset preparation (examples/s) come before.'
"""
import json, os, random, time

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from trl import SFTConfig, SFTTrainer

random.seed(6)
torch.manual_seed(6)


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


class Log(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        truth("mid", step=state.global_step, steps=state.max_steps, epoch=state.epoch)

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            truth("log", step=state.global_step, steps=state.max_steps, epoch=logs["epoch"], loss=float(logs["loss"]))


words = [f"w{i}" for i in range(250)]
vocab = {w: i for i, w in enumerate(["<pad>", "<s>", "</s>", "<unk>"] + words)}
tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>")
model = LlamaForCausalLM(LlamaConfig(vocab_size=len(vocab), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                     num_key_value_heads=2, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2))


def texts(n):
    return Dataset.from_dict({"text": [" ".join(words[(i * 7 + k * (1 + i % 3)) % 250] for k in range(60)) for i in range(n)]})


args = SFTConfig(output_dir="out", num_train_epochs=3, per_device_train_batch_size=4, gradient_accumulation_steps=2, learning_rate=2e-3,
                 logging_steps=10, eval_strategy="steps", eval_steps=60, save_strategy="no", max_length=64, report_to="none",
                 gradient_checkpointing=False, bf16=False, seed=6)
trainer = SFTTrainer(model=model, args=args, train_dataset=texts(640), eval_dataset=texts(64), processing_class=tokenizer, callbacks=[Log()])
trainer.train()
