"""One of two ranks of `torchrun`: rank 0 evaluates for a minute, and the other waits in gloo.

What waits there keeps its GPU busy and draws little, as in NCCL.
"""

import json
import os
import time

import fake_gpu
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
torch.set_num_threads(1)
dist.init_process_group("gloo")
fake_gpu.hold(rank, 20480)


def train():
    fake_gpu.use(rank, 95, 45)
    for step in range(1, 101):
        time.sleep(0.1)
        meet()
        if rank == 0:
            print(f"epoch 1/2 step {step}/100 loss {1 / step:.4f}", flush=True)


def machine(*gpus):
    """The GPUs are now like this."""
    path = os.environ["FAKE_NVML_SCENARIO"]
    with open(path + ".new", "w") as file:
        json.dump({"gpus": gpus}, file)
    os.rename(path + ".new", path)


def meet():
    dist.all_reduce(torch.ones(1))


train()
if rank == 0:
    machine({}, {"power_w": 80, "pcie_mb_s": 0})
    fake_gpu.use(0, 0, 0)
    end = time.monotonic() + 65
    while time.monotonic() < end:
        torch.rand(64, 64) @ torch.rand(64, 64)
    print("validation accuracy: 0.734", flush=True)
else:
    fake_gpu.use(1, 100, 0)
meet()
if rank == 0:
    machine({}, {})
train()
dist.destroy_process_group()
