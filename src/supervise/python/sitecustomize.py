"""Put on PYTHONPATH by `gpuwatch run --mem-limit`, so that every Python of the job reads it at its
start. It waits for TensorFlow or PyTorch to be imported; the rest is in limits.py. What would have
been read without it is read as if it were not there. It is short because it costs time at every
start, and written so that every Python since 2.7 understands it.
"""

import os
import sys


class _Finder(object):
    """Finds nothing itself; sees to it that something is done once one of them is imported."""

    wanted = ["tensorflow", "torch"]
    here = os.path.dirname(__file__)

    def find_spec(self, name, path=None, target=None):
        if name not in self.wanted:
            return None
        try:
            with open(os.path.join(self.here, "limits.py")) as file:
                limits = {"__name__": "gpuwatch_limits"}
                exec(compile(file.read(), file.name, "exec"), limits)
        except Exception:
            return None
        return limits["follow"](self, name, path, target)


# The program's path is its own again; its children find us by PYTHONPATH.
sys.path[:] = [entry for entry in sys.path if entry != _Finder.here]
# Kept, or an old Python would take our names away at once.
_Finder.kept = sys.modules.pop("sitecustomize", None)
if sys.version_info >= (3, 6) and os.environ.get("GPUWATCH_PYTHON_MEM_LIMIT"):
    sys.meta_path.insert(0, _Finder())

# The program's own one, or the error that there is none, which `site` expects.
import sitecustomize  # noqa: E402, F401
