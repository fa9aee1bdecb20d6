"""keras_fit.py VALIDATION_S: model.fit, with a first validation that takes so long."""

import sys
import time

import fake_gpu
import keras
import numpy as np

validation_s = float(sys.argv[1])
STEPS, TESTS = 100, 20


class Gpu(keras.callbacks.Callback):
    """As if a GPU did the work."""

    def on_train_begin(self, logs=None):
        fake_gpu.hold(0, 20480)

    def on_epoch_begin(self, epoch, logs=None):
        self.validation_s = validation_s if epoch == 0 else 5
        fake_gpu.use(0, 90, 40)

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.1)

    def on_test_begin(self, logs=None):
        fake_gpu.use(0, 60, 30)

    def on_test_batch_end(self, batch, logs=None):
        time.sleep(self.validation_s / TESTS)


def data(batches):
    x = np.random.default_rng(1).random((batches * 32, 16), dtype=np.float32)
    return x, (x.sum(1) > 8).astype(np.float32)


model = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile("adam", loss="binary_crossentropy", metrics=["accuracy"])
x, y = data(STEPS)
# Who validates for long often prints once an epoch.
model.fit(x, y, epochs=2, validation_data=data(TESTS), callbacks=[Gpu()], verbose=2)
