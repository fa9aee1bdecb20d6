"""Writes what it is told for TensorBoard and prints nothing: `STEP LOSS` a line on stdin."""

import sys

from tensorboardX import SummaryWriter

with SummaryWriter(sys.argv[1], flush_secs=1) as writer:
    for line in sys.stdin:
        step, loss = line.split()
        writer.add_scalar("train/loss", float(loss), int(step))
        writer.add_scalar("eval/loss", 9.0, int(step) + 5)
        writer.flush()
