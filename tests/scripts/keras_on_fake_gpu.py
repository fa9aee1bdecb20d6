#!/usr/bin/env python3
"""keras_on_fake_gpu.py SAW OPTIONS: examples/keras_synthetic.py as if GPU 0 did the work.

While the network fits, the simulated driver is told that this process holds 6 GiB of GPU 0
and uses 85 % of it. What TensorFlow found in its environment, and when the fit began and
ended, is written to the file SAW.
"""

import importlib.util
import json
import os
import pathlib
import sys
import time

import fake_gpu  # in the simulated driver's folder, on PYTHONPATH
import keras

example = pathlib.Path(__file__).parents[2] / "examples" / "keras_synthetic.py"
spec = importlib.util.spec_from_file_location("keras_synthetic", example)
keras_synthetic = importlib.util.module_from_spec(spec)
spec.loader.exec_module(keras_synthetic)

saw = {name: os.environ.get(name) for name in ("TF_FORCE_GPU_ALLOW_GROWTH", "CUDA_VISIBLE_DEVICES")}


class HoldGpu(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        if "FAKE_NVML_SCENARIO" in os.environ:
            fake_gpu.hold(0, 6144)
            fake_gpu.use(0, 85, 40)

    def on_train_batch_end(self, batch, logs=None):
        # The first step also compiles; nothing is shown and nothing fits before it is done.
        saw.setdefault("began", time.time())

    def on_train_end(self, logs=None):
        saw["ended"] = time.time()
        fake_gpu.release()


keras_synthetic.main(sys.argv[2:], callbacks=[HoldGpu()])
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(saw, file)
    file.write("\n")
