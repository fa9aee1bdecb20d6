"""Growth, heat and balance: healthy runs that look alike, and sick ones."""

from families import healthy, sick
from trace import QU, SP, TR, State, cp


def epochs(t, n, seconds, state, every=2):
    """`state(epoch, second)` over so many epochs, each shown when it begins."""
    for i in range(n):
        began = t.t
        t.epoch = i + 1
        t.phase(seconds, lambda now, i=i, began=began: state(i, now - began), every=every)


def bucketing(t):
    """Batches by length: the allocator keeps the largest so far, and gives some back at times."""
    held, most = 20.0, 20.0

    def batch(_epoch, second):
        nonlocal held, most
        most = max(most, 20 + t.random.lognormvariate(1.5, 0.5))
        held = most if second else held
        return TR.but(mem=held - t.random.uniform(0, 2))
    epochs(t, 30, t.lasting(240), batch)
    return healthy()


def fills_card(t):
    """A caching allocator that takes the card in steps and then stays."""
    level = 30.0

    def step(_epoch, _second):
        nonlocal level
        if t.random.random() < 0.004:
            level += (78.5 - level) * t.random.uniform(0.2, 0.5)
        return TR.but(mem=level)
    epochs(t, 20, t.lasting(600), step)
    return healthy()


def larger_evaluation(t):
    for i in range(12):
        t.epoch = i + 1
        t.phase(t.lasting(500), TR.but(mem=30), every=2)
        t.phase(t.lasting(60), TR.but(sm=60, mc=25, mem=74 + i % 3))
    return healthy()


def preallocated(t):
    t.phase(t.lasting(40), cp(2).but(mem=0.4))
    t.phase(t.lasting(7200), TR.but(mem=78.6), every=2)
    return healthy()


def replay_buffer(t):
    full = t.random.uniform(15, 40) * 1024
    pace = full / t.lasting(4 * 3600)

    def acts(now):
        return State(sm=30, mc=8, power=40, pcie=20, cpu=6, run=6, busy=4, mem=6,
                     anon=3000 + min(full, pace * now), mem_limit=262144)
    t.phase(7 * 3600, acts, every=1)
    return healthy()


def data_cache(t):
    first = t.lasting(1800)
    size = t.random.uniform(10, 100) * 1024

    def reads(epoch, second):
        part = min(1, second / first) if epoch == 0 else 1
        return TR.but(anon=3000 + size * part, read=60 if epoch == 0 else 0, mem_limit=131072)
    epochs(t, 8, first, reads)
    return healthy()


def heap(t):
    """Main memory that goes up and down as heaps do, without a trend."""
    level, lasts = 0.0, t.lasting(150)

    def moves(_epoch, second):
        nonlocal level
        if second == 0:
            level = 0.8 * level + 0.6 * t.random.gauss(0, 200)
        return TR.but(anon=6000 + level + 200 * t.random.random(), mem_limit=32768)
    epochs(t, 120, lasts, moves)
    return healthy()


def checkpoint_in_memory(t):
    """Each epoch ends with a copy of everything in shared memory, written out by and by."""
    lasts = t.lasting(600)

    def trains(epoch, second):
        saves = second > lasts - 40 and 30000 + 100 * epoch
        return TR.but(shmem=500 + saves, write=200 if saves else 0, mem_limit=65536)
    epochs(t, 12, lasts, trains)
    return healthy()


def one_of_four(t):
    idle = QU.but(mem=0.4)
    t.phase(t.lasting(3600), TR, every=2, per_gpu=lambda i, _now: idle if i else TR)
    return healthy()


def loads_in_turn(t):
    for loaded in range(4):
        t.phase(t.lasting(300), cp(1), per_gpu=lambda i, _now, n=loaded: QU.but(
            mem=60 if i <= n else 0.4, pcie=3000 if i == n else 0))
    t.phase(t.lasting(1800), TR.but(mem=70), every=2)
    return healthy()


