"""
framework: keras-tuner
packages: [keras-tuner, keras, jax]
env: {KERAS_BACKEND: jax}
style: 'RandomSearch.search: "Search: Running Trial #3", a table of hyperparameters, the Keras bars of the trial, "Trial 3 Complete [00h 00m 02s]", "Best val_accuracy So Far: ..."'
shown: epoch epochs step steps loss accuracy within a trial; the trial's number (the total of trials is not displayed)
note: Trial 4 Complete, after its Epoch 3/3, 20/20.
"""
import json, os, time
import keras
import keras_tuner
import numpy as np


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


class Truth(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch + 1

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.04)
        if (batch + 1) % 5 == 0:
            truth(event="mid", epoch=self.epoch, epochs=3, step=batch + 1, steps=20, loss=float(logs["loss"]))


def build(hp):
    model = keras.Sequential([keras.layers.Dense(hp.Int("units", 16, 64, step=16), activation="relu"), keras.layers.Dense(2, activation="softmax")])
    model.compile(keras.optimizers.Adam(hp.Choice("learning_rate", [1e-2, 1e-3])), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(800, 20)).astype("float32")
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype("int32")
tuner = keras_tuner.RandomSearch(build, objective="val_accuracy", max_trials=4, seed=1, directory="search", project_name="demo")
tuner.search(x[:640], y[:640], epochs=3, validation_data=(x[640:], y[640:]), callbacks=[Truth()])
tuner.results_summary(num_trials=1)
