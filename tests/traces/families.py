"""The twenty families of the benchmark: healthy runs that look sick and the other way round.

Each function fills a trace and returns what is true of it (`healthy`, `sick`). A family may have
variants, each of which is a trace of its own for each seed.
"""

from trace import MAIN, NC, QU, SP, TR, State, cp

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (skipping batch)"
WORKERS = range(MAIN + 1, MAIN + 5)


def healthy(note=None, within=None, since=None, most=None):
    """No alarm is allowed. `note` should be said, where `within` is given in so many seconds
    from `since` on, and at most `most` times."""
    return {"expect": None, "note": note, "within": within, "since": since, "most": most}


def sick(names, onset, sure, deadline, cause=None, also=(), **more):
    """One of `names` should be said within `deadline` seconds of the onset. A careful human is
    `sure` so many seconds after it. Alarms named in `also` are right too, and nobody waits for
    them."""
    names = [names] if isinstance(names, str) else list(names)
    return {"expect": names, "onset": onset, "sure": sure, "deadline": deadline, "cause": cause,
            "also": list(also), **more}


def h01(t):
    """A start with 6 min of compilation."""
    t.phase(t.lasting(25), NC.but(cpu=1, run=1))
    load = t.lasting(15)
    for i in range(load):
        t.phase(1, State(mem=18 * (i + 1) / load, pcie=3000, read=500, cpu=1, run=1))
    quiet = cp(4).but(mem=18)
    blip = quiet.but(sm=30, power=30)
    starts, blip_starts = quiet.but(forks=1), blip.but(forks=1)

    def compiles(now):
        if now % 20 < 2:
            return blip_starts if now % 5 == 0 else blip
        return starts if now % 5 == 0 else quiet
    t.phase(t.lasting(360), compiles)
    t.phase(t.lasting(3600), TR, every=2)
    return healthy("starting")


def h02(t):
    """A download and half an hour of tokenising before the GPU is touched."""
    t.phase(t.lasting(900), NC.but(read=60), every=1, by="percent")
    t.percent = 0
    t.phase(t.lasting(1800), NC.but(cpu=16, read=40, run=16, busy=16, procs=20), every=10, by="percent")
    t.phase(t.lasting(3600), TR, every=2)
    return healthy("preparing")


def h04(t):
    """A line only at an epoch's end."""
    for _ in range(3):
        t.phase(t.lasting(3600), TR)
        t.phase(t.lasting(90), TR.but(sm=60, mc=25))
        t.advance("epoch")
    t.phase(5, TR)
    return healthy()


def h06(t):
    """Checkpoints to slow storage."""
    for _ in range(5):
        t.phase(t.lasting(1800), TR, every=3)
        wait = min(500, 150 * t.random.lognormvariate(0, 0.5))
        t.phase(wait, QU.but(disk=1, write=200, io_pressure=60))
    return healthy("checkpointing")


def h08(t):
    """Reinforcement learning: the environment runs on the CPU."""
    while t.t < 4 * 3600:
        t.phase(t.random.uniform(9, 135), cp(30).but(procs=32))
        t.phase(t.random.uniform(3, 45), TR)
        t.advance("step")
    return healthy("cpu-bound", most=1)


