"""
framework: spacy
packages: [spacy]
style: 'spacy train with ConsoleLogger.v3(progress_bar="train"): the table of spacy_train, and between its rows a tqdm bar over all steps ("Last Eval Epoch: 3:  45%|####5     | 90/200 [...]") that is wiped before each row; no bar in a pipe'
shown: 'table: epoch (0-based, no total) step losses scores; bar (terminal only): percent step steps'
note: 'The last row is E 19, step 200; pty: the bar "Last Eval Epoch: 19: 100%" 200/200 below it. pipe: the table only, no totals.'
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
    console = spacy.registry.loggers.get("spacy.ConsoleLogger.v3")(progress_bar="train")

    def setup(nlp, stdout, stderr):
        log, finalize = console(nlp, stdout, stderr)

        def both(info):
            time.sleep(0.05)
            log(info)
            if info is not None:
                truth(event="mid", epoch=info["epoch"], step=info["step"], steps=200, loss=float(info["losses"]["ner"]))
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
config["training"].update(max_steps=200, eval_frequency=20, patience=0, max_epochs=0)
config["training"]["logger"] = {"@loggers": "console_and_truth.v1"}
config["components"]["tok2vec"]["model"]["encode"].update(width=32, depth=2)
config["components"]["tok2vec"]["model"]["embed"]["width"] = 32
config.to_disk("config.cfg")
train("config.cfg", "output", overrides={"paths.train": "train.spacy", "paths.dev": "dev.spacy"})
