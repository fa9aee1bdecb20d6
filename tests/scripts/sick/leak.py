"""leak.py EPOCH_S: a training that keeps a tensor of each step, so that its memory grows."""

import sys
import time

import fake_gpu
from word import said

epoch_s = float(sys.argv[1])
STEPS = 10
for epoch in range(1, 1000):
    for step in range(1, STEPS + 1):
        # Within an epoch memory comes and goes.
        fake_gpu.hold(0, 20480 + 256 * epoch + 300 * step)
        fake_gpu.use(0, 95, 45)
        print(f"epoch {epoch}/1000 step {step}/{STEPS} loss {1 / (epoch * step):.4f}", flush=True)
        time.sleep(epoch_s / STEPS)
        if said("end"):
            sys.exit()
