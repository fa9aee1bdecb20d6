"""rank.py FOLDER [gloo]: one of two ranks that take a step together, ten times a second.

They meet in files of FOLDER, with gloo in a collective of PyTorch. A file in FOLDER is a word:
`hang` (rank 1 doesn't get to its next step until there is `on`), `oom` (rank 1 says so and goes
on), `fail` (rank 1 ends with 7, rank 0 waits to be ended), `alone` (in files they don't wait any
more), `end` (both end).
"""

import os
import signal
import sys
import time

# Last words.
END = 1
FAIL = 2

folder = sys.argv[1]
rank = int(os.environ.get("RANK") or os.environ["SLURM_PROCID"])


def said(word):
    return os.path.exists(os.path.join(folder, word))


class Files:
    """Each rank writes down its step, and waits for the other's. Who has heard a last word doesn't
    wait: the other one may be past its own step already."""

    def __init__(self):
        self.step = 0

    def meet(self, last):
        self.step += 1
        ours = self.path(rank)
        with open(ours + ".new", "w") as file:
            file.write(f"{self.step} {last}")
        os.rename(ours + ".new", ours)
        while True:
            try:
                with open(self.path(1 - rank)) as file:
                    step, theirs = map(int, file.read().split())
            except FileNotFoundError:
                step = theirs = 0
            if step >= self.step or last or theirs or said("alone"):
                return max(last, theirs)
            time.sleep(0.02)

    def path(self, of):
        return os.path.join(folder, f"rank-{of}")


class Gloo:
    """A collective."""

    def __init__(self):
        import torch
        import torch.distributed

        self.torch = torch
        torch.distributed.init_process_group("gloo")

    def meet(self, last):
        together = self.torch.tensor([last])
        self.torch.distributed.all_reduce(together, op=self.torch.distributed.ReduceOp.MAX)
        return together.item()

    def __del__(self):
        self.torch.distributed.destroy_process_group()


def main():
    peers = Gloo() if "gloo" in sys.argv[2:] else Files()
    for step in range(1, 100_000):
        if rank == 1 and said("oom"):
            os.rename(os.path.join(folder, "oom"), os.path.join(folder, "was-oom"))
            print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", flush=True)
        while rank == 1 and said("hang") and not said("on"):
            time.sleep(0.02)
        print(f"epoch 1/1 step {step}/100000", flush=True)
        # Both hear of it at the same step: one that is left in a collective would fail of the
        # other's end, or wait for ever.
        heard = peers.meet(FAIL if said("fail") else END if said("end") else 0)
        if heard == FAIL:
            if rank == 1:
                sys.exit(7)
            signal.pause()
        if heard == END:
            return
        time.sleep(0.1)


main()
