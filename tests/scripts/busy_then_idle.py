"""Computes on the simulated GPU until so many samples show it, holds it until so many show that, then
exits with a code.

    busy_then_idle.py BUSY IDLE CODE
"""

import csv
import os
import sys
import time

import fake_gpu

SAMPLES = os.path.join(os.environ["GPUWATCH_RUN_DIR"], "samples.csv")


def shown(is_wanted):
    """How many samples of the first GPU are recorded that are as wanted."""
    try:
        with open(SAMPLES) as file:
            rows = [row for row in csv.DictReader(file) if row["gpu"] == "0"]
    except FileNotFoundError:
        return 0
    return sum(1 for row in rows if is_wanted(float(row["job_mem_mib"] or 0), float(row["job_sm_pct"] or 0)))


def wait(samples, is_wanted):
    while shown(is_wanted) < samples:
        time.sleep(0.02)


busy, idle, code = map(int, sys.argv[1:])
print("\033[31m<script>document.title = 'taken over'</script>\033[0m", flush=True)
print("10 %\r20 %\r<img src=x onerror=\"document.title = 'taken over'\"> & \"quotes\"", flush=True)
wait(2, lambda memory, use: memory == 0)
fake_gpu.hold(0, 6144)
fake_gpu.use(0, 90, 40)
for epoch in range(2):
    for step in range(busy // 2):
        wait(epoch * (busy // 2) + step + 1, lambda memory, use: use >= 5)
        print(f"Epoch {epoch + 1}/2 step {step + 1}/{busy // 2} loss: {2.5 / (step + 1 + epoch * 9):.4f}", flush=True)
fake_gpu.use(0, 0, 0)
wait(idle, lambda memory, use: memory > 0 and use < 5)
sys.exit(code)
