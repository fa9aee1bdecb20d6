"""A training into whose loop somebody has written `breakpoint()`."""

import time

import fake_gpu
from word import answer, said

fake_gpu.hold(0, 20480)
fake_gpu.use(0, 95, 45)
step = 0
while not said("end"):
    step += 1
    print(f"step {step}/100000 loss {1 / step:.4f}", flush=True)
    if said("hang") and not said("hung"):
        fake_gpu.use(0, 0, 0)
        answer("hung", step)
        breakpoint()
        fake_gpu.use(0, 95, 45)
    time.sleep(0.1)
