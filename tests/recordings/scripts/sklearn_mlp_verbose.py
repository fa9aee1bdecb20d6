"""
framework: scikit-learn
packages: [scikit-learn, numpy]
style: 'MLPClassifier(verbose=True, early_stopping=True): "Iteration 12, loss = 0.43" and "Validation score: 0.85" lines'
shown: step (iteration, no total) loss validation score
note: 'Iteration N, loss = ... is the last iteration; then "Validation score did not improve more than tol=..." and it stops. The total is not displayed.'
"""
import json, os, time
import numpy as np
from sklearn.neural_network import MLPClassifier


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


class Model(MLPClassifier):
    def _update_no_improvement_count(self, *args, **kwargs):  # called once an iteration
        time.sleep(0.25)
        truth(event="epoch_end", step=self.n_iter_, loss=float(self.loss_curve_[-1]))
        return super()._update_no_improvement_count(*args, **kwargs)


rng = np.random.default_rng(0)
x = rng.normal(size=(3000, 20))
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(int)
model = Model(hidden_layer_sizes=(64, 32), max_iter=60, verbose=True, early_stopping=True, n_iter_no_change=8, random_state=0)
model.fit(x, y)
print("accuracy: %.3f" % model.score(x, y))
