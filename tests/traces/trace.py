"""One synthetic run: rows of samples.csv, events, and what the fixed rules would say.

Owns the noise, the GPU profiles, the masks and the files. Knows no family. Second by second a
phase says what the job does; a row is written every `interval` seconds, less the dropped ones.
"""

import json
import os
import random

from fixed import Fixed

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
# A card without a context draws so much of its limit.
OFF = 0.1
TOTAL_MIB = 81920
# The main process; its workers have the PIDs that follow.
MAIN = 100


class State:
    """What one second looks like; `but` makes a variation."""

    # The GPU: % of use, % of the memory controller's time, a name of PROFILES or % of the limit,
    # MB/s, GiB of the job and of others, the part of the full clock; `still` has no noise on sm.
    sm = mc = pcie = other_mem = other_sm = 0
    power, mem, clock, temp = "idle", 40, 1.0, 55
    throttle, still = "none", False
    # The job: cores, the main process's (unless None: up to one of them), MB/s, processes by
    # state (`procs`: all, unless None: five a GPU).
    cpu, main, read, write = 0.01, None, 0, 0
    procs, run, disk, zombie, busy, stopped = None, 0, 0, 0, 0, False
    rss, anon, shmem, majflt, forks = 4000, 3000, 500, 0, 0
    host_cpu, io_pressure, cpu_throttled, mem_limit = 30, 0, 0, ""

    def __init__(self, **values):
        unknown = [name for name in values if not hasattr(State, name)]
        if unknown:
            raise TypeError(f"no such reading: {unknown}")
        self.values = values
        self.__dict__.update(values)
        self.text = None

    def but(self, **values):
        return State(**{**self.values, **values})


TR = State(sm=95, mc=45, power="train", pcie=800, cpu=3, read=60, run=3, busy=2)
QU = State()
SP = State(sm=100, power="spin", pcie=0.3, still=True)
NC = State(mem=0, power="off")


def cp(cores):
    """Only the CPU works."""
    return State(cpu=cores, run=max(1, int(cores)), busy=int(cores))


class Ways:
    """How the traces are sampled: noise as a multiple of the usual, its part of dropped samples,
    seconds from one sample to the next (halves allowed), whether readings of 0 are noisy too."""

    def __init__(self, noise=1.0, drop=0.01, interval=1.0, noise_on_zero=False):
        self.noise, self.drop, self.interval, self.noise_on_zero = noise, drop, interval, noise_on_zero