def h10(t):
    """A notebook whose user thinks between cells."""
    t.process(200, "started", name="ipykernel_launch")
    for _ in range(4):
        t.phase(t.lasting(300), TR.but(mem=14))
        t.phase(t.lasting(3000), QU.but(mem=14))
    return healthy("idle-interactive", most=1 + t.t // 3600)


def h12(t):
    """A line every three minutes, the first after four."""
    t.phase(t.lasting(70), cp(1))
    t.phase(t.lasting(14400), TR, every=190, first=190)
    return healthy()


def h14(t):
    """A debugger waits for a person."""
    t.phase(t.lasting(1500), TR, every=2)
    asked = t.t
    t.line("(Pdb) ")
    t.process(MAIN, "blocked", on="terminal")
    t.phase(t.lasting(3600), QU)
    return healthy("waiting-for-input", 15, asked)


def h15(t):
    """Stopped by Ctrl-Z, and continued."""
    job = range(MAIN, MAIN + 5)
    t.phase(t.lasting(1200), TR, every=2)
    stopped = t.t
    for pid in job:
        t.process(pid, "stopped")
    t.phase(t.lasting(3600), QU.but(stopped=True))
    for pid in job:
        t.process(pid, "continued")
    t.phase(t.lasting(1200), TR, every=2)
    return healthy("suspended", 10, stopped)


def h19(t):
    """At its power limit nearly always, which is normal."""
    capped, free = TR.but(throttle="sw_power_cap", clock=0.96), TR.but(clock=0.96)
    evaluates = QU.but(throttle="gpu_idle", cpu=1, run=1)
    end = t.t + t.lasting(7200)
    while t.t < end:
        t.phase(t.lasting(900), lambda now: capped if now % 20 else free, every=2)
        t.phase(t.lasting(60), evaluates)
    return healthy()


def spinning(t):
    """Each rank keeps a core busy with waiting."""
    return SP.but(cpu=t.gpus, run=t.gpus, busy=t.gpus)


def s01(t):
    """A collective that never ends."""
    onset = t.onset(3600)
    while t.t < onset:
        t.phase(min(600, onset - t.t), TR, every=2)
        t.phase(min(t.lasting(60), onset - t.t), TR.but(sm=60, mc=25))
    t.phase(t.lasting(900), spinning(t))
    return sick("stalled", onset, 60, 120, "spin")


def s03(t):
    """The loader's workers wait for a lock."""
    onset = t.onset(900)
    t.phase(onset, TR, every=2)
    for pid in WORKERS:
        t.process(pid, "blocked", on="futex")
    t.phase(t.lasting(900), QU)
    return sick("stalled", onset, 120, 300, "asleep")


def s05(t):
    """A line an hour; everything sleeps in the middle of the third epoch."""
    onset = t.onset(8200)
    t.phase(onset, TR, every=3600, by="epoch")
    t.phase(t.lasting(1200), QU)
    return sick("stalled", onset, 180, 300)


def s08(t, line=True):
    """The GPU isn't used: TensorFlow says why."""
    t.phase(t.lasting(30), NC.but(cpu=2, run=2, busy=2))
    if line:
        t.line("Skipping registering GPU devices...", "err")
    t.phase(t.lasting(3600), NC.but(cpu=32, run=32, busy=32, procs=37), every=1.2)
    if line:
        return sick("gpu-unused", 0, 30, 120, "library-missing")
    return sick("gpu-unused", 0, 120, 180, "unknown")


def s08_silent(t):
    """The GPU isn't used, and nothing says why."""
    return s08(t, line=False)


FED = TR.but(cpu=4.3, main=0.3, run=4, busy=4)
STARVED = FED.but(sm=0, mc=0, power="idle", pcie=0)


def s10(t):
    """Four workers at full speed feed a GPU that waits for them; use is read in an instant."""
    t.phase(t.lasting(3600), lambda now: FED if now % 1.4 < 0.49 else STARVED, every=1.4)
    return sick("data-starved", 0, 120, 300, "cpu")


def s10_mean(t):
    """The same, where a reading is the mean of its second."""
    # Where in its period of 1.4 s a whole second begins: one of seven places.
    means = []
    for place in range(7):
        on = sum((place / 5 + k / 50) % 1.4 < 0.49 for k in range(50)) / 50
        means.append(FED.but(sm=95 * on, mc=45 * on, pcie=800 * on, power=25 + 55 * on))
    t.phase(t.lasting(3600), lambda now: means[now * 5 % 7], every=1.4)
    return sick("data-starved", 0, 120, 300, "cpu")


def s12(t):
    """A quarter of a GiB more in each epoch, under a saw of 6 GiB."""
    period = t.random.randint(5, 40)
    for epoch in range(26):
        floor = 17 + 0.25 * epoch
        teeth = [TR.but(mem=floor + 6 * k / period) for k in range(period)]
        length = t.lasting(120) if epoch == 0 else length
        t.phase(length, lambda now: teeth[now % period], every=2)
        t.advance("epoch")
    full = (80 - 20) / 0.25 * length
    return sick("memory-leak", 0, 1200, 2400, "gpu", hours_to_limit=[full, 0.25])


def s14(t):
    """Batches that don't fit are skipped, and the run goes on."""
    onset = t.onset(700)
    t.phase(onset, TR, every=2)
    for _ in range(60):
        t.line(OOM, "err")
        t.phase(3, TR, every=2)
    return sick("oom", onset, 3, 5)


def s16(t):
    """The main process ended; its workers hold the GPU's memory."""
    for pid in WORKERS:
        t.process(pid, "started")
    onset = t.onset(2000)
    t.phase(onset, TR.but(mem=24), every=2)
    t.process(MAIN, "exited", ppid=1)
    for pid in WORKERS:
        t.process(pid, "reparented", ppid=1)
    t.main = False
    t.phase(t.lasting(900), QU.but(mem=24, procs=4))
    return sick("orphans", onset, 10, 30)


def s19(t):
    """One of four GPUs has nearly all of the work."""
    full, light = TR.but(sm=97, mem=78), TR.but(sm=35, mem=20)
    t.phase(t.lasting(1200), TR, every=3, per_gpu=lambda i, _now: light if i else full)
    return sick("imbalanced", 0, 120, 420)


def s19_slow(t):
    """One of four GPUs is slow, and the others wait for it 40 % of the time."""
    slow = TR.but(clock=0.6)
    waits = {second: t.random.random() < 0.4 for second in range(5000)}
    t.phase(t.lasting(1200), TR, every=3,
            per_gpu=lambda i, now: slow if i == 2 else SP if waits[now] else TR)
    return sick("imbalanced", 0, 120, 420, "straggler")


def s20(t):
    """A GPU falls off the bus, and its peers wait for it."""
    t.event("started", pid=MAIN)
    onset = t.onset(2500)
    t.phase(onset, TR, every=2)
    t.event("gpu", gpu=2, change="xid", code=79)
    t.event("gpu", gpu=2, change="lost")
    spin = spinning(t)
    t.phase(t.lasting(600), spin, per_gpu=lambda i, _now: None if i == 2 else spin)
    return sick("hardware", onset, 3, 10)


def broken(t, code):
    """A GPU no longer answers its rank, and its peers wait for it."""
    t.event("started", pid=MAIN)
    onset = t.onset(2500)
    t.phase(onset, TR, every=2)
    if code:
        t.event("gpu", gpu=2, change="xid", code=code)
    else:
        t.ecc[2] = 1
    spin = spinning(t)
    t.phase(t.lasting(600), spin, per_gpu=lambda i, _now: QU if i == 2 else spin)
    return onset


def s20_reset(t):
    """XID 95: an uncontained memory error."""
    return sick("hardware", broken(t, 95), 3, 10)


def s20_ecc(t):
    """An uncorrectable memory error, by its counter alone."""
    return sick("hardware", broken(t, None), 3, 10)


def s20_program(t):
    """XID 31: the program's own fault, not the hardware's."""
    return sick("program-fault", broken(t, 31), 3, 10)


def s20_info(t):
    """XID 63: a row was remapped, and the run goes on."""
    onset = t.onset(2500)
    t.phase(onset, TR, every=2)
    t.event("gpu", gpu=2, change="xid", code=63)
    t.phase(t.lasting(600), TR, every=2)
    return healthy("xid-info", 10, onset)


# name: GPUs and the variants
FAMILIES = {
    "H01": (1, [h01]), "H02": (1, [h02]), "H04": (1, [h04]), "H06": (1, [h06]), "H08": (1, [h08]),
    "H10": (1, [h10]), "H12": (1, [h12]), "H14": (1, [h14]), "H15": (1, [h15]), "H19": (1, [h19]),
    "S01": (8, [s01]), "S03": (1, [s03]), "S05": (1, [s05]), "S08": (1, [s08, s08_silent]),
    "S10": (1, [s10, s10_mean]), "S12": (1, [s12]), "S14": (1, [s14]), "S16": (1, [s16]),
    "S19": (4, [s19, s19_slow]), "S20": (8, [s20, s20_reset, s20_ecc, s20_program, s20_info]),
}
