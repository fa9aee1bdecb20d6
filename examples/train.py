#!/usr/bin/env python3
"""Train a small neural network on two spirals, with nothing but Python.

    gpuwatch run -- python3 examples/train.py

It needs no GPU and no package, computes for about half a minute, and prints what training
scripts print, so that it shows what gpuwatch does on any machine.
"""

import argparse
import math
import random

HIDDEN = 64
BATCH = 256


def spirals(rng, count):
    """Points on two interleaved spirals, each with the spiral (0 or 1) that it lies on."""
    points = []
    for i in range(count):
        label = i % 2
        turn = rng.random()
        angle = 3 * math.pi * turn + math.pi * label
        x = turn * math.cos(angle) + rng.gauss(0, 0.02)
        y = turn * math.sin(angle) + rng.gauss(0, 0.02)
        points.append(((x, y), label))
    return points


class Network:
    """Two inputs, one hidden layer of tanh, one sigmoid output."""

    def __init__(self, rng):
        self.weights = [[rng.gauss(0, 2), rng.gauss(0, 2)] for _ in range(HIDDEN)]
        self.biases = [rng.gauss(0, 1) for _ in range(HIDDEN)]
        self.out = [rng.gauss(0, 0.3) for _ in range(HIDDEN)]
        self.out_bias = 0.0

    def forward(self, point):
        x, y = point
        hidden = [math.tanh(w[0] * x + w[1] * y + b) for w, b in zip(self.weights, self.biases)]
        score = sum(o * h for o, h in zip(self.out, hidden)) + self.out_bias
        return hidden, 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))

    def step(self, batch, rate):
        """One step of gradient descent; returns the mean loss before it."""
        loss = 0.0
        scale = rate / len(batch)
        grads = [[0.0] * 4 for _ in range(HIDDEN)]
        grad_bias = 0.0
        for (x, y), label in batch:
            hidden, guess = self.forward((x, y))
            right = guess if label else 1 - guess
            loss -= math.log(max(right, 1e-12))
            error = guess - label
            grad_bias += error
            for grad, out, h in zip(grads, self.out, hidden):
                back = error * out * (1 - h * h)
                grad[0] += back * x
                grad[1] += back * y
                grad[2] += back
                grad[3] += error * h
        for i, grad in enumerate(grads):
            self.weights[i][0] -= scale * grad[0]
            self.weights[i][1] -= scale * grad[1]
            self.biases[i] -= scale * grad[2]
            self.out[i] -= scale * grad[3]
        self.out_bias -= scale * grad_bias
        return loss / len(batch)


def accuracy(network, points):
    hits = sum((network.forward(point)[1] > 0.5) == bool(label) for point, label in points)
    return hits / len(points)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000, help="steps in an epoch")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    rng = random.Random(args.seed)
    train, test = spirals(rng, 4096), spirals(rng, 512)
    network = Network(rng)
    for epoch in range(1, args.epochs + 1):
        print(f"Epoch {epoch}/{args.epochs}")
        seen = []
        for step in range(1, args.steps + 1):
            seen.append(network.step(rng.sample(train, BATCH), rate=2.0))
            if step % 20 == 0 or step == args.steps:
                recent = seen[-20:]
                print(f"step {step}/{args.steps} loss {sum(recent) / len(recent):.4f}")
        print(f"Epoch {epoch}/{args.epochs} done, test accuracy {accuracy(network, test):.3f}")


if __name__ == "__main__":
    main()