def long_evaluation_of_one(t):
    spin = SP.but(cpu=4, run=4, busy=4)
    for _ in range(3):
        t.phase(t.lasting(1200), TR, every=2)
        t.phase(t.lasting(600), spin, per_gpu=lambda i, _now: spin if i else TR.but(sm=60, mc=25))
    return healthy()


def warm_room(t):
    """Heat that the driver reports now and then, and that costs next to nothing."""
    def warm(now):
        hot = now % 60 < 20
        return TR.but(throttle="sw_thermal" if hot else "none", clock=0.95 if hot else 1.0, temp=83)
    t.phase(t.lasting(7200), warm, every=2)
    return healthy()


def slow_card(t, by_second=True):
    """One of four at 60 % of its clock; the others wait 40 % of the time."""
    waits = SP.but(cpu=4, run=4, busy=4)
    half = TR.but(sm=97, mc=27, power=55, pcie=480)

    def card(i, now):
        if i == 2:
            return TR.but(clock=0.6)
        return (waits if now % 5 < 2 else TR) if by_second else half
    t.phase(900, TR, every=3, per_gpu=card)
    return sick("imbalanced", 0, 280, 420, "straggler")


def slow_card_mean(t):
    return slow_card(t, by_second=False)


def waits_for_one(t):
    """One rank does more between its steps, at full clock: the others spin."""
    waits = SP.but(cpu=4, run=4, busy=4)
    t.phase(900, TR, every=3, per_gpu=lambda i, now: waits if i != 1 and now % 5 < 2 else TR)
    return sick("imbalanced", 0, 280, 420, "straggler")


def late_leak(t):
    epochs(t, 60, 120, lambda epoch, _s: TR.but(mem=20 + 0.4 * max(0, epoch - 39)))
    return sick("memory-leak", 39 * 120, 1066, 1600, "gpu")


def host_leak(t):
    epochs(t, 25, 120, lambda epoch, _s: TR.but(anon=4000 + 40 * epoch, mem_limit=16384))
    return sick("memory-leak", 0, 1600, 2400, "host")


def noisy_leak(t):
    """Batches of all sizes on top of it."""
    epochs(t, 40, 120, lambda epoch, _s: TR.but(mem=20 + 0.25 * epoch + t.random.uniform(0, 6)))
    return sick("memory-leak", 0, 2400, 3600, "gpu")


def fills_up(t):
    """A GiB a minute, from 20 GiB on."""
    began = t.lasting(600)
    t.phase(began, TR.but(mem=20), every=2)
    t.phase(3400, lambda now: TR.but(mem=20 + (now - began) / 60), every=2)
    return sick("near-oom", began + 53 * 60, 120, 180, "gpu")


def hot_card(t):
    onset = t.onset(1500)
    t.phase(onset, TR, every=2)
    hot = TR.but(clock=0.7, throttle="hw_slowdown+hw_thermal_slowdown", temp=92)
    t.phase(600, TR, every=2.6, per_gpu=lambda i, _now: TR if i else hot)
    return sick("throttled", onset, 60, 90)


GROWTH = {
    "bucketing": (1, [bucketing]), "fills-card": (1, [fills_card]),
    "larger-evaluation": (1, [larger_evaluation]), "preallocated": (1, [preallocated]),
    "replay-buffer": (1, [replay_buffer]), "data-cache": (1, [data_cache]), "heap": (1, [heap]),
    "checkpoint-in-memory": (1, [checkpoint_in_memory]), "one-of-four": (4, [one_of_four]),
    "loads-in-turn": (4, [loads_in_turn]), "long-evaluation-of-one": (4, [long_evaluation_of_one]),
    "warm-room": (1, [warm_room]), "slow-card": (4, [slow_card]), "slow-card-mean": (4, [slow_card_mean]),
    "waits-for-one": (4, [waits_for_one]), "late-leak": (1, [late_leak]), "host-leak": (1, [host_leak]),
    "noisy-leak": (1, [noisy_leak]), "fills-up": (1, [fills_up]), "hot-card": (2, [hot_card]),
}
