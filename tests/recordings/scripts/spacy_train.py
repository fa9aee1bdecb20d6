"""
framework: spacy
packages: [spacy]
style: 'spacy train: sections in ===, then the table "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE" with a row every 20 steps'
shown: epoch (0-based, no total) step (no total) losses and scores in columns
note: The last row's E and '#' columns are epoch and step 300; then 'Saved pipeline to output directory'. No totals are displayed.
"""
import json, os, random, time
import spacy
from spacy.cli.init_config import init_config
from spacy.cli.train import train
from spacy.tokens import DocBin
from spacy.training import Example


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


@spacy.registry.loggers("console_and_truth.v1")
def console_and_truth():
    console = spacy.registry.loggers.get("spacy.ConsoleLogger.v2")()

    def setup(nlp, stdout, stderr):
        log, finalize = console(nlp, stdout, stderr)

        def both(info):
            time.sleep(0.03)
            log(info)
            if info is not None:
                truth(event="mid", epoch=info["epoch"], step=info["step"], loss=float(info["losses"]["ner"]))
        return both, finalize
    return setup


rng = random.Random(0)
names, places = ["Anna", "Bert", "Clara", "Dora", "Emil", "Fritz"], ["Rome", "Paris", "Oslo", "Lima", "Cairo"]
nlp = spacy.blank("en")
for name, count in (("train", 120), ("dev", 30)):
    docs = DocBin()
    for _ in range(count):
        who, where, other = rng.choice(names), rng.choice(places), rng.choice(["table", "river", "house", "letter"])
        doc = nlp.make_doc(f"{who} went to {where} and saw a {other} .")
        docs.add(Example.from_dict(doc, {"entities": [(0, len(who), rng.choices(["PERSON", "GPE"], [85, 15])[0]), (len(who) + 9, len(who) + 9 + len(where), "GPE")]}).reference)
    docs.to_disk(f"{name}.spacy")
config = init_config(lang="en", pipeline=["ner"], optimize="efficiency")
config["training"].update(max_steps=300, eval_frequency=20, patience=0, max_epochs=0)
config["training"]["logger"] = {"@loggers": "console_and_truth.v1"}
config["components"]["tok2vec"]["model"]["encode"].update(width=32, depth=2)
config["components"]["tok2vec"]["model"]["embed"]["width"] = 32
config.to_disk("config.cfg")
train("config.cfg", "output", overrides={"paths.train": "train.spacy", "paths.dev": "dev.spacy"})
