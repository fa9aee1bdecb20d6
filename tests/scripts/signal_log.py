#!/usr/bin/env python3
"""signal_log.py LOG [STATUS]: append each signal that arrives to LOG, one byte each.

Says "ready" once it listens. Ends with STATUS (default 0) when LOG.end exists. Job control
(TSTP, TTIN, TTOU) keeps its usual effect.
"""

import os
import signal
import sys
import time

log = sys.argv[1]
status = int(sys.argv[2]) if len(sys.argv) > 2 else 0

# Python writes the signal's number to this descriptor from the handler itself, so that two
# signals in quick succession are two bytes (its own handlers would see them as one).
descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
signal.set_wakeup_fd(descriptor)
usual = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
usual |= {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
for number in signal.valid_signals() - usual:
    signal.signal(number, lambda *_: None)

print("ready", flush=True)
while not os.path.exists(log + ".end"):
    time.sleep(0.01)
sys.exit(status)
