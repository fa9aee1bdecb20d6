"""TensorFlow that believes in N GPUs until it would make them, and prints what it then asked for.

    tensorflow_on_fake_gpus.py GPUS CODE...

CODE is run line by line after the import. The devices that this build can't make are not made;
the configuration that would have been handed over is printed as JSON.
"""

import json
import os
import sys

import tensorflow as tf
from tensorflow.python.eager import context

count = int(sys.argv[1])
names = [f"/physical_device:GPU:{i}" for i in range(count)]
gpus = [context.PhysicalDevice(name=name, device_type="GPU") for name in names]
ctx = context.context()
ctx._initialize_physical_devices()
ctx._physical_devices.extend(gpus)
ctx._physical_device_to_index.update({gpu: i for i, gpu in enumerate(gpus)})
ctx._visible_device_list.extend(gpus)
ctx._memory_growth_map.update({gpu: None for gpu in gpus})

asked = []
real = type(ctx).config.fget


def config(self):
    made = real(self)
    asked.append(made)
    return made


type(ctx).config = property(config)
for line in sys.argv[2:]:
    exec(line)
total = float(tf.reduce_sum(tf.ones(10)))
options = asked[0].gpu_options
print(
    json.dumps(
        {
            "limits": [list(d.memory_limit_mb) for d in options.experimental.virtual_devices],
            "growth": options.allow_growth,
            "growth_variable": os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH"),
            "left": [str(ctx.get_logical_device_configuration(g)) for g in gpus],
            "total": total,
        }
    )
)
