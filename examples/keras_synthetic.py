#!/usr/bin/env python3
"""Train a small Keras network on made-up pictures.

    gpuwatch run -- python examples/keras_synthetic.py

Needs `pip install tensorflow` (or `tensorflow-cpu`), downloads no data, and is done within
a minute on two CPU cores.
"""

import argparse

import keras
import numpy as np


def pictures(rng, count, classes=10, size=16):
    """Noisy pictures of bright squares; the class is where the square is."""
    labels = rng.integers(0, classes, count)
    images = rng.normal(0.0, 1.2, (count, size, size, 1)).astype("float32")
    for image, label in zip(images, labels):
        row, column = 3 * (label // 4), 3 * (label % 4)
        image[row : row + 4, column : column + 4] += 1.0
    return images, labels


def network():
    model = keras.Sequential(
        [
            keras.Input((16, 16, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main(argv=None, callbacks=()):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000, help="steps in an epoch")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)

    keras.utils.set_random_seed(args.seed)
    images, labels = pictures(np.random.default_rng(args.seed), 64 * args.steps)
    network().fit(images, labels, batch_size=64, epochs=args.epochs, callbacks=list(callbacks))


if __name__ == "__main__":
    main()
