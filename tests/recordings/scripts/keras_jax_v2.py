"""
framework: keras (jax backend)
packages: [keras, jax]
env: {KERAS_BACKEND: jax}
style: 'model.fit(verbose=2, validation_freq=3, initial_epoch=4) resumed from epoch 5: one line per epoch, LearningRateScheduler(verbose=1) lines between'
shown: epoch epochs loss mae per epoch (steps 25/25 at the end of the epoch); val_* every third epoch
note: Epoch 16/16, 25/25, with loss and mae. Nothing within an epoch.
"""
import json, os, time
import keras
import numpy as np


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


class Truth(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.03)

    def on_epoch_end(self, epoch, logs=None):
        truth(event="epoch_end", epoch=epoch + 1, epochs=16, step=25, steps=25, loss=float(logs["loss"]))


keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(1000, 20)).astype("float32")
y = x[:, :3].sum(1, keepdims=True)
model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse", metrics=["mae"])
model.fit(x[:800], y[:800], epochs=16, initial_epoch=4, batch_size=32, verbose=2, validation_data=(x[800:], y[800:]), validation_freq=3,
          callbacks=[keras.callbacks.LearningRateScheduler(lambda epoch, lr: lr * 0.95, verbose=1), Truth()])
