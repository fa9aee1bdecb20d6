"""ranks.py HOW: one of two ranks of `torchrun` that meet in gloo, of which rank 1 stops.

HOW is `sleeps` (it waits for something else), `stopped` (the test stops it), or `gone` (its data
are at their end before the other's, which waits for its word in the store).
"""

import datetime
import os
import sys
import time

import fake_gpu
import torch
import torch.distributed as dist
from word import answer, said



def meet(heard):
    dist.all_reduce(heard)


def next_batch():
    while not said("on"):
        time.sleep(0.1)


how = sys.argv[1]
rank = int(os.environ["RANK"])
torch.set_num_threads(1)
dist.init_process_group("gloo")
fake_gpu.hold(rank, 20480)
fake_gpu.use(rank, 95, 45)
answer(f"pid-{rank}", os.getpid())
step = 0
hangs = 0
while hangs < 2:
    step += 1
    if rank == 0:
        print(f"epoch 1/1 step {step}/100000 loss {1 / step:.4f}", flush=True)
    # Both hear of it at the same step.
    heard = torch.tensor([int(said("hang"))])
    meet(heard)
    hangs = heard.item()
    time.sleep(0.1)

fake_gpu.use(rank, 0, 0)
answer(f"hung-{rank}", step)
if how == "gone":
    if rank == 1:
        os._exit(0)
    store = dist.distributed_c10d._get_default_store()
    store.wait(["part-1-is-saved"], datetime.timedelta(hours=1))
if rank == 1:
    next_batch()
meet(heard)
dist.destroy_process_group()
