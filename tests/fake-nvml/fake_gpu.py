"""What a test script holds and uses on the simulated GPUs.

    import fake_gpu
    fake_gpu.hold(0, 6144)          # 6 GiB on the first visible GPU
    fake_gpu.use(0, 87, 40)         # 87 % of its SM time, 40 % of its memory time
    fake_gpu.release(0)             # give it back; release() gives everything back

Standard library only. GPUs are numbered as CUDA numbers them for this process: with
CUDA_VISIBLE_DEVICES=2,3 GPU 0 is the machine's (NVML's) number 2. That holds where the
variable is a list of integers; a MIG device's UUID stands for that device (FAKE_GPU_DEVICE may
give it, where the variable names it otherwise); otherwise (unset, other UUIDs) the number is the machine's own. A number
that CUDA_VISIBLE_DEVICES doesn't reach raises IndexError, like a CUDA error would.

Each process writes only its own file, `$FAKE_NVML_SCENARIO.d/<pid>.json`, by rename. It
stops counting when the process ends, however it ends. After fork() the child starts with
nothing. Without FAKE_NVML_SCENARIO every function does nothing.
"""

import json
import os

_mine = {"pid": None, "gpus": {}}


def hold(gpu, mib):
    """This process now holds `mib` MiB on the GPU."""
    _share(gpu)["mib"] = int(mib)
    _write()


def use(gpu, sm_pct, mem_pct=0):
    """This process now uses this share of the GPU's SM and memory time, in percent."""
    share = _share(gpu)
    share["sm"] = int(sm_pct)
    share["mem"] = int(mem_pct)
    _write()


def release(gpu=None):
    """This process no longer holds or uses anything on the GPU, or on any."""
    _own()
    if gpu is None:
        _mine["gpus"] = {}
    else:
        _mine["gpus"].pop(_index(gpu), None)
    _write()


def _own():
    """Forgets what a parent held: its file isn't ours."""
    if _mine["pid"] != os.getpid():
        _mine["pid"] = os.getpid()
        _mine["gpus"] = {}


def _share(gpu):
    _own()
    index = _index(gpu)
    return _mine["gpus"].setdefault(index, {"mib": 0, "sm": 0, "mem": 0, **_part(index)})


def _mig():
    """The scenario's MIG device that CUDA_VISIBLE_DEVICES names: its GPU and its ids."""
    name = os.environ.get("FAKE_GPU_DEVICE") or os.environ.get("CUDA_VISIBLE_DEVICES", "")
    name = name.split(",")[0]
    if not name.startswith("MIG-"):
        return None
    with open(os.environ["FAKE_NVML_SCENARIO"], encoding="utf-8") as file:
        gpus = json.load(file)["gpus"]
    for index, gpu in enumerate(gpus):
        for device in (gpu.get("mig") or {}).get("devices", ()):
            if device and device["uuid"] == name:
                return index, {"gi": device["gi"], "ci": device["ci"]}
    return None


def _part(index):
    mig = _mig()
    return mig[1] if mig and mig[0] == index else {}


def _index(gpu):
    """The NVML index of a CUDA ordinal."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    mig = _mig()
    if mig:
        return mig[0]
    if visible is None:
        return int(gpu)
    try:
        listed = [int(entry) for entry in visible.split(",")] if visible else []
    except ValueError:
        return int(gpu)
    # CUDA's list ends at the first negative entry.
    for place, entry in enumerate(listed):
        if entry < 0:
            listed = listed[:place]
            break
    if not 0 <= int(gpu) < len(listed):
        raise IndexError(
            "GPU %s: CUDA_VISIBLE_DEVICES=%r shows %d" % (gpu, visible, len(listed))
        )
    return listed[int(gpu)]


def _start_time(pid):
    """When the process was started, in ticks since boot: field 22 of its stat file."""
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
        return int(stat.read().rpartition(")")[2].split()[19])


def _write():
    scenario = os.environ.get("FAKE_NVML_SCENARIO")
    if not scenario:
        return
    folder = scenario + ".d"
    os.makedirs(folder, exist_ok=True)
    pid = os.getpid()
    path = os.path.join(folder, "%d.json" % pid)
    said = {
        "pid": pid,
        "start": _start_time(pid),
        "gpus": {str(gpu): share for gpu, share in _mine["gpus"].items()},
    }
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump(said, file)
    os.replace(path + ".tmp", path)
