"""
framework: torch.utils.tensorboard
packages: [torch, tensorboard]
style: prints nothing at all; scalars go to a TensorBoard event file only
shown: nothing
note: Nothing is displayed; progress is only in the event file (see events/torch_summarywriter).
"""
import json, os, time
import torch
from torch.utils.tensorboard import SummaryWriter


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


torch.manual_seed(0)
writer = SummaryWriter("runs/demo")
model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
step = 0
for epoch in range(5):
    for _ in range(40):
        x = torch.randn(64, 10)
        loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        writer.add_scalar("train/loss", loss.item(), step)
        step += 1
        time.sleep(0.05)
    with torch.no_grad():
        x = torch.randn(256, 10)
        val_loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).item()
    writer.add_scalar("val/loss", val_loss, step - 1)
    writer.add_scalar("epoch", epoch, step - 1)
    writer.add_scalar("lr", scheduler.get_last_lr()[0], epoch)
    scheduler.step()
    truth(event="epoch_end", epoch=epoch, epochs=5, step=step - 1, loss=loss.item())
writer.close()
