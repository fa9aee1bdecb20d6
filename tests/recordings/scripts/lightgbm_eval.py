"""
framework: lightgbm
packages: [lightgbm, scikit-learn, numpy]
style: 'lgb.train with valid_sets and log_evaluation(period=10): "[10]\ttraining''s binary_logloss: ...", [LightGBM] [Info] lines before it'
shown: step (boosting round, no total) training loss and validation metrics
note: '[200] is the last round shown; the number of rounds (200) is not displayed.'
"""
import json, os, time
import lightgbm as lgb
import numpy as np


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


def slow(env):
    time.sleep(0.06)
    if (env.iteration + 1) % 10 == 0:
        truth(event="mid", step=env.iteration + 1, loss=env.evaluation_result_list[0][2])


slow.order = 5
rng = np.random.default_rng(0)
x = rng.normal(size=(4000, 20))
y = (x[:, 0] * x[:, 1] + x[:, 2] + rng.normal(size=4000) * 0.5 > 0).astype(int)
train = lgb.Dataset(x[:3000], y[:3000])
valid = lgb.Dataset(x[3000:], y[3000:], reference=train)
model = lgb.train({"objective": "binary", "metric": ["binary_logloss", "auc"], "num_leaves": 15, "num_threads": 1, "seed": 1},
                  train, num_boost_round=200, valid_sets=[train, valid], valid_names=["training", "valid_1"],
                  callbacks=[slow, lgb.log_evaluation(period=10)])
print("best AUC on the validation set:", round(float(model.best_score["valid_1"]["auc"]), 4))
