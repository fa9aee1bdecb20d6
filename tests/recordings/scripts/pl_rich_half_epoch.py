"""
framework: pytorch-lightning
packages: [pytorch-lightning, rich, torch]
style: "Lightning Trainer with an explicit RichProgressBar and RichModelSummary, val_check_interval=0.5 (a validation bar twice an epoch), max_epochs=3"
synthetic: false
outcome: ok
shown: 'pty: Epoch 1/2 (0-based current / last index) bar step/steps elapsed • eta it/s train/loss val/loss, below it Validation bar n/10; pipe: only the last epoch''s bar, once, at the end; model summary table'
note: 'Epoch 2/2 (0-based current / last index, i.e. 3 epochs done), 50/50, train/loss 0.158, val/loss 0.202. Pty: the validation bar comes twice an epoch below the training bar, which stands still meanwhile. Pipe: one bar, once, at the end.'
"""
import json, logging, os, time

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import RichModelSummary, RichProgressBar


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.net(x).squeeze(1), y)
        self.log("train/loss", loss, prog_bar=True)
        time.sleep(0.06)
        truth("mid", epoch=self.current_epoch, epochs=3, step=index + 1, steps=50, loss=loss.item())
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val/loss", torch.nn.functional.mse_loss(self.net(x).squeeze(1), y), prog_bar=True)
        time.sleep(0.05)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def loader(n, shuffle):
    g = torch.Generator().manual_seed(n)
    x = torch.randn(n, 16, generator=g)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1)), batch_size=16, shuffle=shuffle)


if __name__ == "__main__":
    for name in ("pytorch_lightning.utilities.rank_zero", "lightning.pytorch.utilities.rank_zero"):  # no advertisements
        logging.getLogger(name).addFilter(lambda record: "Tip:" not in record.getMessage())
    pl.seed_everything(5)
    trainer = pl.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, val_check_interval=0.5, log_every_n_steps=5,
                         callbacks=[RichProgressBar(), RichModelSummary(max_depth=1)])
    trainer.fit(Net(), loader(800, True), loader(160, False))
