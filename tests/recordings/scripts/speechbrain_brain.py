"""
framework: speechbrain
packages: [speechbrain, torch, tqdm]
style: "speechbrain.Brain.fit: tqdm bar over the batches with train_loss=..., a bar for validation, and FileTrainLogger's line per epoch 'epoch: 1, lr: 1.00e-03 - train loss: 2.10 - valid loss: 1.90, valid error: ...' through the INFO logger"
synthetic: false
outcome: ok
shown: bar percent step/steps it/s train_loss=...; validation bar; per-epoch line with epoch (no total), lr, train loss, valid loss; 'speechbrain.utils.epoch_loop - Going into epoch N'
note: 'epoch 5 (no total), bar 40/40, train loss 0.938, valid loss 1.04; a validation bar 10/10 without a label comes after each training bar.'
"""
import json, logging, os, time

import torch
import speechbrain as sb
from speechbrain.utils.epoch_loop import EpochCounter
from speechbrain.utils.train_logger import FileTrainLogger

logging.basicConfig(level=logging.INFO, format="%(name)s - %(message)s")


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


class Classifier(sb.Brain):
    def compute_forward(self, batch, stage):
        if stage == sb.Stage.TRAIN:
            time.sleep(0.05)
        return self.modules.model(batch[0])

    def compute_objectives(self, predictions, batch, stage):
        return torch.nn.functional.cross_entropy(predictions, batch[1])

    def on_fit_batch_end(self, batch, outputs, loss, should_step):
        truth("mid", epoch=self.hparams.counter.current, epochs=5, step=self.step, steps=40, loss=float(loss))

    def on_stage_end(self, stage, stage_loss, epoch=None):
        if stage == sb.Stage.TRAIN:
            self.train_loss = stage_loss
        if stage == sb.Stage.VALID:
            self.hparams.train_logger.log_stats({"epoch": epoch, "lr": 1e-3}, {"loss": self.train_loss}, {"loss": stage_loss})
            truth("epoch_end", epoch=epoch, epochs=5, loss=float(self.train_loss), metrics={"valid_loss": float(stage_loss)})


def loader(n):
    x = torch.randn(n, 40)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x @ teacher).argmax(1)), batch_size=16)


torch.manual_seed(12)
teacher = torch.randn(40, 5)
counter = EpochCounter(5)
brain = Classifier(modules={"model": torch.nn.Sequential(torch.nn.Linear(40, 64), torch.nn.ReLU(), torch.nn.Linear(64, 5))},
                   opt_class=lambda p: torch.optim.Adam(p, 1e-3),
                   hparams={"counter": counter, "train_logger": FileTrainLogger("train_log.txt")}, run_opts={"device": "cpu"})
brain.fit(counter, loader(640), loader(160))
