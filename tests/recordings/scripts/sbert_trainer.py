"""
framework: sentence-transformers
packages: [sentence-transformers, transformers, accelerate, torch]
style: "SentenceTransformerTrainer as in the library's own examples: logging.basicConfig('%(asctime)s - %(message)s', INFO), tiny random BERT, CoSENTLoss, EmbeddingSimilarityEvaluator every 30 steps, logging every 10"
synthetic: false
outcome: ok
shown: step/total percent eta it/s (tqdm); dict logs with loss grad_norm learning_rate epoch; eval dicts with eval_..._spearman_cosine; evaluator's own INFO lines; train_runtime summary
note: 'step 180/180 (100%), last logged loss 5.807, epoch 3; the closing summary''s train_loss 5.914 is the run''s mean. Evaluation bars (25 batches, batches of the evaluator) lie inside the training bar.'
"""
import json, logging, os, random, time

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers import losses, models
from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator
from tokenizers import Tokenizer, models as tok_models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, TrainerCallback

logging.basicConfig(format="%(asctime)s - %(message)s", datefmt="%Y-%m-%d %H:%M:%S", level=logging.INFO)
random.seed(1)
torch.manual_seed(1)


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


words = [f"w{i}" for i in range(200)]
vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words)}
tokenizer = Tokenizer(tok_models.WordLevel(vocab, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")
fast.save_pretrained("tiny")
BertModel(BertConfig(vocab_size=len(vocab), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128, max_position_embeddings=64)).save_pretrained("tiny")


def pairs(n):
    rows = {"sentence1": [], "sentence2": [], "score": []}
    for _ in range(n):
        a = random.choices(words, k=24)
        b = [w if random.random() < 0.6 else random.choice(words) for w in a]
        rows["sentence1"].append(" ".join(a))
        rows["sentence2"].append(" ".join(b))
        rows["score"].append(len(set(a) & set(b)) / len(set(a)))
    return Dataset.from_dict(rows)


word = models.Transformer("tiny", max_seq_length=32)
model = SentenceTransformer(modules=[word, models.Pooling(64)])
train, dev = pairs(1920), pairs(200)
evaluator = EmbeddingSimilarityEvaluator(dev["sentence1"], dev["sentence2"], dev["score"], name="sts-dev")
args = SentenceTransformerTrainingArguments(
    output_dir="out", num_train_epochs=3, per_device_train_batch_size=32, learning_rate=5e-4, warmup_steps=10,
    eval_strategy="steps", eval_steps=30, logging_steps=10, save_strategy="no", report_to="none", seed=1)
trainer = SentenceTransformerTrainer(model=model, args=args, train_dataset=train, eval_dataset=dev, loss=losses.CoSENTLoss(model),
                                     evaluator=evaluator, callbacks=[Log()])
trainer.train()
