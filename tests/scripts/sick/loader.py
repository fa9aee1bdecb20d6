"""PyTorch's DataLoader, deadlocked: its workers are forked while a thread holds a lock.

The dataset keeps a cache under a lock, as many do. In the worker nobody is left who could give
the lock back; the training waits for a batch that never comes.
"""

import threading
import time

import fake_gpu
import torch
from torch.utils.data import DataLoader, Dataset
from word import answer, said, wait

lock = threading.Lock()
cache = {}


class Pictures(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        with lock:
            if index not in cache:
                cache[index] = torch.rand(8)
            return cache[index]


def hold():
    with lock:
        answer("held")
        wait("on")


torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fake_gpu.hold(0, 20480)
for epoch in range(1, 1000):
    if said("hang"):
        threading.Thread(target=hold, daemon=True).start()
        wait("held")
        fake_gpu.use(0, 0, 0)
    else:
        fake_gpu.use(0, 95, 45)
    loader = DataLoader(Pictures(), batch_size=4, num_workers=2)
    batches = iter(loader)
    for step in range(1, len(loader) + 1):
        if said("held"):
            answer("hung")
        batch = next(batches)
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch}/1000 step {step}/10 loss {loss.item():.4f}", flush=True)
        time.sleep(0.1)
