"""Lightning's Trainer with its bar and a validation."""

import time

import fake_gpu
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(16, 1)

    def on_fit_start(self):
        fake_gpu.hold(0, 20480)
        fake_gpu.use(0, 90, 40)

    def training_step(self, batch, index):
        time.sleep(0.1)
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        time.sleep(0.1)
        self.log("val_loss", torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def batches(steps):
    x = torch.rand(steps * 32, 16)
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=32)


trainer = pl.Trainer(accelerator="cpu", max_epochs=3, logger=False, enable_checkpointing=False)
trainer.fit(Model(), batches(80), batches(20))
