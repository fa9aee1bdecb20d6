"""
framework: transformers
packages: [transformers, accelerate, torch]
style: "Seq2SeqTrainer as in run_summarization.py (library log level left at its default): tiny random T5, num_train_epochs=4, logging_steps=10, eval_strategy=epoch with predict_with_generate, print of the final metrics"
synthetic: false
outcome: ok
shown: step/total percent eta it/s (tqdm); dict logs with loss grad_norm learning_rate epoch; evaluation bar; eval dict; train_runtime summary
note: '120/120 (100%), epoch 4, last logged loss 4.581, the run''s mean train_loss 4.752; after the training a lone evaluation bar 10/10 without any label and ''***** eval metrics *****''.'
"""
import json, os, time

import numpy as np
import torch
from transformers import (DataCollatorForSeq2Seq, PreTrainedTokenizerFast, Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config,
                          T5ForConditionalGeneration, TrainerCallback)
from tokenizers import Tokenizer, models, pre_tokenizers

torch.manual_seed(2)
rng = np.random.default_rng(2)


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

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        truth("eval", step=state.global_step, epoch=state.epoch, metrics={"eval_loss": metrics["eval_loss"]})


vocab = {w: i for i, w in enumerate(["<pad>", "</s>", "<unk>"] + [f"w{i}" for i in range(125)])}
tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


class Reverse(torch.utils.data.Dataset):
    def __init__(self, n):
        self.rows = rng.integers(3, 128, (n, 16))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i].tolist()
        return {"input_ids": row + [1], "attention_mask": [1] * 17, "labels": row[:8][::-1] + [1]}


model = T5ForConditionalGeneration(T5Config(vocab_size=128, d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4, decoder_start_token_id=0))


def metrics(prediction):
    guess, labels = prediction.predictions, prediction.label_ids
    width = min(guess.shape[1] - 1, labels.shape[1])
    return {"exact": float((guess[:, 1:width + 1] == labels[:, :width]).mean()), "gen_len": float((guess != 0).sum(1).mean())}


args = Seq2SeqTrainingArguments(
    output_dir="out", num_train_epochs=4, per_device_train_batch_size=16, per_device_eval_batch_size=16, learning_rate=5e-4, logging_steps=10,
    eval_strategy="epoch", save_strategy="no", predict_with_generate=True, generation_max_length=10, report_to="none", seed=2)
trainer = Seq2SeqTrainer(model=model, args=args, train_dataset=Reverse(480), eval_dataset=Reverse(160), processing_class=tokenizer,
                         data_collator=DataCollatorForSeq2Seq(tokenizer, model=model), compute_metrics=metrics, callbacks=[Log()])
result = trainer.train()
trainer.log_metrics("train", result.metrics)
trainer.log_metrics("eval", trainer.evaluate(metric_key_prefix="eval"))
