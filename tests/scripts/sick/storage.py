"""storage.py LIBRARY: a training whose next read never comes back.

What waits for dead storage is in state D. So is who waits for a child of vfork(2), which the
library makes: its parent goes on when there is the file `on`.
"""

import ctypes
import sys
import time

import fake_gpu
from word import answer, said

read_of_dead_storage = ctypes.CDLL(sys.argv[1]).read_of_dead_storage
fake_gpu.hold(0, 20480)
fake_gpu.use(0, 95, 45)
step = 0
while not said("end"):
    step += 1
    print(f"step {step}/100000 loss {1 / step:.4f}", flush=True)
    if said("hang") and not said("on"):
        fake_gpu.use(0, 0, 0)
        answer("hung", step)
        read_of_dead_storage()
        fake_gpu.use(0, 95, 45)
    time.sleep(0.1)
