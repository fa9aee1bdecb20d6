"""
framework: skorch
packages: [skorch, torch, scikit-learn]
style: "skorch NeuralNetClassifier.fit: PrintLog's growing table (epoch, train_loss, valid_acc, valid_loss, dur), max_epochs=12, with an EpochScoring column and an LR column"
synthetic: false
outcome: ok
shown: table rows with epoch train_acc train_loss valid_acc valid_loss lr dur; no totals
note: 'epoch 12 (no total shown), train_loss 0.0698, valid_loss 0.0782.'
"""
import json, os, time

import numpy as np
import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, EpochScoring, LRScheduler


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


class Log(Callback):
    def on_epoch_end(self, net, **kwargs):
        truth("epoch_end", epoch=len(net.history), epochs=net.max_epochs, loss=float(net.history[-1, "train_loss"]))

    def on_batch_end(self, net, **kwargs):
        time.sleep(0.012)


torch.manual_seed(8)
rng = np.random.default_rng(8)
x = rng.standard_normal((3200, 20)).astype(np.float32)
y = (x[:, :5].sum(1) > 0).astype(np.int64)
net = NeuralNetClassifier(torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)), criterion=torch.nn.CrossEntropyLoss,
                          max_epochs=12, lr=0.05, batch_size=32,
                          callbacks=[("train_acc", EpochScoring("accuracy", lower_is_better=False, on_train=True, name="train_acc")),
                                     ("lr", LRScheduler("StepLR", step_size=5, gamma=0.5, event_name="lr")), ("log", Log())])
net.fit(x, y)
