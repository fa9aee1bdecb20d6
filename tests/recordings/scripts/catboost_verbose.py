"""
framework: catboost
packages: [catboost, numpy]
style: 'CatBoostClassifier.fit(verbose=20): "20:\tlearn: 0.53\ttest: 0.55\tbest: 0.55 (20)\ttotal: 1.2s\tremaining: 3.4s"'
shown: step (iteration, 0-based, no total) learn and test loss, elapsed and remaining time
note: 'The last line is iteration 399 (of 400, counted from 0; the total is not displayed), with its learn loss, remaining 0us; then bestTest and bestIteration.'
"""
import json, os, time
import numpy as np
from catboost import CatBoostClassifier


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


class Truth:
    def after_iteration(self, info):
        if (info.iteration - 1) % 20 == 0 or info.iteration == 400:
            truth(event="mid", step=info.iteration - 1, loss=info.metrics["learn"]["Logloss"][-1])
        return True


rng = np.random.default_rng(0)
x = rng.normal(size=(60000, 60))
y = (x[:, 0] * x[:, 1] + x[:, 2] + rng.normal(size=60000) * 0.5 > 0).astype(int)
model = CatBoostClassifier(iterations=400, learning_rate=0.05, depth=6, loss_function="Logloss", random_seed=1,
                           thread_count=1, allow_writing_files=False)
model.fit(x[:50000], y[:50000], eval_set=(x[50000:], y[50000:]), verbose=20, callbacks=[Truth()], use_best_model=False)
