"""torch_train.py HOW: a PyTorch loop, as many write it.

HOW is one of the functions below.
"""

import logging
import os
import subprocess
import sys
import time

import fake_gpu
import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters())
lossing = torch.nn.BCEWithLogitsLoss()


class Rows(Dataset):
    def __init__(self, batches, costs_s=0):
        self.x = torch.rand(batches * 32, 16, generator=torch.Generator().manual_seed(1))
        self.costs_s = costs_s

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        busy(self.costs_s)
        return self.x[index], (self.x[index].sum() > 8).float()


def busy(seconds):
    """Computes on one core."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        torch.rand(64, 64) @ torch.rand(64, 64)


def gpu(works):
    fake_gpu.hold(0, 20480)
    fake_gpu.use(0, *((90, 40) if works else (0, 0)))


def step(x, y):
    optimizer.zero_grad()
    loss = lossing(model(x).squeeze(1), y)
    loss.backward()
    optimizer.step()
    time.sleep(0.1)
    return loss.item()


def epoch(number, of, batches=60, every=1, **loader):
    """One epoch with a line each so many steps."""
    gpu(True)
    for i, (x, y) in enumerate(DataLoader(Rows(batches), batch_size=32, **loader), 1):
        loss = step(x, y)
        if every and i % every == 0:
            print(f"Epoch [{number}/{of}], Step [{i}/{batches}], Loss: {loss:.4f}", flush=True)
    return loss


def loop():
    for number in range(1, 5):
        epoch(number, 4)


def workers():
    for number in range(1, 5):
        epoch(number, 4, num_workers=2)


def evaluation():
    """On the CPU, on one core, without a word, for longer than any limit of silence."""
    for number in (1, 2):
        epoch(number, 2)
        gpu(False)
        busy(65 if number == 1 else 3)
        print(f"validation accuracy: {0.5 + number / 10:.3f}", flush=True)


def checkpoints():
    """Each epoch 64 MB in four files, and none goes on before they are on disk."""
    for number in range(1, 5):
        epoch(number, 4, batches=40)
        gpu(False)
        for part in range(4):
            with open(f"part-{part}.pt", "wb") as file:
                torch.save({"w": torch.rand(4 << 20), "of": number}, file)
                file.flush()
                os.fsync(file.fileno())
        print("checkpoint saved", flush=True)


def epochs():
    """A line an epoch."""
    for number in range(1, 4):
        loss = epoch(number, 3, batches=100, every=0)
        print(f"Epoch {number}/3 - loss: {loss:.4f}", flush=True)


def sparse():
    """Now and then a line of a logger."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    gpu(True)
    for i, (x, y) in enumerate(DataLoader(Rows(300), batch_size=32), 1):
        loss = step(x, y)
        if i % 100 == 0:
            logging.info("step %d loss %.4f", i, loss)


def rl():
    """The processor plays, then the GPU learns."""
    for iteration in range(1, 8):
        gpu(False)
        busy(3)
        gpu(True)
        loss = [step(torch.rand(32, 16), torch.ones(32)) for _ in range(20)][-1]
        print(f"Iteration {iteration}/7, mean reward {iteration}, loss {loss:.4f}", flush=True)


def compiles():
    """Compilers work for 25 s before the first step, with short blips of the GPU."""
    end = time.monotonic() + 25
    functions = (f"double f{i}(double *x) {{ return x[{i}] * f{i - 1}(x); }}" for i in range(1, 400))
    source = "double f0(double *x) { return *x; }\n" + "\n".join(functions)
    while time.monotonic() < end:
        fake_gpu.hold(0, 2048)
        fake_gpu.use(0, 30, 5)
        time.sleep(0.2)
        fake_gpu.use(0, 0, 0)
        for _ in range(4):
            cc = ["cc", "-O3", "-S", "-x", "c", "-o", os.devnull, "-"]
            subprocess.run(cc, input=source.encode(), check=True)
    for number in (1, 2):
        epoch(number, 2)


globals()[sys.argv[1]]()
