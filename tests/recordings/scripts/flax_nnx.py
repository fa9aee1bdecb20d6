"""
framework: jax (flax nnx)
packages: [flax, jax, optax]
style: 'the print lines of the NNX MNIST tutorial: "[train] step: 200, loss: 0.31, accuracy: 90.4" and "[test] step: 200, loss: ..."'
shown: step (0-based, no total) loss accuracy(percent) of training and of test
note: 'Last [train] step: 1199 with its loss and accuracy; a [test] line of the same step follows. No total is displayed.'
"""
import json, os, time
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


class Model(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(20, 64, rngs=rngs)
        self.second = nnx.Linear(64, 2, rngs=rngs)

    def __call__(self, x):
        return self.second(nnx.relu(self.first(x)))


def loss_fn(model, x, y):
    logits = model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), logits


@nnx.jit
def train_step(model, optimizer, metrics, x, y):
    (loss, logits), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, x, y)
    metrics.update(loss=loss, logits=logits, labels=y)
    optimizer.update(model, grads)


@nnx.jit
def eval_step(model, metrics, x, y):
    loss, logits = loss_fn(model, x, y)
    metrics.update(loss=loss, logits=logits, labels=y)


def data(seed, n):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 20)).astype("float32")
    return x, (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype("int32")


model = Model(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
xs, ys = data(0, 1200 * 32)
xt, yt = data(1, 512)
train_steps, eval_every = 1200, 200
for step in range(train_steps):
    train_step(model, optimizer, metrics, xs[step * 32:step * 32 + 32], ys[step * 32:step * 32 + 32])
    time.sleep(0.01)
    if step > 0 and (step % eval_every == 0 or step == train_steps - 1):
        values = metrics.compute()
        print(f"[train] step: {step}, loss: {values['loss']}, accuracy: {values['accuracy'] * 100}")
        truth(event="mid", step=step, loss=float(values["loss"]))
        metrics.reset()
        eval_step(model, metrics, xt, yt)
        values = metrics.compute()
        print(f"[test] step: {step}, loss: {values['loss']}, accuracy: {values['accuracy'] * 100}")
        metrics.reset()
