"""A training with two workers of PyTorch's DataLoader, all of which somebody stops."""

import time

import fake_gpu
import torch
from torch.utils.data import DataLoader
from word import said

torch.set_num_threads(1)
fake_gpu.hold(0, 20480)
fake_gpu.use(0, 95, 45)
step = 0
while not said("end"):
    for batch in DataLoader(torch.rand(4000, 8), batch_size=4, num_workers=2):
        step += 1
        print(f"step {step}/100000 loss {batch.mean().item():.4f}", flush=True)
        time.sleep(0.1)
        if said("end"):
            break
