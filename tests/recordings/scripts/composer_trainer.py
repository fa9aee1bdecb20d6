"""
framework: composer
packages: [mosaicml, torch]
style: 'Trainer with its own progress bars: "train          Epoch   0:  100%|#####| 40/40 [00:02<00:00, ..., loss/train/total=0.41]" and "eval           Epoch   0: ..."'
shown: epoch (0-based, no total) percent step steps loss; eval bars of each epoch
note: train Epoch 3 at 100%, 40/40, with loss/train/total; then the eval bar of epoch 3, 5/5. The total of 4 epochs is not displayed.
"""
import json, os, time
import torch
from composer import Callback, Trainer
from composer.models import ComposerClassifier
from torch.utils.data import DataLoader, TensorDataset


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


class Truth(Callback):
    def batch_end(self, state, logger):
        time.sleep(0.05)
        if int(state.timestamp.batch_in_epoch) % 5 == 0:
            truth(event="mid", epoch=int(state.timestamp.epoch), epochs=4, step=int(state.timestamp.batch_in_epoch), steps=40, loss=state.loss.item())


def loader(n, seed):
    x = torch.randn(n, 10, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(x, (x[:, 0] + x[:, 1] > 0).long()), batch_size=32)


torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
trainer = Trainer(model=ComposerClassifier(net, num_classes=2), train_dataloader=loader(1280, 0), eval_dataloader=loader(160, 1),
                  optimizers=torch.optim.SGD(net.parameters(), lr=0.1), max_duration="4ep", device="cpu", callbacks=[Truth()], seed=1)
trainer.fit()
