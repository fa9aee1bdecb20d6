"""
framework: tensorboardX
packages: [tensorboardX, torch]
style: prints nothing at all; scalars, a histogram and a text go to event files only (add_scalars makes sub-folders)
shown: nothing
note: Nothing is displayed; progress is only in the event files (see events/tensorboardx_silent).
"""
import json, os, time
import torch
from tensorboardX import SummaryWriter


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


torch.manual_seed(0)
writer = SummaryWriter("logs/run1")
writer.add_text("config", "lr=0.05, batch size 64")
model = torch.nn.Linear(10, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(1, 121):
    x = torch.randn(64, 10)
    loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.07)
    if step % 10 == 0:
        writer.add_scalar("Loss/train", loss.item(), step)
        writer.add_scalars("compare", {"loss": loss.item(), "norm": model.weight.norm().item()}, step)
        writer.add_histogram("weights", model.weight.detach().numpy(), step)
        truth(event="mid", step=step, loss=loss.item())
writer.close()
