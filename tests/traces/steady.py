#!/usr/bin/env python3
"""What must make no difference, on every family of traces: when the run began, samples that are
lost, readings that a machine doesn't have.

    tests/traces/steady.py --gpuwatch target/release/gpuwatch [--seeds N] [--families A,B]

Each trace is judged as it is and changed:

- `another day`: the wall clock's times are others, the run's own are the same; so is all that is found.
- `dropped`: a twentieth of the samples is lost besides; the same alarms, about then.
- `without X`: the columns of one kind are empty; no alarm on a healthy trace, no alarm by
  another name on a sick one, and none of the findings that need those columns.

Exits 1 if anything did; each case is a line.
"""

import argparse
import csv
import json
import multiprocessing
import os
import random
import sys
import tempfile

import score
from tally import raised
from trace import Ways

LOST = 0.05
# An alarm may come so much later, or sooner, for lost samples: seconds, and a part of its delay.
APART = (30, 0.2)
# Columns that machines lack together, and what can't be found without them.
MISSING = {
    "utilisation": (("gpu_util_pct", "mem_util_pct", "job_sm_pct"), ()),
    "power": (("power_w", "energy_j"), ()),
    "pcie": (("pcie_mb_s",), ()),
    "memory": (("mem_used_mib", "job_mem_mib"), ("memory-leak", "near-oom")),
    "clocks": (("sm_clock_mhz", "throttle", "temp_c"), ("throttled", "overheating")),
    "states": (("n_run", "n_sleep", "n_disk", "n_zombie", "n_stopped", "n_busy"), ()),
    "processor": (("cpu_cores", "main_cores", "host_cpu_pct"), ("cpu-bound",)),
    "disk": (("read_mb_s", "write_mb_s", "io_pressure_pct", "majflt_s"), ()),
    "host memory": (("rss_mib", "anon_mib", "shmem_mib", "mem_limit_mib"), ()),
}


def another_day(rows, events, _):
    def moved(what):
        return {**what, "time": what["time"].replace("2026-12-", "2027-03-")}
    return [moved(row) for row in rows], [moved(event) for event in events]


def dropped(rows, events, chance):
    lost = {}
    kept = [row for row in rows if not lost.setdefault(row["elapsed_s"], chance.random() < LOST)]
    return kept, events


def without(columns):
    def change(rows, events, _):
        return [{**row, **dict.fromkeys(columns, "")} for row in rows], events
    return change


def write(folder, rows, events, run):
    os.makedirs(folder)
    with open(os.path.join(folder, "samples.csv"), "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    with open(os.path.join(folder, "events.jsonl"), "w", encoding="utf-8") as out:
        out.writelines(json.dumps(event) + "\n" for event in events)
    if run is not None:
        with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as out:
            json.dump({**run, "id": os.path.basename(folder)}, out)


def read(folder):
    with open(os.path.join(folder, "samples.csv"), encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    path = os.path.join(folder, "run.json")
    if not os.path.exists(path):
        return rows, events, None
    with open(path, encoding="utf-8") as text:
        return rows, events, json.load(text)


def story(findings):
    """Everything that was found, as it is to be equal."""
    return [{key: value for key, value in f.items() if key not in ("run", "time")} for f in findings]


def apart(truth, plain, changed):
    """Where the alarms of two stories differ by more than they may."""
    onset = truth["onset"] if truth["expect"] else 0
    first = {}
    for alarm in raised(plain)[0]:
        first.setdefault(alarm.name, alarm.at)
    again = {}
    for alarm in raised(changed)[0]:
        again.setdefault(alarm.name, alarm.at)
    if first.keys() != again.keys():
        return f"{sorted(first)} became {sorted(again)}"
    for name, at in first.items():
        most = max(APART[0], APART[1] * (at - onset))
        if abs(again[name] - at) > most:
            return f"{name} at {at} became {again[name]}"
    return None


def unfounded(truth, needs, changed):
    """Alarms that a missing reading has made."""
    expected = [*(truth["expect"] or ()), *truth.get("also", ())]
    for alarm in raised(changed)[0]:
        if alarm.name not in expected:
            return f"{alarm.name} at {alarm.at}"
    said = [f["name"] for f in changed if f["name"] in needs]
    return f"{said[0]} without its readings" if said else None


def family(task):
    """What is wrong with one family, and how many stories were compared."""
    gpuwatch, name, seeds = task
    wrong, compared = [], 0
    with tempfile.TemporaryDirectory(prefix="steady-") as root:
        for seed in seeds:
            folder = os.path.join(root, str(seed))
            truths = score.generate(folder, name, [seed], Ways())
            for trace, truth in truths.items():
                chance = random.Random(f"{trace}")
                missing = chance.choice(list(MISSING))
                columns, needs = MISSING[missing]
                changes = {"another day": another_day, "dropped": dropped, "without": without(columns)}
                rows, events, run = read(os.path.join(folder, trace))
                for how, change in changes.items():
                    write(os.path.join(folder, f"{trace}-{how}"), *change(rows, events, chance), run)
                found = score.judge(gpuwatch, folder)
                plain = found.get(trace, [])
                after = {how: found.get(f"{trace}-{how}", []) for how in changes}
                again = story(after["another day"])
                if story(plain) != again:
                    wrong.append(f"{trace} another day: {difference(story(plain), again)}")
                for how, said in (("dropped", apart(truth, plain, after["dropped"])),
                                  (f"without {missing}", unfounded(truth, needs, after["without"]))):
                    if said:
                        wrong.append(f"{trace} {how}: {said}")
                compared += len(changes)
    return wrong, compared


def difference(before, after):
    pairs = zip([*before, None], [*after, None])
    return next(f"{a} became {b}" for a, b in pairs if a != b)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpuwatch", required=True, help="the executable")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--families", help="of any set, separated by commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    families = args.families.split(",") if args.families else list(score.EVERY)
    tasks = [(args.gpuwatch, name, range(args.seeds)) for name in families]
    with multiprocessing.Pool(args.jobs) as pool:
        results = pool.map(family, tasks, chunksize=1)
    wrong = [line for lines, _ in results for line in lines]
    print(*wrong, sep="\n")
    print(f"{len(families)} families, {sum(n for _, n in results)} stories compared, {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
