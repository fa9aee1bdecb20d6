# Says what is installed in the interpreter that runs it, without importing any of it. Written for
# every Python since 2.7, because any may be asked; nothing is written to disk.
import sys
sys.path = [p for p in sys.path if p]  # not the working directory: a json.py there isn't ours
import os, re, glob, json
said = {"executable": sys.executable or "", "version": list(sys.version_info[:3]), "prefix": sys.prefix,
        "blind": False, "dists": {}, "libraries": {}}
try:
    from importlib import metadata
except ImportError:
    metadata = None
    said["blind"] = True
NAMES = """tensorflow tensorflow-gpu tensorflow-cpu tensorflow-cpu-aws intel-tensorflow tf-nightly tf-nightly-cpu
tensorflow-rocm torch jax jaxlib jax-cuda11-plugin jax-cuda11-pjrt jax-cuda12-plugin jax-cuda12-pjrt
jax-cuda13-plugin jax-cuda13-pjrt jax-cuda14-plugin jax-cuda14-pjrt jax-rocm60-plugin jax-rocm7-plugin
nvidia-cudnn-cu11 nvidia-cudnn-cu12 nvidia-cudnn-cu13 nvidia-cuda-runtime-cu11 nvidia-cuda-runtime-cu12
nvidia-cuda-runtime nvidia-cublas-cu11 nvidia-cublas-cu12 nvidia-cublas""".split()
found = {}
for name in NAMES if metadata else []:
    try:
        found[name] = metadata.distribution(name)
        said["dists"][name] = found[name].version
    except Exception:
        pass

def read(dist, path):
    try:
        with open(str(found[dist].locate_file(path)), "rb") as f:
            return f.read(200000).decode("utf-8", "replace")
    except Exception:
        return None

def value(text, pattern):
    hit = re.search(pattern, text or "", re.M)
    return hit.group(1) if hit else None

text = read("torch", "torch/version.py") if "torch" in found else None
said["torch_cuda"] = value(text, r"^cuda\b[^=\n]*=\s*['\"]([^'\"]+)")
said["torch_without_cuda"] = bool(value(text, r"^cuda\b[^=\n]*=\s*(None)"))
said["torch_hip"] = value(text, r"^hip\b[^=\n]*=\s*['\"]([^'\"]+)")
for name in NAMES[:8]:
    if name in found:
        text = read(name, "tensorflow/python/platform/build_info.py")
        built = value(text, r"['\"]is_cuda_build['\"],\s*(True|False)")
        said["tf_cuda_build"] = {"True": True, "False": False}.get(built)
        said["tf_cuda"] = value(text, r"['\"]cuda_version['\"],\s*['\"]([^'\"]+)")
        said["tf_cudnn"] = value(text, r"['\"]cudnn_version['\"],\s*['\"]([^'\"]+)")
        break
folders = [os.path.join(sys.prefix, "lib")]
for path in sys.path:
    folders += glob.glob(os.path.join(path, "nvidia", "*", "lib")) + [os.path.join(path, "torch", "lib")]
for folder in folders:
    for path in glob.glob(os.path.join(folder, "libcudart*.so*")) + glob.glob(os.path.join(folder, "libcudnn.so*")):
        said["libraries"].setdefault(os.path.basename(path), folder)
sys.stdout.write("\ngpuwatch-doctor:" + json.dumps(said) + "\n")
