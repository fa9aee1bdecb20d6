#!/usr/bin/env python3
"""no_answer.py FOLDER: a file system that never answers; whoever looks into it can't be killed.

Says "mounted" once it is there and "asked" at each request that it takes and leaves open. When it
ends, the kernel gives all of them up. Needs root.
"""

import ctypes
import os
import struct
import sys

folder = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
NOSUID_NODEV = 2 | 4
if libc.mount(b"no-answer", folder.encode(), b"fuse", NOSUID_NODEV, options) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))

# The one question that must be answered (linux/fuse.h): FUSE_INIT, protocol 7.31.
header = struct.Struct("<IIQQIIII")
request = os.read(device, 1 << 17)
(_, opcode, unique, *_) = header.unpack_from(request)
assert opcode == 26, opcode
# major, minor, max_readahead, flags, max_background, congestion_threshold, max_write; the rest 0.
init = struct.pack("<IIIIHHI", 7, 31, 0, 0, 16, 12, 4096).ljust(64, b"\0")
os.write(device, struct.pack("<IiQ", 16 + len(init), 0, unique) + init)
print("mounted", flush=True)
while True:
    os.read(device, 1 << 17)
    print("asked", flush=True)
