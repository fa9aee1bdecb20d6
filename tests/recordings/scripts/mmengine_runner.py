"""
framework: mmengine
packages: [mmengine, torch]
style: 'Runner with LoggerHook(interval=10): "11/30 12:00:00 - mmengine - INFO - Epoch(train) [1][50/60]  lr: 1.0e-02  eta: 0:00:12  time: 0.05  data_time: 0.01  loss: 0.43", Epoch(val) lines'
shown: epoch (no total in the line) step steps lr eta time loss; Epoch(val) lines
note: 'Epoch(train) [4][60/60], then Epoch(val) [4][10/10]. The total of 4 epochs is not displayed (only the eta shows how far it is).'
"""
import json, os, time
import torch
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.utils.data import Dataset


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


class Points(Dataset):
    def __init__(self, n, seed):
        self.x = torch.randn(n, 10, generator=torch.Generator().manual_seed(seed))
        self.y = (self.x[:, 0] + self.x[:, 1] > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Model(BaseModel):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))

    def forward(self, x, y, mode):
        out = self.net(x)
        if mode == "loss":
            time.sleep(0.04)
            return {"loss": torch.nn.functional.cross_entropy(out, y)}
        return out, y


class Accuracy(BaseMetric):
    def process(self, data_batch, data_samples):
        score, y = data_samples
        self.results.append({"n": len(y), "good": (score.argmax(1) == y).sum().item()})

    def compute_metrics(self, results):
        return {"accuracy": 100 * sum(r["good"] for r in results) / sum(r["n"] for r in results)}


class Truth(Hook):
    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        if (batch_idx + 1) % 10 == 0:
            truth(event="mid", epoch=runner.epoch + 1, epochs=4, step=batch_idx + 1, steps=60, loss=outputs["loss"].item())


def loader(n, seed):
    return {"batch_size": 16, "num_workers": 0, "dataset": Points(n, seed), "sampler": {"type": "DefaultSampler", "shuffle": False},
            "collate_fn": {"type": "default_collate"}}


runner = Runner(model=Model(), work_dir="work", train_dataloader=loader(960, 0), val_dataloader=loader(160, 1),
                optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.01, "momentum": 0.9}},
                train_cfg={"by_epoch": True, "max_epochs": 4, "val_interval": 1}, val_cfg={}, val_evaluator={"type": Accuracy},
                default_hooks={"logger": {"type": "LoggerHook", "interval": 10}}, custom_hooks=[Truth()], randomness={"seed": 0})
runner.train()
