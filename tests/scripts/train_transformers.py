"""train_transformers.py COURSE [OPTIONS]: transformers' Trainer on a tiny model with random
weights and made-up data."""

import argparse
import tempfile
import time

import torch
from course import Course
from transformers import BertConfig, BertForSequenceClassification, Trainer
from transformers import TrainerCallback, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("course")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--validation", type=int, default=20, help="steps of a validation")
parser.add_argument("--step-s", type=float, default=0.05)
parser.add_argument("--first-s", type=float, default=0, help="the first step takes so much longer")
parser.add_argument("--no-bar", action="store_true")
args = parser.parse_args()
torch.set_num_threads(1)
course = Course(args.course)


class Pace(TrainerCallback):
    """A steady one, whatever else the machine does."""

    def on_train_begin(self, *about, **more):
        course.begin()
        time.sleep(args.first_s)

    def on_step_end(self, *about, **more):
        time.sleep(args.step_s)
        course.step()

    def on_prediction_step(self, *about, **more):
        time.sleep(args.step_s)

    def on_train_end(self, *about, **more):
        course.end()


def made_up(steps):
    words = torch.randint(0, 100, (steps * 8, 12), generator=torch.Generator().manual_seed(steps))
    return [{"input_ids": w, "labels": int(w[0]) % 2} for w in words]


config = BertConfig(
    vocab_size=100,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
)
with tempfile.TemporaryDirectory() as folder:
    Trainer(
        model=BertForSequenceClassification(config),
        args=TrainingArguments(
            output_dir=folder,
            num_train_epochs=args.epochs,
            per_device_train_batch_size=8,
            per_device_eval_batch_size=8,
            eval_strategy="epoch",
            logging_steps=20,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=args.no_bar,
        ),
        train_dataset=made_up(args.steps),
        eval_dataset=made_up(args.validation),
        callbacks=[Pace()],
    ).train()
