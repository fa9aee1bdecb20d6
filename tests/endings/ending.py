"""Ends in the way that its first argument names; `record.py` records it.

usage: python ending.py NAME, or torchrun --nproc_per_node=2 ending.py NAME
"""

import os
import signal
import sys
import time


def steps(n=3, who=""):
    for step in range(1, n + 1):
        print(f"{who}step {step}/100 loss {1 / step:.4f}", flush=True)
        time.sleep(0.02)


def group():
    """Two ranks on the CPU."""
    import datetime

    import torch.distributed as dist

    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=6))
    return dist, dist.get_rank()


def in_ranks(rank_1):
    import torch

    dist, rank = group()
    for step in range(1, 100):
        value = torch.ones(4)
        dist.all_reduce(value)
        print(f"[rank{rank}] step {step}/100 loss {1 / step:.4f}", flush=True)
        if rank == 1 and step == 3:
            rank_1()


def rank_raises():
    def fail():
        raise ValueError("label 11 is out of range 0..9")

    in_ranks(fail)


def rank_killed():
    in_ranks(lambda: os.kill(os.getpid(), signal.SIGKILL))


def rank_segfaults():
    import ctypes
    import faulthandler

    faulthandler.enable()
    in_ranks(lambda: ctypes.string_at(1))


def rank_exits():
    in_ranks(lambda: os._exit(3))


def rank_disk_full():
    import torch

    in_ranks(lambda: torch.save(torch.zeros(1 << 16), open("/dev/full", "wb", 0)))


def rank_late():
    in_ranks(lambda: time.sleep(30))


def barrier_late():
    import datetime

    dist, rank = group()
    steps(3, f"[rank{rank}] ")
    if rank == 1:
        time.sleep(6)
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=2))


def both_raise():
    dist, rank = group()
    dist.barrier()
    steps(2, f"[rank{rank}] ")
    raise RuntimeError(f"both fail: the config has no 'lr' (rank {rank})")


def child(index):
    steps(2)
    if index == 1:
        raise KeyError("image_id")
    time.sleep(5)


def child_killed(index):
    steps(2)
    if index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(5)


def spawned(function=child):
    import torch.multiprocessing as mp

    mp.spawn(function, nprocs=2)


def spawned_killed():
    spawned(child_killed)


def spawned_unguarded():
    spawned()


class Items:
    def __init__(self, fail):
        self.fail = fail

    def __len__(self):
        return 40

    def __getitem__(self, i):
        import torch

        if i == 24:
            self.fail()
        return torch.zeros(1 << 18)


def load(fail, workers=2):
    import torch.utils.data

    loader = torch.utils.data.DataLoader(Items(fail), batch_size=4, num_workers=workers)
    for i, _ in enumerate(loader):
        print(f"batch {i}/10", flush=True)


def loader_raises():
    def fail():
        raise OSError("cannot identify image file '/data/24.jpg'")

    load(fail)


def loader_segfaults():
    import ctypes

    load(lambda: ctypes.string_at(1))


def loader_shared_memory():
    load(lambda: None)


def no_driver():
    import torch

    steps()
    torch.zeros(1).cuda()


def checkpoint_of_gpu():
    import torch

    steps()
    # What loading a checkpoint that was saved on a GPU comes to.
    torch.serialization.default_restore_location(torch.UntypedStorage(4), "cuda:0")


def disk_full():
    steps()
    with open("/dev/full", "w") as file:
        file.write("checkpoint")


def disk_full_torch():
    import torch

    steps()
    torch.save({"model": torch.zeros(1 << 20)}, "/dev/full")


def permission():
    steps()
    os.setgid(65534)
    os.setuid(65534)
    open("/root/ckpt.pt", "wb")


def memory_error():
    steps()
    bytes(1 << 50)


def numpy_memory():
    import numpy

    steps()
    numpy.ones(1 << 46)


def bus_error():
    import mmap

    steps()
    with open("mapped", "w+b") as file:
        file.truncate(1 << 16)
        data = mmap.mmap(file.fileno(), 1 << 16)
        file.truncate(0)
        data[1 << 15]


def aborts():
    steps()
    os.abort()


def too_many_files():
    import resource

    steps()
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    print([open("/dev/null") for _ in range(100)])


def arguments():
    import argparse

    parser = argparse.ArgumentParser("train.py")
    parser.add_argument("--lr", type=float)
    parser.parse_args(["--learning-rate", "1"])


def exits_with_words():
    steps()
    sys.exit("no checkpoint in runs/7: nothing to resume from")


def thread_fails():
    """The program goes on and ends well."""
    import threading

    def fail():
        raise ConnectionResetError("wandb: connection lost")

    thread = threading.Thread(target=fail, name="uploader")
    thread.start()
    thread.join()
    steps()


def ignored():
    """Noise at the end of a program that ends well."""

    class Loud:
        def __del__(self):
            raise AttributeError("'Loud' object has no attribute 'handle'")

    steps()
    loud = Loud()
    del loud
    import logging

    logging.warning("%d files", "many")
    try:
        raise FileNotFoundError("optional.yaml")
    except FileNotFoundError:
        logging.exception("no optional settings")


def thread_then_fails():
    thread_fails()
    ignored()
    raise ZeroDivisionError("division by zero in the metric")


def fails_then_noise():
    import atexit

    def noise():
        raise BrokenPipeError(32, "Broken pipe")

    class Loud:
        def __del__(self):
            raise AttributeError("'NoneType' object has no attribute 'close'")

    sys.modules["loud"] = Loud()
    atexit.register(noise)
    steps()
    raise LookupError("no class 'Foo' in the registry")


def handled_then_fails():
    steps()
    try:
        {}["a"]
    except KeyError:
        raise TypeError("unsupported operand for the loss")


def tf_too_big():
    import tensorflow as tf

    steps()
    tf.zeros((1 << 22, 1 << 22))


def tf_no_gpu():
    import tensorflow as tf

    steps()
    tf.config.set_soft_device_placement(False)
    with tf.device("/GPU:0"):
        tf.constant(1.0) + tf.constant(2.0)


def tf_disk_full():
    import tensorflow as tf

    steps()
    tf.io.write_file("/dev/full", tf.zeros(1 << 20).numpy().tobytes())


def tf_nan():
    import tensorflow as tf

    tf.debugging.enable_check_numerics()
    steps()
    tf.math.log(tf.constant(-1.0))


def jax_no_gpu():
    import jax

    steps()
    print(jax.devices("cuda"))


def jax_nan():
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_debug_nans", True)
    steps()
    jnp.log(jnp.array(-1.0)).block_until_ready()


def torch_nan():
    import torch

    steps()
    with torch.autograd.detect_anomaly():
        x = torch.tensor([-1.0], requires_grad=True)
        torch.sqrt(x).sum().backward()


if __name__ == "__main__" or sys.argv[1] == "spawned_unguarded":
    globals()[sys.argv[1]]()
