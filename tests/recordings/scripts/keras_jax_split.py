"""
framework: keras (jax backend)
packages: [keras, jax]
env: {KERAS_BACKEND: jax}
style: model.fit(validation_split=0.2, verbose="auto") with the JAX backend
shown: epoch epochs step steps percent-like bar loss accuracy; val_loss and val_accuracy at the end of an epoch
note: Epoch 5/5, 50/50, with loss and val_loss.
"""
import json, os, time
import keras
import numpy as np


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


class Truth(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch + 1

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.03)
        if (batch + 1) % 10 == 0:
            truth(event="mid", epoch=self.epoch, epochs=5, step=batch + 1, steps=50, loss=float(logs["loss"]))

    def on_epoch_end(self, epoch, logs=None):
        truth(event="epoch_end", epoch=epoch + 1, epochs=5, step=50, steps=50, loss=float(logs["loss"]), val_loss=float(logs["val_loss"]))


keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(2000, 20)).astype("float32")
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype("int32")
model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(2, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=5, batch_size=32, validation_split=0.2, callbacks=[Truth()])
