"""
framework: pytorch DDP (gloo, torchrun) and logging
packages: [torch]
command: python -m torch.distributed.run --standalone --nproc_per_node=2 train.py
style: 'logging lines of both ranks with a prefix: "[rank0]: 2026-11-30 12:00:00,123 INFO trainer: epoch 2 iter 30/60 loss 0.53 lr 1.0e-02"; rank 0 writes an evaluation line after each epoch'
shown: rank epoch (no total) step steps loss lr; two ranks interleaved
note: '[rank0] and [rank1]: epoch 4 iter 60/60, each with its own loss; a validation line of rank 0.'
"""
import json, logging, os, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"[rank{rank}]: %(asctime)s %(levelname)s %(name)s: %(message)s")
    log = logging.getLogger("trainer")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(rank + 1)
    log.info("model has %d parameters, world size %d", sum(p.numel() for p in model.parameters()), dist.get_world_size())
    for epoch in range(1, 5):
        for step in range(1, 61):
            x = torch.randn(32, 10)
            loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.04)
            if step % 10 == 0:
                log.info("epoch %d iter %d/60 loss %.4f lr %.1e", epoch, step, loss.item(), optimizer.param_groups[0]["lr"])
                if rank == 0:
                    truth(event="mid", epoch=epoch, epochs=4, step=step, steps=60, loss=loss.item())
        dist.barrier()
        if rank == 0:
            with torch.no_grad():
                x = torch.randn(256, 10)
                log.info("epoch %d validation loss %.4f", epoch, torch.nn.functional.mse_loss(model.module(x), x.sum(1, keepdim=True)).item())
    dist.destroy_process_group()


main()
