"""The trace families of the benchmark: healthy runs that look sick and the other way round.

Each function fills a trace and returns what is true of it: `expect` (a finding's name, or None
for a healthy run), `onset` (when it began), `deadline` (seconds after the onset, or after the
start where the phase is sick from its start), `note` (what should be said of a healthy run).
"""

from trace import NC, QU, SP, TR, State, cp

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (skipping batch)"


def healthy(note=None, within=None, since=None):
    return {"expect": None, "note": note, "within": within, "since": since}


def sick(name, onset, deadline, cause=None):
    return {"expect": name, "onset": onset, "deadline": deadline, "cause": cause}


def h01(t):
    t.phase(t.lasting(25), NC.but(cpu=1, run=1))
    load = t.lasting(15)
    for i in range(load):
        t.phase(1, State(mem=18 * (i + 1) / load, pcie=3000, read=500, cpu=1, run=1))

    def compiles(now):
        blip = now % 20 < 2
        return cp(4).but(mem=18, sm=30 if blip else 0, power=30 if blip else "idle", forks=int(now % 5 == 0))
    t.phase(t.lasting(360), compiles)
    t.phase(t.lasting(3600), TR, every=2)
    return healthy("starting")


def h02(t):
    t.phase(t.lasting(900), NC.but(read=60, cpu=0.5, run=1), every=1, by="percent")
    t.percent = 0
    t.phase(t.lasting(1800), NC.but(cpu=16, read=40, run=16, busy=16), every=10, by="percent")
    t.phase(t.lasting(3600), TR, every=2)
    return healthy("preparing")


def h04(t):
    for _ in range(3):
        t.phase(t.lasting(3600), TR)
        t.phase(t.lasting(90), TR.but(sm=60, mc=25))
        t.epoch = (t.epoch or 0) + 1
        t.out_bytes += 80
    return healthy()


def h06(t):
    for _ in range(5):
        t.phase(t.lasting(1800), TR, every=3)
        wait = min(500, 150 * t.random.lognormvariate(0, 0.5))
        t.phase(wait, QU.but(disk=1, write=200, io_pressure=60, cpu=0.2))
    return healthy("checkpointing")


def h08(t):
    while t.t < 4 * 3600:
        t.phase(t.random.uniform(9, 135), cp(30))
        t.phase(t.random.uniform(3, 45), TR)
        t.step = (t.step or 0) + 1
        t.out_bytes += 60
    return healthy()


def h10(t):
    t.process(200, "started", name="ipykernel_launch")
    for _ in range(4):
        t.phase(t.lasting(300), TR.but(mem=14))
        t.phase(t.lasting(3000), QU.but(mem=14))
    return healthy("idle-interactive")


def h12(t):
    t.phase(t.lasting(70), cp(1))
    t.phase(t.lasting(14400), TR, every=190, first=190)
    return healthy()


def h14(t):
    t.phase(t.lasting(1500), TR, every=2)
    asked = t.t
    t.line("(Pdb) ")
    t.process(100, "blocked", on="terminal")
    t.phase(t.lasting(3600), QU)
    return healthy("waiting-for-input", 15, asked)


def h15(t):
    t.phase(t.lasting(1200), TR, every=2)
    stopped = t.t
    for pid in range(100, 105):
        t.process(pid, "stopped")
    t.phase(t.lasting(3600), QU.but(stopped=True, cpu=0))
    for pid in range(100, 105):
        t.process(pid, "continued")
    t.phase(t.lasting(1200), TR, every=2)
    return healthy("suspended", 10, stopped)


def h19(t):
    end = t.t + t.lasting(7200)
    while t.t < end:
        t.phase(t.lasting(900), lambda now: TR.but(throttle="sw_power_cap" if now % 20 else "none", clock=0.96),
                every=2)
        t.phase(t.lasting(60), QU.but(throttle="gpu_idle", cpu=1, run=1))
    return healthy()


def s01(t):
    onset = t.onset(3600)
    while t.t < onset:
        t.phase(min(600, onset - t.t), TR, every=2)
        if t.t < onset:
            t.phase(min(t.lasting(60), onset - t.t), TR.but(sm=60, mc=25))
    hang(t, 900, SP.but(cpu=t.gpus, run=t.gpus, busy=t.gpus))
    return sick("stalled", onset, 120, "spin")


def s03(t):
    onset = t.onset(900)
    t.phase(onset, TR, every=2)
    for pid in range(101, 105):
        t.process(pid, "blocked", on="futex")
    hang(t, 900, QU)
    return sick("stalled", onset, 300, "asleep")


