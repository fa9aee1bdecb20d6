"""Tells TensorFlow and PyTorch how much GPU memory they may use, when they first use a GPU. What
the program itself has configured by then stays. Nothing in here may reach the program: what goes
wrong is one line on stderr.
"""

import functools
import os
import sys


def follow(finder, name, path, target):
    """The module as the others find it; when it has been loaded, it is limited."""
    finder.wanted.remove(name)
    spec = None
    try:
        for other in list(sys.meta_path):
            find = getattr(other, "find_spec", None)
            spec = find(name, path, target) if find and other is not finder else None
            if spec is not None:
                break
    finally:
        if spec is None:
            finder.wanted.append(name)
    if spec is not None:
        _follow_loader(finder, name, spec.loader)
    return spec


def _follow_loader(finder, name, loader):
    original = getattr(loader, "exec_module", None)

    def exec_module(module):
        # Nothing of us is left when the module runs.
        del loader.exec_module
        try:
            original(module)
        except BaseException:
            finder.wanted.append(name)
            raise
        if not finder.wanted and finder in sys.meta_path:
            sys.meta_path.remove(finder)
        try:
            {"tensorflow": _tensorflow, "torch": _torch}[name](module)
        except Exception as error:
            _say(name, error)

    try:
        loader.exec_module = exec_module
    except Exception:
        # A loader that can't be followed loads without us.
        pass


def _say(name, error):
    try:
        sys.stderr.write("gpuwatch: --mem-limit is not kept by %s: %s\n" % (name, error))
    except Exception:
        pass


def _limit():
    """MiB or None, share or None, and the GPUs' memory in MiB where it is known."""
    limit, _, totals = os.environ.get("GPUWATCH_PYTHON_MEM_LIMIT", "").partition(":")
    totals = [float(total) for total in totals.split(",") if total]
    if limit.endswith("%"):
        return None, float(limit[:-1]) / 100, totals
    return float(limit), None, totals


def _tensorflow(_module):
    from tensorflow.python.eager import context

    kind = context.Context
    original = kind.ensure_initialized

    # The last moment at which devices can be configured: the program has said by now what it
    # wants. Before that a limit would make its set_memory_growth an error.
    @functools.wraps(original)
    def ensure_initialized(self):
        if self._initialized:
            return original(self)
        kind.ensure_initialized = original
        ours = []
        try:
            ours = _limit_tensorflow(self, context)
        except Exception as error:
            _say("TensorFlow", error)
        try:
            return original(self)
        finally:
            # As the program left it: a second set_memory_growth is no error then.
            for gpu in ours:
                self._virtual_device_map.pop(gpu, None)

    kind.ensure_initialized = ensure_initialized


def _limit_tensorflow(self, context):
    gpus = self.list_physical_devices("GPU")
    visible = [gpu for gpu in gpus if gpu in self.get_visible_devices("GPU")]
    if any(self.get_logical_device_configuration(gpu) for gpu in visible):
        return []  # The program divides its GPUs itself.
    mib, share, totals = _limit()
    if visible and mib is None and not totals:
        raise ValueError("how much memory the GPUs have isn't known; give a size in its place")
    ours = []
    for gpu in visible:
        at = gpus.index(gpu)
        total = totals[at] if len(totals) == len(gpus) else min(totals or [0])
        limit = int(mib if mib is not None else share * total)
        configuration = context.LogicalDeviceConfiguration(memory_limit=limit)
        self.set_logical_device_configuration(gpu, [configuration])
        ours.append(gpu)
    # TensorFlow forgets a wish for growth where there is a limit; its variable it keeps.
    if any(self.get_memory_growth(gpu) for gpu in visible):
        os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    return ours


def _torch(module):
    cuda = getattr(module, "cuda", None)
    if cuda is None:
        return  # Another module of this name.
    limited = set()
    state = {"choosing": False}

    def limit(device):
        """A device that is in use already: to limit one makes a context on it."""
        if device in limited:
            return
        limited.add(device)
        try:
            mib, share, _ = _limit()
            if share is None:
                total = cuda.get_device_properties(device).total_memory / 1048576.0
                share = min(mib / total, 1.0)
            current = module._C._cuda_getDevice()
            cuda.set_per_process_memory_fraction(float(share), device)
            if module._C._cuda_getDevice() != current:
                module._C._cuda_setDevice(current)
        except Exception as error:
            _say("PyTorch", error)

    def initialized():
        try:
            if not state["choosing"]:
                for device in _torch_devices(module):
                    limit(device)
        except Exception as error:
            _say("PyTorch", error)

    original = cuda.set_device

    @functools.wraps(original)
    def set_device(*args, **kwargs):
        # This may be what initialises CUDA, while the current device is still another one.
        outer, state["choosing"] = state["choosing"], True
        try:
            answer = original(*args, **kwargs)
        finally:
            state["choosing"] = outer
        if cuda.is_initialized():
            try:
                limit(module._C._cuda_getDevice())
            except Exception as error:
                _say("PyTorch", error)
        return answer

    # Called when the program first uses CUDA; nothing is initialised before that, or no child
    # could be forked.
    cuda._lazy_call(initialized)
    cuda.set_device = set_device


def _torch_devices(module):
    """Those that this process will use, as far as can be told: one of many ranks uses one."""
    count = module.cuda.device_count()
    if count <= 1:
        return range(count)
    for name in ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID"):
        rank = os.environ.get(name, "")
        if rank.isdigit():
            return [int(rank)] if int(rank) < count else []
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and getattr(processes, "_parent_process", None) is not None:
        return [module._C._cuda_getDevice()]
    return range(count)
