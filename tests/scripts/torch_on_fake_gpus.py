"""PyTorch whose lowest level is replaced by one of N GPUs that notes what limit it is given.

    torch_on_fake_gpus.py GPUS MIB CODE...

CODE is run line by line after the import; what was noted is printed as JSON at the end.
"""

import inspect
import json
import sys
from types import SimpleNamespace

import torch

gpus, mib = int(sys.argv[1]), int(sys.argv[2])
noted = []
now = {"device": 0, "initialised": 0}


def init():
    now["initialised"] += 1


def limit(fraction, device):
    noted.append([device, round(fraction, 6)])
    now["device"] = device  # as the real one may


def use(device):
    torch.cuda._lazy_init()  # as the real one does
    now["device"] = device


low = torch._C
low._cuda_init = init
low._cuda_getDeviceCount = lambda: gpus
low._cuda_getDevice = lambda: now["device"]
low._cuda_setDevice = use
low._cuda_setMemoryFraction = limit
torch.cuda.device_count = lambda: gpus
torch.cuda._check_stray_context = lambda device: None
properties = SimpleNamespace(total_memory=mib << 20, major=9, minor=0, name="NVIDIA H200")
torch.cuda.get_device_properties = lambda device: properties

before = {"initialised": now["initialised"], "loader": type(torch.__loader__).__name__}
before["source"] = inspect.getsource(torch.cuda.set_device).startswith("def set_device")
for line in sys.argv[3:]:
    exec(line)
print(json.dumps({"before": before, "noted": noted, "device": now["device"]}))
