"""One synthetic run: rows of samples.csv, events, and what the fixed rules would say.

Owns the noise, the GPU profiles, the masks and the files. Knows no family.
"""

import json
import math
import os
import random

COLUMNS = (
    "time elapsed_s gpu gpu_util_pct mem_util_pct mem_used_mib mem_total_mib job_mem_mib "
    "job_sm_pct temp_c power_w power_limit_w energy_j sm_clock_mhz throttle pcie_mb_s "
    "ecc_uncorrected sm_active_pct tensor_active_pct dram_active_pct procs n_run n_sleep n_disk "
    "n_zombie n_stopped n_busy cpu_cores main_cores rss_mib anon_mib shmem_mib read_mb_s "
    "write_mb_s majflt_s forks host_cpu_pct io_pressure_pct cpu_throttled_pct mem_limit_mib "
    "out_bytes epoch epochs step steps percent loss rate overall_pct eta_s"
).split()

# name: idle context, spinning, training, limit (W)
PROFILES = {
    "T4": (25, 30, 65, 70),
    "V100": (53, 60, 230, 300),
    "A100": (70, 90, 330, 400),
    "H100": (130, 152, 560, 700),
}
MASKS = ("none", "no-pcie", "no-states", "no-process-memory", "no-utilisation")
TIME = "2026-11-30T00:00:00.000+00:00"


class State:
    """What one second looks like; `but` makes a variation."""

    def __init__(self, **values):
        self.sm, self.mc, self.power, self.pcie = 0, 0, "idle", 0
        self.cpu, self.read, self.write, self.mem = 0.01, 0, 0, 40
        self.run, self.disk, self.stopped, self.busy = 0, 0, False, 0
        self.io_pressure, self.forks, self.throttle = 0, 0, "none"
        self.clock, self.still = 1.0, False
        self.__dict__.update(values)

    def but(self, **values):
        return State(**{**self.__dict__, **values})


TR = State(sm=95, mc=45, power="train", pcie=800, cpu=3, read=60, run=3, busy=2)
QU = State()
SP = State(sm=100, power="spin", pcie=0.3, still=True)
NC = State(mem=0, power="off")


def cp(cores):
    """Only the CPU works."""
    return State(cpu=cores, run=max(1, int(cores)), busy=int(cores))


