"""train_torch.py COURSE [OPTIONS]: a PyTorch loop with tqdm, as many write it."""

import argparse
import time

import torch
from course import Course
from tqdm import tqdm

parser = argparse.ArgumentParser()
parser.add_argument("course")
parser.add_argument("--bars", choices=["nested", "each-epoch", "outer"], default="each-epoch")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--validation", type=int, default=20, help="steps of a validation")
parser.add_argument("--step-s", type=float, default=0.05)
parser.add_argument("--first-s", type=float, default=0, help="the first step takes so much longer")
args = parser.parse_args()
torch.set_num_threads(1)
course = Course(args.course)

model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters())
lossing = torch.nn.BCEWithLogitsLoss()


def batches(steps, seed):
    x = torch.rand(steps * 32, 16, generator=torch.Generator().manual_seed(seed))
    data = torch.utils.data.TensorDataset(x, (x.sum(1, keepdim=True) > 8).float())
    return torch.utils.data.DataLoader(data, batch_size=32)


def step(x, y):
    time.sleep(args.step_s)
    optimizer.zero_grad()
    loss = lossing(model(x), y)
    loss.backward()
    optimizer.step()
    course.step()
    return loss.item()


@torch.no_grad()
def validate(bar):
    correct = count = 0
    for x, y in bar:
        time.sleep(args.step_s)
        correct += ((model(x) > 0) == (y > 0.5)).sum().item()
        count += len(y)
    return correct / count


training, validation = batches(args.steps, 1), batches(args.validation, 2)
course.begin()
time.sleep(args.first_s)
epochs = range(1, args.epochs + 1)
if args.bars == "each-epoch":
    for epoch in epochs:
        with tqdm(training, desc=f"Epoch {epoch}/{args.epochs}", unit="batch") as bar:
            for x, y in bar:
                bar.set_postfix(loss=f"{step(x, y):.4f}")
        accuracy = validate(tqdm(validation, desc="Validation", leave=False))
        print(f"Epoch {epoch}: val_acc={accuracy:.3f}")
elif args.bars == "nested":
    with tqdm(epochs, desc="Epochs") as outer:
        for epoch in outer:
            for x, y in tqdm(training, desc="Training", leave=False):
                loss = step(x, y)
            accuracy = validate(tqdm(validation, desc="Validating", leave=False))
            outer.set_postfix(loss=loss, val_acc=accuracy)
else:
    for epoch in tqdm(epochs):
        losses = [step(x, y) for x, y in training]
        accuracy = validate(validation)
        tqdm.write(f"epoch {epoch} train loss {sum(losses) / len(losses):.4f} val acc {accuracy:.3f}")
course.end()
