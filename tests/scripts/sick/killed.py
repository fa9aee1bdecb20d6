"""killed.py HOW MIB: a worker takes this much memory, more than there is.

HOW is `loader` (PyTorch's DataLoader notices that its worker is gone) or `pool` (Python's own pool
does not, and waits for it).
"""

import multiprocessing
import sys
import time

import fake_gpu
from word import said

how, mib = sys.argv[1], int(sys.argv[2])


def work(takes):
    if takes:
        return len([b"x" * (1 << 20) for _ in range(mib)])
    return 0


def pool():
    with multiprocessing.Pool(1) as workers:
        while True:
            if said("hang"):
                fake_gpu.use(0, 0, 0)
            yield workers.map(work, [said("hang")])


def loader():
    import torch
    from torch.utils.data import DataLoader, Dataset

    torch.set_num_threads(1)

    class Pictures(Dataset):
        def __len__(self):
            return 100_000

        def __getitem__(self, index):
            return work(said("hang"))

    yield from DataLoader(Pictures(), num_workers=1, prefetch_factor=1)


fake_gpu.hold(0, 20480)
fake_gpu.use(0, 95, 45)
for step, _ in enumerate({"pool": pool, "loader": loader}[how](), 1):
    print(f"step {step}/100000 loss {1 / step:.4f}", flush=True)
    time.sleep(0.1)
