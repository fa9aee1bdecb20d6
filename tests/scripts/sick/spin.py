"""Two ranks that train on a GPU each, until the collective in which they meet never ends.

Each then keeps its GPU and a core busy, as who waits in NCCL does.
"""

import os
import signal
import time

import fake_gpu
from word import answer, said


def train(rank):
    fake_gpu.hold(rank, 20480)
    fake_gpu.use(rank, 97, 45)
    step = 0
    while not said("hang"):
        step += 1
        if rank == 0:
            print(f"step {step}/100000 loss {1 / step:.4f}", flush=True)
        time.sleep(0.1)
    fake_gpu.use(rank, 100, 0)
    answer(f"hung-{rank}", step)
    all_reduce()
    fake_gpu.release()


def end(*_):
    os.kill(other, signal.SIGTERM)
    os._exit(128 + signal.SIGTERM)


def all_reduce():
    while not said("on"):
        for _ in range(100_000):
            pass


# Two cores are busy for a minute: others on this machine go first.
os.nice(19)
other = os.fork()
if other:
    signal.signal(signal.SIGTERM, end)
    train(0)
    os.waitpid(other, 0)
else:
    train(1)
