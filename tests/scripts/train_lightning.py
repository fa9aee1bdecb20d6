"""train_lightning.py COURSE [OPTIONS]: a Lightning module, its Trainer and its bar."""

import argparse
import time

import pytorch_lightning as pl
import torch
from course import Course
from pytorch_lightning.callbacks import RichProgressBar, TQDMProgressBar

parser = argparse.ArgumentParser()
parser.add_argument("course")
parser.add_argument("--bar", choices=["tqdm", "rich"], default="tqdm")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--validation", type=int, default=20, help="steps of a validation")
parser.add_argument("--step-s", type=float, default=0.05)
parser.add_argument("--first-s", type=float, default=0, help="the first step takes so much longer")
args = parser.parse_args()
torch.set_num_threads(1)
course = Course(args.course)


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        )
        self.lossing = torch.nn.BCEWithLogitsLoss()

    def training_step(self, batch, index):
        time.sleep(args.step_s)
        x, y = batch
        loss = self.lossing(self.net(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def on_train_start(self):
        course.begin()
        time.sleep(args.first_s)

    def on_train_batch_end(self, outputs, batch, index):
        course.step()

    def validation_step(self, batch, index):
        time.sleep(args.step_s)
        x, y = batch
        self.log("val_loss", self.lossing(self.net(x), y), prog_bar=True)

    def on_fit_end(self):
        course.end()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def batches(steps, seed):
    x = torch.rand(steps * 32, 16, generator=torch.Generator().manual_seed(seed))
    data = torch.utils.data.TensorDataset(x, (x.sum(1, keepdim=True) > 8).float())
    return torch.utils.data.DataLoader(data, batch_size=32)


trainer = pl.Trainer(
    accelerator="cpu",
    max_epochs=args.epochs,
    logger=False,
    enable_checkpointing=False,
    callbacks=[TQDMProgressBar() if args.bar == "tqdm" else RichProgressBar()],
)
trainer.fit(Model(), batches(args.steps, 1), batches(args.validation, 2))
