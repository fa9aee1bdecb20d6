"""Computes on the simulated GPU for so many samples, holds it for so many, then exits with a code.

    busy_then_idle.py BUSY IDLE CODE

It counts the samples that gpuwatch records, and so takes the time that those take.
"""

import os
import sys
import time

import fake_gpu

SAMPLES = os.path.join(os.environ["GPUWATCH_RUN_DIR"], "samples.csv")


def recorded():
    try:
        with open(SAMPLES) as file:
            return sum(1 for _ in file)
    except FileNotFoundError:
        return 0


def wait(samples):
    end = recorded() + samples
    while recorded() < end:
        time.sleep(0.01)


busy, idle, code = map(int, sys.argv[1:])
print("\033[31m<script>document.title = 'taken over'</script>\033[0m", flush=True)
print("10 %\r20 %\r<img src=x onerror=\"document.title = 'taken over'\"> & \"quotes\"", flush=True)
wait(2)
fake_gpu.hold(0, 6144)
for epoch in range(2):
    for step in range(busy // 2):
        fake_gpu.use(0, 90, 40)
        print(f"Epoch {epoch + 1}/2 step {step + 1}/{busy // 2} loss: {2.5 / (step + 1 + epoch * 9):.4f}", flush=True)
        wait(1)
fake_gpu.use(0, 0, 0)
wait(idle)
sys.exit(code)
