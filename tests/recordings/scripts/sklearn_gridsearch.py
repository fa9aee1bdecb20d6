"""
framework: scikit-learn
packages: [scikit-learn, numpy]
style: 'GridSearchCV(verbose=3): "Fitting 3 folds for each of 8 candidates, totalling 24 fits", "[CV 1/3] END alpha=..., hidden_layer_sizes=...;, score=0.9 total time=   0.5s"'
shown: 'fold of folds per fit ([CV 2/3]), score and time of each fit; the total number of fits once at the beginning; neither a counter of fits nor a loss'
note: 'The last line is [CV 3/3] END of the 8th candidate: fold 3 of 3. A person would have to count lines to know that 24 of 24 fits are done.'
"""
import json, os, time, warnings
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier

warnings.filterwarnings("ignore")


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


fits = 0


class Model(MLPClassifier):
    def fit(self, x, y):
        global fits
        super().fit(x, y)
        fits += 1
        truth(event="mid", step=fits, steps=24, loss=float(self.loss_))
        return self


rng = np.random.default_rng(0)
x = rng.normal(size=(1500, 20))
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(int)
grid = {"alpha": [1e-4, 1e-3, 1e-2, 1e-1], "hidden_layer_sizes": [(32,), (64, 32)]}
search = GridSearchCV(Model(max_iter=150, tol=0, random_state=0), grid, cv=3, refit=False, verbose=3)
search.fit(x, y)
print("best:", search.best_params_, "score %.3f" % search.best_score_)
