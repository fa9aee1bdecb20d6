"""
framework: flair
packages: [flair, torch]
style: 'ModelTrainer: "2026-11-30 12:00:00,123 epoch 1 - iter 10/100 - loss 1.23 - time (sec): 0.9 - samples/sec: 123.4 - lr: 0.1", "EPOCH 1 done: loss ...", DEV lines'
shown: 'epoch (the total only among the parameters before, as max_epochs) step steps (iter 10/100) loss samples/sec lr; dev scores'
note: "epoch 5, iter 50/50 with its loss, then 'EPOCH 5 done: loss ...'; then the final test evaluation."
"""
import json, os, random, time
import flair
from flair.data import Corpus, Sentence
from flair.datasets import FlairDatapointDataset
from flair.embeddings import OneHotEmbeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer
from flair.trainers.plugins import TrainerPlugin


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


class Truth(TrainerPlugin):
    @TrainerPlugin.hook
    def before_training_epoch(self, epoch, **kw):
        self.epoch = epoch

    @TrainerPlugin.hook
    def after_training_batch(self, batch_no, **kw):
        time.sleep(0.04)
        if (batch_no + 1) % 5 == 0:
            truth(event="mid", epoch=self.epoch, epochs=5, step=batch_no + 1, steps=50)


flair.set_seed(1)
rng = random.Random(0)


def sentences(count):
    out = []
    for _ in range(count):
        words = [rng.choice(["Anna", "Bert", "Clara"]), "went", "to", rng.choice(["Rome", "Paris", "Oslo"]), rng.choice(["today", "again"])]
        sentence = Sentence(words)
        sentence[0].add_label("ner", "PER")
        sentence[3].add_label("ner", "LOC")
        out.append(sentence)
    return FlairDatapointDataset(out)


corpus = Corpus(train=sentences(400), dev=sentences(40), test=sentences(40))
tagger = SequenceTagger(hidden_size=32, embeddings=OneHotEmbeddings.from_corpus(corpus, field="text", min_freq=1, embedding_length=16),
                        tag_dictionary=corpus.make_label_dictionary("ner", add_unk=False), tag_type="ner", use_crf=False)
ModelTrainer(tagger, corpus).train("model", learning_rate=0.1, mini_batch_size=8, max_epochs=5, plugins=[Truth()])