def s05(t):
    onset = t.onset(8200)
    t.phase(onset, TR, every=3600, by="epoch")
    hang(t, 1200, QU)
    return sick("stalled", onset, 300)


def hang(t, seconds, state):
    t.phase(seconds, state)


def s08(t, line=True):
    t.phase(t.lasting(30), NC.but(cpu=2, run=2, busy=2))
    if line:
        t.line("Skipping registering GPU devices...", "err")
    t.phase(600, NC.but(cpu=32, run=32, busy=32), every=1.2)
    return sick("gpu-unused", 0, 120 if line else 180, "library-missing" if line else "unknown")


def s08b(t):
    return s08(t, line=False)


def s10(t):
    def wave(now):
        # A second's mean of a square wave of 1.4 s with a duty of 35 %.
        on = sum(((now + k / 20) % 1.4) < 0.49 for k in range(20)) / 20
        return TR.but(sm=100 * on, mc=45 * on, power=20 + 58 * on, cpu=5, run=5, busy=4)
    t.phase(1200, wave, every=1.4)
    return sick("data-starved", 0, 300, "cpu")


def s12(t):
    for i in range(25):
        t.mem_extra = 0.25 * i - 20
        t.phase(120, lambda now: TR.but(mem=40 + 3 * ((now % 10) / 5 - 1)), every=2)
        t.epoch = (t.epoch or 0) + 1
    t.mem_extra = 0
    return sick("memory-leak", 0, 2400, "gpu")


def s14(t):
    onset = t.onset(700)
    t.phase(onset, TR, every=2)
    for _ in range(60):
        t.line(OOM, "err")
        t.phase(3, TR, every=2)
    return sick("oom", onset, 5)


def s16(t):
    for pid in range(101, 105):
        t.process(pid, "started")
    onset = t.onset(2000)
    t.phase(onset, TR.but(mem=24), every=2)
    t.process(100, "exited", ppid=1)
    for pid in range(101, 105):
        t.process(pid, "reparented", ppid=1)
    t.main = False
    t.phase(900, QU.but(mem=24))
    return sick("orphans", onset, 30)


def s19(t):
    def uneven(i, _now):
        return TR.but(sm=97, mem=78) if i == 0 else TR.but(sm=35, mem=20)
    t.phase(900, TR, every=3, per_gpu=uneven)
    return sick("imbalanced", 0, 420)


def s20(t, name="hardware", fault=None):
    t.event("started", pid=100)
    onset = t.onset(2500)
    t.phase(onset, TR, every=2)
    fault(t)
    spin = SP.but(cpu=t.gpus, run=t.gpus, busy=t.gpus)
    t.phase(600, spin, per_gpu=lambda i, _now: spin if i != 2 else QU)
    return sick(name, onset, 10)


def xid(code):
    return lambda t: t.event("gpu", gpu=2, change="xid", code=code)


def s20_lost(t):
    def lost(t):
        t.event("gpu", gpu=2, change="xid", code=79)
        t.event("gpu", gpu=2, change="lost")
    return s20(t, fault=lost)


def s20_reset(t):
    return s20(t, fault=xid(95))


def s20_ecc(t):
    def ecc(t):
        t.ecc[2] = 1
    return s20(t, fault=ecc)


def goes_on(t, code, name):
    onset = t.onset(2500)
    t.phase(onset, TR, every=2)
    xid(code)(t)
    t.phase(120, TR, every=2)
    return sick(name, onset, 10)


def s20_program(t):
    return goes_on(t, 31, "program-fault")


def s20_info(t):
    return goes_on(t, 63, "xid-info")


# name: function, GPUs
FAMILIES = {
    "H01": (h01, 1), "H02": (h02, 1), "H04": (h04, 1), "H06": (h06, 1), "H08": (h08, 1),
    "H10": (h10, 1), "H12": (h12, 1), "H14": (h14, 1), "H15": (h15, 1), "H19": (h19, 1),
    "S01": (s01, 8), "S03": (s03, 1), "S05": (s05, 1), "S08": (s08, 1), "S08b": (s08b, 1),
    "S10": (s10, 1), "S12": (s12, 1), "S14": (s14, 1), "S16": (s16, 1), "S19": (s19, 4),
    "S20": (s20_lost, 8), "S20reset": (s20_reset, 8), "S20ecc": (s20_ecc, 8),
    "S20program": (s20_program, 8), "S20info": (s20_info, 8),
}
