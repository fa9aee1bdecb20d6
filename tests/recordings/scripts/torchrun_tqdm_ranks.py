"""
framework: pytorch DDP (gloo, torchrun) and tqdm
packages: [torch, tqdm]
command: python -m torch.distributed.run --standalone --nproc_per_node=2 train.py
style: 'two ranks, each with a tqdm bar of its own on the same line: "[rank 1] epoch 2/3:  45%|####5     | 18/40 [...]", postfix loss'
shown: rank epoch epochs percent step steps loss of either rank, whichever drew last
note: Both ranks at epoch 3/3, 100%, 40/40; the loss is that of the rank that drew last.
"""
import json, os, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(rank + 1)
    for epoch in range(1, 4):
        bar = tqdm(range(1, 41), desc=f"[rank {rank}] epoch {epoch}/3")
        for step in bar:
            x = torch.randn(32, 10)
            loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.08)
            bar.set_postfix(loss=f"{loss.item():.4f}")
            if rank == 0 and step % 5 == 0:
                truth(event="mid", epoch=epoch, epochs=3, step=step, steps=40, loss=loss.item())
    dist.destroy_process_group()


main()
