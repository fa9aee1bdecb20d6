"""
framework: nnU-Net style
packages: [numpy]
version: the wording of nnunetv2 2.8.1
synthetic: true
style: '"2026-11-30 12:00:00.123456: Epoch 3", "Current learning rate: 0.0099", "train_loss -0.51", "val_loss -0.48", "Pseudo dice [...]", "Epoch time: 2.1 s", "Yayy! New best EMA pseudo Dice: ..."'
shown: epoch (0-based, no total) train_loss val_loss epoch time
note: Epoch 9 is the last one (of 10, counted from 0; the total is not displayed), with its train_loss; then 'Training done.'
"""
import json, math, os, time
from datetime import datetime
import numpy as np


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


def log(*args):
    print(f"{datetime.fromtimestamp(time.time())}:", *args)


rng = np.random.default_rng(0)
print("\n#######################################################################\nPlease cite the following paper when using nnU-Net:\n"
      "Isensee, F., Jaeger, P. F., Kohl, S. A., Petersen, J., & Maier-Hein, K. H. (2021). nnU-Net: a self-configuring method for deep "
      "learning-based biomedical image segmentation. Nature methods, 18(2), 203-211.\n"
      "#######################################################################\n")
log("Creating new 5-fold cross-validation split...")
log("Desired fold for training: 0")
log("This split has 16 training and 4 validation cases.")
ema = best = None
for epoch in range(10):
    began = time.time()
    log("")
    log(f"Epoch {epoch}")
    log(f"Current learning rate: {np.round(0.01 * (1 - epoch / 10) ** 0.9, decimals=5)}")
    time.sleep(1.2)
    train_loss = np.float32(-0.85 + 1.1 * math.exp(-epoch / 3) + rng.normal() * 0.01)
    val_loss = np.float32(train_loss + 0.05)
    dice = [np.float32(0.9 - 0.8 * math.exp(-epoch / 3) + rng.normal() * 0.02) for _ in range(2)]
    log("train_loss", np.round(train_loss, decimals=4))
    log("val_loss", np.round(val_loss, decimals=4))
    log("Pseudo dice", [np.round(i, decimals=4) for i in dice])
    log(f"Epoch time: {np.round(time.time() - began, decimals=2)} s")
    ema = np.mean(dice) if ema is None else 0.9 * ema + 0.1 * np.mean(dice)
    if best is None or ema > best:
        best = ema
        log(f"Yayy! New best EMA pseudo Dice: {np.round(best, decimals=4)}")
    truth(event="epoch_end", epoch=epoch, epochs=10, loss=float(train_loss))
log("Training done.")
