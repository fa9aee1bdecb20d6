"""train_keras.py COURSE [OPTIONS]: Keras' fit with a validation after each epoch."""

import argparse
import time

import keras
import numpy as np
from course import Course

parser = argparse.ArgumentParser()
parser.add_argument("course")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--validation", type=int, default=20, help="steps of a validation")
parser.add_argument("--step-s", type=float, default=0.05)
parser.add_argument("--first-s", type=float, default=0, help="the first step takes so much longer")
parser.add_argument("--verbose", type=int, default=1)
args = parser.parse_args()
course = Course(args.course)


class Pace(keras.callbacks.Callback):
    """A steady one, whatever else the machine does."""

    def on_train_begin(self, logs=None):
        course.begin()
        self.first = args.first_s

    def on_train_batch_begin(self, batch, logs=None):
        time.sleep(args.step_s + self.first)
        self.first = 0

    def on_train_batch_end(self, batch, logs=None):
        course.step()

    def on_test_batch_end(self, batch, logs=None):
        time.sleep(args.step_s)

    def on_train_end(self, logs=None):
        course.end()


def made_up(steps):
    x = np.random.default_rng(steps).random((steps * 32, 16), dtype=np.float32)
    return x, x.sum(1) > 8


model = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(
    *made_up(args.steps),
    epochs=args.epochs,
    validation_data=made_up(args.validation),
    callbacks=[Pace()],
    verbose=args.verbose,
)