class Trace:
    """A run under construction."""

    def __init__(self, seed, family, gpus=1, noise_on_zero=False):
        self.random = random.Random(f"{family}/{seed}")
        self.profile = list(PROFILES)[seed % 4]
        self.mask = MASKS[seed % 5]
        self.gpus, self.t = gpus, 0
        self.rows, self.events = [], []
        self.out_bytes = 0
        self.epoch = self.step = self.percent = self.loss = None
        self.due = None
        self.mem_extra = 0.0
        self.main = True
        self.ecc = [0] * gpus
        self.noise_on_zero = noise_on_zero
        self.fixed = Fixed()

    def lasting(self, seconds):
        return max(1, round(seconds * self.random.uniform(0.8, 1.25)))

    def onset(self, seconds):
        return max(1, round(seconds * self.random.uniform(0.5, 2)))

    def event(self, kind, **values):
        line = {"time": TIME, "elapsed_s": round(self.t + 0.4, 3), "kind": kind, **values}
        self.events.append(line)

    def line(self, text, stream="out"):
        self.out_bytes += len(text) + 1
        self.event("line", stream=stream, text=text)

    def process(self, pid, change, **values):
        self.event("process", pid=pid, ppid=values.pop("ppid", 100), name=values.pop("name", "python"),
                   rank=values.pop("rank", None), change=change, **values)

    def gap(self, every):
        return every * self.random.lognormvariate(0, 0.1)

    def phase(self, seconds, state, every=None, by="step", per_gpu=None, first=None):
        """So many seconds of a state; progress `every` so many seconds."""
        end = self.t + int(seconds)
        if every:
            self.due = self.t + (first if first is not None else self.gap(every))
        while self.t < end:
            if every and self.t >= self.due:
                self.due += self.gap(every)
                if by == "step":
                    self.step = (self.step or 0) + 1
                elif by == "epoch":
                    self.epoch = (self.epoch or 0) + 1
                else:
                    self.percent = min(100, round((self.percent or 0) + 0.1, 1))
                if by != "percent":
                    self.loss = round(2 / (1 + (self.step or self.epoch) / 100), 4)
                self.out_bytes += 60
            self.row(state(self.t) if callable(state) else state, per_gpu)
            self.t += 1

    def noisy(self, value, spread, still):
        if still or (value == 0 and not self.noise_on_zero):
            return value
        return min(100, max(0, value + self.random.gauss(0, spread / 2)))

    def row(self, state, per_gpu):
        self.fixed.look(self.t, [(per_gpu(i, self.t) if per_gpu else state).sm for i in range(self.gpus)],
                        self.out_bytes, (self.epoch, self.step, self.percent))
        if self.random.random() < 0.01:
            return
        idle, spin, train, limit = PROFILES[self.profile]
        watts = {"idle": idle, "spin": spin, "train": train, "off": limit * 0.1}
        ranks = 5 * self.gpus
        job = self.job(state, ranks)
        for i in range(self.gpus):
            s = per_gpu(i, self.t) if per_gpu else state
            if s is None:
                self.rows.append(self.lost_row(i, job))
                continue
            power = watts[s.power] if isinstance(s.power, str) else s.power * limit / 100
            power = max(5, power + self.random.gauss(0, limit * 0.01))
            mem = 0 if s.mem == 0 else (s.mem + self.mem_extra) * 1024
            sm = round(self.noisy(s.sm, 3, s.still), 1)
            mc = round(self.noisy(s.mc, 4, False), 1)
            util = ("", "") if self.mask == "no-utilisation" else (sm, mc)
            job_sm = "" if self.mask in ("no-utilisation", "no-process-memory") else sm
            job_mem = "" if self.mask == "no-process-memory" else round(mem, 1)
            pcie = "" if self.mask == "no-pcie" else s.pcie
            gpu = (i, *util, round(mem + 5, 1), 81920, job_mem, job_sm, 55, round(power, 1), limit, "",
                   round(1755 * s.clock), s.throttle, pcie, self.ecc[i], "", "", "")
            self.rows.append((gpu, job))

    def lost_row(self, i, job):
        return ((i,) + ("",) * 17, job)

    def job(self, s, procs):
        cpu = max(0, s.cpu * (1 + self.random.gauss(0, 0.05)))
        if self.mask == "no-states":
            states = ("", "", "", "", "", "", "")
        elif s.stopped:
            states = (procs, 0, 0, 0, 0, procs, 0)
        else:
            run = min(procs, s.run)
            states = (procs, run, procs - run - s.disk, s.disk, 0, 0, s.busy)
        main = round(min(1, cpu), 2) if self.main else ""
        return (*states, round(cpu, 2), main, 4000, 3000, 500, s.read, s.write, 0, s.forks, 30,
                s.io_pressure, 0, "", self.out_bytes, shown(self.epoch), "", shown(self.step), "",
                shown(self.percent), shown(self.loss), "", "", "", self.t)

    def write(self, folder, truth):
        os.makedirs(folder)
        with open(os.path.join(folder, "samples.csv"), "w", encoding="utf-8") as out:
            out.write(",".join(COLUMNS) + "\n")
            for gpu, job in self.rows:
                out.write(f"{TIME},{job[-1]}.002,")
                out.write(",".join(map(str, gpu)))
                out.write(",")
                out.write(",".join(map(str, job[:-1])))
                out.write("\n")
        with open(os.path.join(folder, "events.jsonl"), "w", encoding="utf-8") as out:
            for event in self.events:
                out.write(json.dumps(event) + "\n")
        truth = {"hours": self.t / 3600, "mask": self.mask, "profile": self.profile,
                 "fixed": self.fixed.alarms(), **truth}
        with open(os.path.join(folder, "truth.json"), "w", encoding="utf-8") as out:
            json.dump(truth, out)


def shown(value):
    return "" if value is None else value


class Fixed:
    """The fixed rules: A use below 20 % for 10 min, B no output for 30 min, C either, D five
    times the longest gap of progress."""

    def __init__(self):
        self.low_since = self.printed = self.moved = None
        self.bytes = self.place = None
        self.longest = 0
        self.gaps = 0
        self.held = {"A": False, "B": False, "D": False}
        self.raised = {"A": [], "B": [], "D": []}

    def look(self, t, uses, out_bytes, place):
        use = sum(uses) / len(uses)
        if use >= 20:
            self.low_since = None
        elif self.low_since is None:
            self.low_since = t
        self.say("A", t, self.low_since is not None and t - self.low_since >= 600)
        if self.bytes != out_bytes or self.printed is None:
            self.bytes, self.printed = out_bytes, t
        self.say("B", t, t - self.printed >= 1800)
        if place != self.place:
            if self.place is not None and self.moved is not None:
                self.gaps += 1
                self.longest = max(self.longest, t - self.moved)
            self.place, self.moved = place, t
        self.say("D", t, self.gaps >= 3 and t - self.moved > 5 * self.longest)

    def say(self, rule, t, holds):
        if holds and not self.held[rule]:
            self.raised[rule].append(t)
        self.held[rule] = holds

    def alarms(self):
        return {**self.raised, "C": sorted(self.raised["A"] + self.raised["B"])}


def poisson_upper(n, level=0.95):
    """The rate beyond which n or fewer events would be rarer than 1 - level."""
    low, high = 0.0, n + 20 * math.sqrt(n + 1) + 20
    for _ in range(200):
        middle = (low + high) / 2
        term = total = math.exp(-middle)
        for k in range(1, n + 1):
            term *= middle / k
            total += term
        low, high = (middle, high) if total > 1 - level else (low, middle)
    return high
