"""
framework: jax (clu, absl)
packages: [clu, jax, flax, absl-py]
style: 'absl log lines on stderr: "I1130 12:00:00.000000 140 logging_writer.py:48] [60] loss=0.41" of clu.metric_writers and "Setting work unit notes: 33.1 steps/s, 20.0% (60/300), ETA: 0m" of clu.periodic_actions.ReportProgress'
env: {TF_CPP_MIN_LOG_LEVEL: 2, TF_ENABLE_ONEDNN_OPTS: 0}
shown: step steps percent rate ETA (work unit notes, every 2 s); step and loss (every 20 steps)
note: 'The last work unit notes say 100.0% (300/300); the last metric line is of step 300, with its loss.'
"""
import json, os, time
import jax
import jax.numpy as jnp
import numpy as np
from absl import app, logging
from clu import metric_writers, periodic_actions


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


@jax.jit
def update(w, x, y):
    def loss_fn(w):
        return jnp.mean(jnp.logaddexp(0, -y * (jnp.tanh(x @ w["a"]) @ w["b"])))
    loss, grads = jax.value_and_grad(loss_fn)(w)
    return jax.tree.map(lambda p, g: p - 0.2 * g, w, grads), loss


def main(argv):
    logging.set_verbosity(logging.INFO)
    logging.info("JAX process: %d / %d", jax.process_index(), jax.process_count())
    logging.info("JAX local devices: %r", jax.local_devices())
    num_train_steps = 300
    writer = metric_writers.create_default_writer(just_logging=True)
    hooks = [periodic_actions.ReportProgress(num_train_steps=num_train_steps, writer=writer, every_secs=2.0)]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(512, 20)).astype("float32")
    y = np.sign(x[:, 0] * x[:, 1] + x[:, 2]).astype("float32")
    w = {"a": rng.normal(size=(20, 32)).astype("float32") / 4, "b": rng.normal(size=32).astype("float32") / 4}
    logging.info("Starting training loop at step 0.")
    for step in range(1, num_train_steps + 1):
        w, loss = update(w, x, y)
        time.sleep(0.04)
        for hook in hooks:
            hook(step)
        if step % 20 == 0:
            writer.write_scalars(step, {"loss": float(loss), "learning_rate": 0.2})
            truth(event="mid", step=step, steps=num_train_steps, loss=float(loss))
    writer.flush()
    logging.info("Finished training.")


if __name__ == "__main__":
    app.run(main)
