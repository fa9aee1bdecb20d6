#!/usr/bin/env python3
"""Generates the trace families, judges them with `gpuwatch replay --json`, and scores.

score.py --gpuwatch target/release/gpuwatch [--seeds 25] [--families H01,S03] [--keep DIR]
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from families import FAMILIES  # noqa: E402
from others import OTHERS  # noqa: E402
from trace import Trace, poisson_upper  # noqa: E402

ALARMS = ("warning", "critical")


def generate(root, family, seeds, noise_on_zero):
    fill, gpus = {**FAMILIES, **OTHERS}[family]
    for seed in range(seeds):
        trace = Trace(seed, family, gpus, noise_on_zero)
        truth = fill(trace)
        trace.write(os.path.join(root, f"{family}-{seed:03d}"), {"family": family, **truth})


def judge(gpuwatch, root):
    run = subprocess.run([gpuwatch, "replay", "--json", root], check=True, capture_output=True, text=True)
    found = {}
    for line in run.stdout.splitlines():
        finding = json.loads(line)
        found.setdefault(finding["run"], []).append(finding)
    return found


class Score:
    """Counts over traces."""

    def __init__(self):
        self.healthy_h = 0.0
        self.false = []
        self.delays = {}
        self.missed = {}
        self.wrong = []
        self.right = 0
        self.notes = {}

    def healthy(self, name, truth, raised, notes):
        self.healthy_h += truth["hours"]
        self.false += [(name, *r) for r in raised]
        wanted = truth.get("note")
        if wanted:
            said = [t for t, n in notes if n == wanted]
            late = truth.get("within") and not any(
                t - truth["since"] <= truth["within"] for t in said)
            hit = bool(said) and not late
            got, of = self.notes.get(truth["family"], (0, 0))
            self.notes[truth["family"]] = (got + hit, of + 1)

    def sick(self, name, truth, raised):
        """raised: (time, name or None)."""
        family, onset, deadline = truth["family"], truth["onset"], truth["deadline"]
        hits = [t - onset for t, n in raised if n in (truth["expect"], None) and t >= onset]
        if hits and hits[0] <= deadline:
            self.delays.setdefault(family, []).append(hits[0])
        else:
            self.missed.setdefault(family, []).append((name, hits[:1]))
        for t, n in raised:
            if t < onset:
                self.false.append((name, t, n))
            elif n not in (truth["expect"], None):
                self.wrong.append((name, t, n))
            else:
                self.right += 1

    def print(self, title, verbose):
        families = sorted(set(self.delays) | set(self.missed))
        hit = sum(len(self.delays.get(f, [])) for f in families)
        all_ = hit + sum(len(self.missed.get(f, [])) for f in families)
        delays = sorted(d for f in families for d in self.delays.get(f, []))
        per_1000 = 1000 / self.healthy_h if self.healthy_h else 0
        p90 = delays[math.ceil(0.9 * len(delays)) - 1] if delays else None
        print(f"{title}: recall {hit}/{all_} = {hit / max(1, all_):.3f}, delay median "
              f"{statistics.median(delays) if delays else None} p90 {p90} s, false alarms "
              f"{len(self.false)} in {self.healthy_h:.0f} h = {len(self.false) * per_1000:.2f} per 1000 h "
              f"(upper 95 % {poisson_upper(len(self.false)) * per_1000:.2f}), wrong names "
              f"{len(self.wrong)}/{self.right + len(self.wrong)}")
        if not verbose:
            return
        for f in families:
            d = sorted(self.delays.get(f, []))
            print(f"  {f}: {len(d)}/{len(d) + len(self.missed.get(f, []))}"
                  + (f", delay median {statistics.median(d):.0f} max {d[-1]:.0f} s" if d else ""))
            for missed in self.missed.get(f, [])[:4]:
                print(f"      missed {missed}")
        for f, (got, of) in sorted(self.notes.items()):
            print(f"  {f}: note said {got}/{of}")
        for what, items in (("false", self.false), ("wrong", self.wrong)):
            for item in items[:12]:
                print(f"      {what} {item}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpuwatch", required=True)
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--others", action="store_true", help="the families that the rules weren't made for")
    parser.add_argument("--keep", help="leave the traces in this directory")
    parser.add_argument("--noise-on-zero", action="store_true", help="noise on readings of 0 as well")
    parser.add_argument("--check", action="store_true", help="exit 1 unless the goals are met")
    args = parser.parse_args()
    ours, stalls = Score(), Score()
    fixed = {rule: Score() for rule in "ABCD"}
    families = list(OTHERS) if args.others else args.families.split(",")
    for family in families:
        root = os.path.join(args.keep, family) if args.keep else tempfile.mkdtemp(prefix="traces-")
        try:
            generate(root, family, args.seeds, args.noise_on_zero)
            found = judge(args.gpuwatch, root)
            for name in sorted(os.listdir(root)):
                score_one(root, name, found.get(name, []), ours, stalls, fixed)
        finally:
            if not args.keep:
                shutil.rmtree(root)
    ours.print("gpuwatch", True)
    stalls.print("gpuwatch, stalls alone", False)
    for rule, score in fixed.items():
        score.print(f"rule {rule}, stalls alone", False)
    recall = sum(map(len, ours.delays.values()))
    missed = sum(map(len, ours.missed.values()))
    good = missed <= 0.02 * (recall + missed) and not ours.false
    sys.exit(0 if good or not args.check else 1)


def score_one(root, name, found, ours, stalls, fixed):
    with open(os.path.join(root, name, "truth.json"), encoding="utf-8") as file:
        truth = json.load(file)
    raised = [f for f in found if f["state"] == "raised"]
    alarms = [(f["elapsed_s"], f["name"]) for f in raised
              if f["severity"] in ALARMS and f["because"] is None]
    if truth["expect"] == "xid-info":
        alarms += [(f["elapsed_s"], f["name"]) for f in raised if f["name"] == "xid-info"]
    if truth["expect"] is None:
        ours.healthy(name, truth, alarms, [(f["elapsed_s"], f["name"]) for f in raised])
        stalls.healthy(name, truth, [a for a in alarms if a[1] in ("stalled", "idle-holding")], [])
        for rule, score in fixed.items():
            score.healthy(name, truth, [(t, None) for t in truth["fixed"][rule]], [])
        return
    ours.sick(name, truth, alarms)
    if truth["expect"] == "stalled":
        stalls.sick(name, truth, alarms)
        for rule, score in fixed.items():
            score.sick(name, truth, [(t, None) for t in truth["fixed"][rule]])


if __name__ == "__main__":
    main()
