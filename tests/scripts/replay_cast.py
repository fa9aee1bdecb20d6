"""Prints what a recording (asciicast 2) shows, quickly, and ends as its program ended.

usage: replay_cast.py CAST END [FILE]

END is an exit code or the name of a signal. With FILE it waits after the last byte, until a
signal comes, ends then, and writes its PID to FILE before.
"""

import json
import os
import signal
import sys
import time


def end(how):
    if how.isdigit():
        os._exit(int(how))
    number = signal.Signals["SIG" + how]
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    while True:
        signal.pause()


def main():
    cast, how, *waiting = sys.argv[1:]
    with open(cast) as file:
        header, *events = map(json.loads, file)
    encoding = header.get("x_encoding", "utf-8")
    before = None
    for _, stream, text in events:
        if before not in (None, stream):
            # Or two readers would decide what came first.
            time.sleep(0.03)
        before = stream
        data = text.encode(encoding)
        while data:
            data = data[os.write(2 if stream == "e" else 1, data) :]
    if waiting:
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, lambda *_: end(how))
        with open(waiting[0], "w") as file:
            file.write(f"{os.getpid()}\n")
        while True:
            signal.pause()
    end(how)


main()
