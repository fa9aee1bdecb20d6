"""Families besides those of the benchmark, known while the rules were made."""

from families import healthy, sick, spinning
from trace import NC, QU, SP, TR, State, cp


def cpu_evaluation(t):
    for _ in range(6):
        t.phase(t.lasting(900), TR, every=2)
        t.phase(t.lasting(180), cp(2))
    return healthy()


def sweep(t):
    for _ in range(10):
        t.step = 0
        t.phase(t.lasting(600), TR, every=2)
        t.phase(t.lasting(40), NC.but(cpu=1, run=1, forks=1))
    return healthy()


def rank0_evaluates(t):
    spin = spinning(t)
    evaluates = TR.but(sm=60, mc=25)
    for _ in range(4):
        t.phase(t.lasting(900), TR, every=2)
        t.phase(t.lasting(120), spin, per_gpu=lambda i, _now: spin if i else evaluates)
    return healthy()


def slow_steps(t):
    t.phase(t.lasting(4 * 3600), TR, every=300)
    return healthy()


SMALL = State(sm=12, mc=1, power=21, pcie=2, cpu=0.9, run=1, busy=1, mem=2)


def small_model(t):
    for _ in range(4):
        t.phase(t.lasting(1200), SMALL, every=1)
        t.phase(t.lasting(100), SMALL.but(sm=8))
    return healthy()


def saving_rank(t):
    for _ in range(4):
        t.phase(t.lasting(1800), TR, every=2)
        t.phase(t.lasting(100), spinning(t).but(write=200))
    return healthy()


def short_wait(t):
    for _ in range(3):
        t.phase(t.lasting(1200), TR, every=2)
        t.phase(t.lasting(85), QU.but(read=0.3, cpu=0.05))
    return healthy()


def silent_job(t):
    for _ in range(4):
        t.phase(t.lasting(1800), TR)
        t.phase(t.lasting(120), cp(1))
    return healthy()


def rare_lines(t):
    for _ in range(6):
        t.phase(t.lasting(1200), TR, every=60)
        t.phase(t.lasting(240), TR.but(sm=60, mc=25))
    return healthy()


def heartbeats(t):
    onset = t.onset(1800)
    t.phase(onset, TR, every=2)
    spin = spinning(t)
    for _ in range(60):
        t.out_bytes += 100
        t.phase(10, spin)
    return sick("stalled", onset, 60, 120, "spin")


def storage(t):
    onset = t.onset(1500)
    t.phase(onset, TR, every=2)
    t.phase(900, QU.but(disk=3))
    return sick("stalled", onset, 180, 300, "storage")


def never_begins(t):
    t.phase(t.lasting(40), cp(2).but(mem=5))
    onset = t.t
    t.phase(1200, QU.but(mem=5))
    return sick("idle-holding", onset, 600, 660)


def one_spins(t):
    onset = t.onset(1800)
    t.phase(onset, TR, every=2)
    spin = spinning(t)
    t.phase(900, spin, per_gpu=lambda i, _now: QU if i else spin)
    return sick("stalled", onset, 120, 300)


def after_evaluations(t):
    for _ in range(4):
        t.phase(600, TR, every=2)
        t.phase(t.lasting(60), cp(2))
    t.phase(200, TR, every=2)
    onset = t.t
    t.phase(900, QU)
    return sick("stalled", onset, 120, 300, "asleep")


def rare_hang(t):
    onset = t.onset(3000)
    t.phase(onset, TR, every=60)
    t.phase(900, QU)
    return sick("stalled", onset, 180, 400)


def lost_rank(t):
    onset = t.onset(1800)
    t.phase(onset, TR, every=2)
    t.process(103, "exited", rank=3, code=1)
    spin = SP.but(cpu=7, run=7, busy=7)
    t.phase(600, spin, per_gpu=lambda i, _now: spin if i != 3 else NC)
    return sick("stalled", onset, 60, 120, "lost-rank")


def no_number(t):
    onset = t.onset(900)
    t.phase(onset, TR, every=2)
    t.loss = "nan"
    t.phase(120, TR, every=2)
    return sick("nan", onset, 8, 12)


OTHERS = {
    "cpu-evaluation": (1, [cpu_evaluation]), "sweep": (1, [sweep]), "rank0-evaluates": (4, [rank0_evaluates]),
    "slow-steps": (1, [slow_steps]), "small-model": (1, [small_model]), "saving-rank": (8, [saving_rank]),
    "short-wait": (1, [short_wait]), "silent-job": (1, [silent_job]), "rare-lines": (1, [rare_lines]),
    "heartbeats": (8, [heartbeats]), "storage": (1, [storage]), "never-begins": (1, [never_begins]),
    "one-spins": (4, [one_spins]), "after-evaluations": (1, [after_evaluations]), "rare-hang": (1, [rare_hang]),
    "lost-rank": (8, [lost_rank]), "no-number": (1, [no_number]),
}
