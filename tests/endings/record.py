#!/usr/bin/env python3
"""Records how programs end: `record.py NAME -- COMMAND...` writes NAME.cast (asciicast 2, "o"
and "e" through two pipes) and prints the exit code or signal."""

import json
import os
import re
import selectors
import subprocess
import sys
import time


def cleaned(text):
    """Without this machine's paths and name."""
    text = re.sub(r"/\S*?/(?:tf|torch|jax)-[0-9a-f]{16}/", "/opt/venv/", text)
    text = text.replace(os.getcwd(), "/job").replace(os.uname().nodename, "node01")
    return text.replace(os.path.expanduser("~") + "/", "/job/home/")


def main():
    name, command = sys.argv[1], sys.argv[3:]
    start = time.monotonic()
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, env=env
    )
    events = []
    with selectors.DefaultSelector() as ready:
        ready.register(child.stdout, 1, "o")
        ready.register(child.stderr, 1, "e")
        while ready.get_map():
            for key, _ in ready.select():
                data = os.read(key.fd, 65536)
                if not data:
                    ready.unregister(key.fileobj)
                    continue
                at = round(time.monotonic() - start, 3)
                text = data.decode("utf-8", "replace")
                if events and events[-1][1] == key.data and at - events[-1][0] < 0.005:
                    events[-1][2] += text
                else:
                    events.append([at, key.data, text])
    status = child.wait()
    header = {"version": 2, "width": 120, "height": 40, "title": name}
    with open(name + ".cast", "w") as cast:
        for line in [header, *([at, code, cleaned(text)] for at, code, text in events)]:
            cast.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(name, f"signal {-status}" if status < 0 else f"exit code {status}")


main()
