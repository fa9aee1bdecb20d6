"""Put on PYTHONPATH by `gpuwatch run --mem-limit`, so that every Python of the job reads it at its
start. It does nothing but wait for TensorFlow or PyTorch to be imported; limits.py, beside it, then
tells them how much GPU memory they may use. The sitecustomize that would have been read without it
is read as if this one were not there. Kept to words that every Python since 2.7 understands.
"""

import sys


def _gpuwatch():
    import os

    here = os.path.dirname(__file__)
    # The program's path is its own again; its children find us by PYTHONPATH.
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.modules.pop("sitecustomize", None)
    if sys.version_info < (3, 6) or not os.environ.get("GPUWATCH_PYTHON_MEM_LIMIT"):
        return

    class Finder(object):
        """Knows no module; sees to it that something is done once a wanted one is imported."""

        def __init__(self, wanted):
            self.wanted = wanted

        def find_spec(self, name, path=None, target=None):
            if name not in self.wanted:
                return None
            self.wanted.discard(name)
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find and finder is not self else None
                if spec is not None:
                    self.follow(name, spec.loader)
                    return spec
            self.wanted.add(name)
            return None

        def follow(self, name, loader):
            original = getattr(loader, "exec_module", None)

            def exec_module(module):
                del loader.exec_module
                try:
                    original(module)
                except BaseException:
                    self.wanted.add(name)
                    raise
                if not self.wanted and self in sys.meta_path:
                    sys.meta_path.remove(self)
                limit(name, module)

            try:
                loader.exec_module = exec_module
            except Exception:
                # A loader that can't be followed loads without us.
                pass

    def limit(name, module):
        try:
            from importlib.util import module_from_spec, spec_from_file_location

            spec = spec_from_file_location("gpuwatch_limits", os.path.join(here, "limits.py"))
            limits = module_from_spec(spec)
            spec.loader.exec_module(limits)
            limits.apply(name, module)
        except Exception as error:
            try:
                sys.stderr.write("gpuwatch: --mem-limit is not kept by %s: %r\n" % (name, error))
            except Exception:
                pass

    sys.meta_path.insert(0, Finder({"tensorflow", "torch"}))


try:
    _gpuwatch()
except Exception:
    # Whatever it is, the program is not to hear of it.
    pass
del _gpuwatch

# The program's own one, or the error that there is none, which `site` expects.
import sitecustomize  # noqa: E402, F401
