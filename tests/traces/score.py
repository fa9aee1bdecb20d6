#!/usr/bin/env python3
"""Generates the trace families, judges them with `gpuwatch replay --json`, and scores.

    cargo build --release
    tests/traces/score.py --gpuwatch target/release/gpuwatch            the benchmark, whole
    tests/traces/score.py --gpuwatch ... --set held-out --seeds 20      other families

Traces are made, judged and deleted a few at a time, by as many processes as there are cores.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from families import FAMILIES  # noqa: E402
from growth import GROWTH  # noqa: E402
from held_out import HELD_OUT  # noqa: E402
from others import OTHERS  # noqa: E402
from table import details, table  # noqa: E402
from tally import Board  # noqa: E402
from trace import Trace, Ways  # noqa: E402

SETS = {"benchmark": FAMILIES, "others": OTHERS, "growth": GROWTH, "held-out": HELD_OUT}
EVERY = {name: family for families in SETS.values() for name, family in families.items()}
# So many of one family are on the disk at once: about 50 MB of the largest.
CHUNK = 4


def generate(root, family, seeds, ways):
    """Writes traces, and returns by name what is true of them."""
    gpus, variants = EVERY[family]
    truths = {}
    for fill in variants:
        for seed in seeds:
            name = f"{fill.__name__}-{seed:03d}"
            trace = Trace(seed, fill.__name__, gpus, ways)
            truths[name] = trace.write(os.path.join(root, name), fill(trace))
    return truths


def judge(gpuwatch, root):
    """The findings of each trace, by name."""
    run = subprocess.run([gpuwatch, "replay", "--json", root], check=True, capture_output=True, text=True)
    found = {}
    for line in run.stdout.splitlines():
        finding = json.loads(line)
        found.setdefault(finding["run"], []).append(finding)
    return found


def chunk(task):
    """A few traces of a family, from nothing to their score."""
    gpuwatch, family, seeds, ways, keep = task
    root = os.path.join(keep, family) if keep else tempfile.mkdtemp(prefix="traces-")
    board = Board()
    try:
        truths = generate(root, family, seeds, ways)
        found = judge(gpuwatch, root)
        for name, truth in truths.items():
            board.trace(name, truth, found.get(name, []))
        if keep:
            with open(os.path.join(root, "truth.json"), "w", encoding="utf-8") as out:
                json.dump(truths, out, indent=1)
    finally:
        if not keep:
            shutil.rmtree(root)
    return family, board


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpuwatch", required=True, help="the executable")
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--set", choices=SETS, default="benchmark")
    parser.add_argument("--families", help="these of any set, separated by commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--interval", type=float, default=1, help="seconds from sample to sample (0.5, 1, 2, ...)")
    parser.add_argument("--drop", type=float, default=0.01, help="so many of the samples are lost")
    parser.add_argument("--noise", type=float, default=1, help="so many times the usual noise")
    parser.add_argument("--noise-on-zero", action="store_true", help="noise on readings of 0 as well")
    parser.add_argument("--keep", help="leave the traces in this directory, which must not hold them yet")
    parser.add_argument("--json", action="store_true", help="the figures as one JSON document")
    parser.add_argument("--check", action="store_true", help="exit 1 unless the goals are met")
    args = parser.parse_args()
    if args.interval != 0.5 and (args.interval < 1 or args.interval % 1):
        parser.error("--interval is 0.5 or whole seconds")
    return args


def tasks(args, families):
    ways = Ways(args.noise, args.drop, args.interval, args.noise_on_zero)
    size = args.seeds if args.keep else CHUNK
    # The largest first, lest one core ends alone.
    for family in sorted(families, key=lambda f: -EVERY[f][0] * len(EVERY[f][1])):
        for first in range(0, args.seeds, size):
            yield args.gpuwatch, family, range(first, min(first + size, args.seeds)), ways, args.keep


def met(figures):
    """The goals of the benchmark."""
    ours, stalls = figures["gpuwatch"], figures["stalls"]
    return ((ours["recall"] or 0) >= 0.98 and not ours["false_alarms"] and not ours["alarms_before_onsets"]
            and (stalls["delay_median_s"] or 0) <= 120 and ours["wrong_rate"] <= 0.01
            and ours["notes"][0] == ours["notes"][1])


def main():
    args = arguments()
    families = args.families.split(",") if args.families else list(SETS[args.set])
    boards = {family: Board() for family in families}
    with multiprocessing.Pool(args.jobs) as pool:
        for family, board in pool.imap_unordered(chunk, tasks(args, families)):
            boards[family].add(board)
    total = Board()
    for board in boards.values():
        total.add(board)
    figures = total.figures()
    if args.json:
        by_family = {family: board.ours.figures() for family, board in boards.items()}
        print(json.dumps({"seeds": args.seeds, "families": by_family, **figures}, indent=1))
    else:
        print(table(boards, total, args.seeds))
        print(details(boards))
    return 0 if met(figures) or not args.check else 1


if __name__ == "__main__":
    sys.exit(main())
