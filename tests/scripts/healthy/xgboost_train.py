"""XGBoost, with its own lines of the evaluation."""

import time

import fake_gpu
import numpy as np
import xgboost


class Gpu(xgboost.callback.TrainingCallback):
    """As if `device="cuda"` did the work."""

    def before_training(self, model):
        fake_gpu.hold(0, 4096)
        fake_gpu.use(0, 80, 40)
        return model

    def after_iteration(self, model, epoch, evals_log):
        time.sleep(0.1)
        return False


random = np.random.default_rng(1)
x = random.random((20_000, 20), dtype=np.float32)
matrix = xgboost.DMatrix(x, x.sum(1) + random.normal(size=len(x)), nthread=1)
parameters = {"max_depth": 6, "eta": 0.05, "nthread": 1}
xgboost.train(parameters, matrix, 200, evals=[(matrix, "train")], callbacks=[Gpu()])
