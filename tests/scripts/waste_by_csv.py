#!/usr/bin/env python3
"""What `gpuwatch waste` should say of the runs in a folder, from their samples.csv alone: GPU seconds
of each kind, as JSON. It shares nothing with gpuwatch but the definitions in its help.

    waste_by_csv.py FOLDER
"""

import csv
import json
import os
import sys

ACTIVE_PCT = 5
LONGEST_S = 60


def number(cell):
    return float(cell) if cell else None


def stalls(folder, end):
    """The times within stalled findings."""
    spans = []
    with open(os.path.join(folder, "events.jsonl")) as lines:
        for event in map(json.loads, lines):
            if event["kind"] != "finding" or event["name"] != "stalled":
                continue
            if event["state"] == "raised":
                spans.append([event["since_s"], end])
            elif event["state"] == "cleared":
                spans[-1][1] = event["elapsed_s"]
    return spans


def kind(row):
    use = number(row["job_sm_pct"])
    if use is None:
        use = number(row["gpu_util_pct"])
    held = number(row["job_mem_mib"])
    if use is not None and use >= ACTIVE_PCT:
        return "active_s"
    if use is None or held is None:
        return "unknown_s"
    return "held_s" if held > 0 else "unused_s"


def add(total, folder):
    with open(os.path.join(folder, "run.json")) as file:
        run = json.load(file)
    end = run["summary"]["duration_s"]
    spans = stalls(folder, end)
    with open(os.path.join(folder, "samples.csv")) as file:
        rows = list(csv.DictReader(file))
    for gpu in run["gpus"]:
        total["reserved_s"] += end
        if run["verdict"]["outcome"] in ("failed", "killed", "lost"):
            total["lost_s"] += end
        before = 0.0
        stretches = []
        for row in rows:
            if row["gpu"] != str(gpu["index"]):
                continue
            now = float(row["elapsed_s"])
            stretches.append((before, now, "unknown_s" if now - before > LONGEST_S else kind(row)))
            before = now
        stretches.append((before, end, "unknown_s"))
        for start, stop, what in stretches:
            start, stop = min(start, end), min(stop, end)
            stalled = sum(max(0.0, min(stop, until) - max(start, since)) for since, until in spans)
            total["stalled_s"] += stalled
            total[what] += stop - start - stalled


total = dict.fromkeys(
    ["reserved_s", "active_s", "held_s", "stalled_s", "unused_s", "unknown_s", "lost_s"], 0.0
)
for name in os.listdir(sys.argv[1]):
    path = os.path.join(sys.argv[1], name)
    if os.path.isdir(path):
        add(total, path)
print(json.dumps(total))
