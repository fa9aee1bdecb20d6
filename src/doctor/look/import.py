# Imports a framework for good and says which GPUs it sees. The name is the only argument.
import sys, json
name = sys.argv[1]
if name == "torch":
    import torch
    devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    if not devices:
        try:
            torch.cuda.init()  # it says why not
        except Exception as e:
            sys.stderr.write("\n%s\n" % e)
elif name == "tensorflow":
    import tensorflow
    devices = [d.name for d in tensorflow.config.list_physical_devices("GPU")]
else:
    import jax
    devices = [str(d) for d in jax.devices() if d.platform in ("gpu", "cuda")]
sys.stdout.write("\ngpuwatch-doctor:" + json.dumps({"devices": devices}) + "\n")