class Trace:
    """A run under construction."""

    def __init__(self, seed, family, gpus=1, ways=None):
        self.random = random.Random(f"{family}/{seed}")
        # Noise and lost samples come from elsewhere: the same seed is the same run, whatever
        # the ways of sampling.
        self.noise = random.Random(f"{family}/{seed}/noise")
        self.seed, self.gpus, self.t = seed, gpus, 0
        self.profile = list(PROFILES)[seed % 4]
        self.mask = MASKS[seed % 5]
        self.ways = ways or Ways()
        self.rows, self.events = [], []
        self.out_bytes = 0
        self.epoch = self.epochs = self.step = self.steps = self.percent = self.loss = None
        self.due = None
        self.main = True
        self.total_mib = TOTAL_MIB
        self.ecc = [0] * gpus
        self.names = [str(i) for i in range(gpus)]
        self.sampled = True
        self.run = None
        self.fixed = Fixed()

    def lasting(self, seconds):
        """A duration of about so many seconds."""
        return max(1, round(seconds * self.random.uniform(0.8, 1.25)))

    def onset(self, seconds):
        """A moment when something breaks, about so many seconds after the start."""
        return max(1, round(seconds * self.random.uniform(0.5, 2)))

    def gap(self, every):
        return every * self.random.lognormvariate(0, 0.1)

    def event(self, kind, **values):
        at = round(self.t + 0.4, 3)
        self.events.append({"time": clock(at), "elapsed_s": at, "kind": kind, **values})

    def line(self, text, stream="out"):
        self.out_bytes += len(text) + 1
        self.event("line", stream=stream, text=text)

    def process(self, pid, change, **values):
        self.event("process", pid=pid, ppid=values.pop("ppid", MAIN), name=values.pop("name", "python"),
                   rank=values.pop("rank", None), change=change, **values)

    def record(self, **gpu):
        """With a run.json, whose GPUs have these facts."""
        self.run = gpu

    def advance(self, by):
        """One step, epoch or tenth of a percent further, and a line that says so."""
        if by == "step":
            self.step = (self.step or 0) + 1
        elif by == "epoch":
            self.epoch = (self.epoch or 0) + 1
        else:
            self.percent = min(100, round((self.percent or 0) + 0.1, 1))
        if by != "percent" and self.loss != "nan":
            self.loss = round(2 / (1 + (self.step or self.epoch) / 100), 4)
        self.out_bytes += 60

    def phase(self, seconds, state, every=None, by="step", per_gpu=None, first=None):
        """So many seconds of a state (or of a function of the second); progress `every` so many
        seconds; `per_gpu` is a function of GPU and second, and None is a GPU that is lost."""
        end = self.t + int(seconds)
        if every:
            self.due = self.t + (first if first is not None else self.gap(every))
        while self.t < end:
            while every and self.t >= self.due:
                self.due += self.gap(every)
                self.advance(by)
            now = state(self.t) if callable(state) else state
            gpus = [per_gpu(i, self.t) for i in range(self.gpus)] if per_gpu else [now] * self.gpus
            use = sum(s.sm if s else 0 for s in gpus) / self.gpus
            self.fixed.look(self.t, use, self.out_bytes, (self.epoch, self.step, self.percent))
            self.sample(now, gpus)
            self.t += 1

    def sample(self, state, gpus):
        """The rows of this second."""
        interval = self.ways.interval
        at = self.t if interval <= 1 or self.t % interval == 0 else None
        while at is not None and at < self.t + 1:
            if self.sampled and self.noise.random() >= self.ways.drop:
                self.tick(at + 0.002, state, gpus)
            at += interval

    def tick(self, at, state, gpus):
        start = f"{clock(at)},{at:.3f},"
        job = self.job(state)
        rows = self.rows
        for i, gpu in enumerate(gpus):
            rows.append(start)
            rows.append(self.device(i, gpu) if gpu else self.names[i] + "," * 17)
            rows.append(job)

    def device(self, i, s):
        """The columns of one GPU."""
        gauss, noise = self.noise.gauss, self.ways.noise
        idle, spin, train, limit = PROFILES[self.profile]
        power = s.power
        if isinstance(power, str):
            power = {"idle": idle, "spin": spin, "train": train, "off": limit * OFF}[power]
        else:
            power *= limit / 100
        power = max(5, power + gauss(0, limit * 0.01 * noise))
        sm = self.noisy(s.sm, 1.5, s.still)
        mc = self.noisy(s.mc, 2, False)
        mem = s.mem * 1024
        used = mem + s.other_mem * 1024 + 5
        mask = self.mask
        util = "," if mask == "no-utilisation" else f"{max(sm, s.other_sm):.1f},{mc:.1f}"
        job_sm = "" if mask in ("no-utilisation", "no-process-memory") else f"{sm:.1f}"
        job_mem = "" if mask == "no-process-memory" else f"{mem:.1f}"
        pcie = "" if mask == "no-pcie" else s.pcie
        return (f"{self.names[i]},{util},{used:.1f},{self.total_mib},{job_mem},{job_sm},{s.temp},{power:.1f},{limit},,"
                f"{round(1755 * s.clock)},{s.throttle},{pcie},{self.ecc[i]},,,")

    def noisy(self, value, sigma, still):
        if still or (value == 0 and not self.ways.noise_on_zero):
            return value
        return min(100, max(0, value + self.noise.gauss(0, sigma * self.ways.noise)))

    def job(self, s):
        """The columns of the job."""
        if s.text is None:
            s.text = self.job_text(s)
        before, after = s.text
        cpu = max(0, s.cpu * (1 + self.noise.gauss(0, 0.05 * self.ways.noise)))
        main = cpu if s.main is None else s.main
        main = f"{min(1, main):.2f}" if self.main else ""
        return (f"{before}{cpu:.2f},{main},{after}{self.out_bytes},{shown(self.epoch)},{shown(self.epochs)},"
                f"{shown(self.step)},{shown(self.steps)},{shown(self.percent)},{shown(self.loss)},,,\n")

    def job_text(self, s):
        procs = 5 * self.gpus if s.procs is None else s.procs
        if self.mask == "no-states":
            states = "," * 7
        elif s.stopped:
            states = f"{procs},0,0,0,0,{procs},0,"
        else:
            run = min(procs, s.run)
            states = f"{procs},{run},{procs - run - s.disk - s.zombie},{s.disk},{s.zombie},0,{s.busy},"
        return f",{states}", (f"{s.rss},{s.anon},{s.shmem},{s.read},{s.write},{s.majflt},{s.forks},"
                              f"{s.host_cpu},{s.io_pressure},{s.cpu_throttled},{s.mem_limit},")

    def write(self, folder, truth):
        os.makedirs(folder)
        with open(os.path.join(folder, "samples.csv"), "w", encoding="utf-8") as out:
            out.write(",".join(COLUMNS) + "\n")
            out.writelines(self.rows)
        with open(os.path.join(folder, "events.jsonl"), "w", encoding="utf-8") as out:
            for event in self.events:
                out.write(json.dumps(event) + "\n")
        if self.run is not None:
            with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as out:
                json.dump(self.run_json(os.path.basename(folder)), out)
        return {"seconds": self.t, "mask": self.mask, "profile": self.profile,
                "fixed": self.fixed.alarms(), **truth}

    def run_json(self, name):
        limit = PROFILES[self.profile][3]
        gpus = [{"index": i, "uuid": f"GPU-{i}", "name": self.profile, "memory_mib": self.total_mib,
                 "power_limit_w": limit, "slowdown_c": None, "host_index": i, **self.run}
                for i in range(self.gpus)]
        return {"schema": 1, "id": name, "name": name, "tags": [], "argv": ["python", "train.py"], "cwd": "/",
                "project": "/", "user": "li", "host": "node01", "git": None, "gpus": gpus, "driver": None,
                "cuda": None, "env": {}, "profile": "default", "framework": None,
                "job": {"id": None, "rank": None, "world": None, "local_rank": None}, "pid": MAIN,
                "started": clock(0), "ended": clock(self.t), "state": "finished",
                "exit": {"code": 0, "signal": None}, "attribution": "exact",
                "verdict": {"outcome": "ok", "cause": None, "advice": None}, "judge": {}, "rules": [],
                "summary": {}}


def clock(elapsed):
    """The time of day so many seconds after the start."""
    whole, ms = divmod(round(elapsed * 1000), 1000)
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"2026-12-{1 + days:02}T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}+00:00"


def shown(value):
    return "" if value is None else value
