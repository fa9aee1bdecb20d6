"""Sick families that were written before the rules were tried on them.

Each docstring says what a careful human sees, and by when he is sure.
"""

from families import WORKERS, sick, spinning
from trace import MAIN, NC, QU, SP, TR, State, cp


def hang_in_evaluation(t):
    """Five evaluations of two minutes on four cores, and in the sixth everything falls asleep after
    40 s. The CPU was busy in all of them: five minutes of nothing are no evaluation."""
    for _ in range(5):
        t.phase(600, TR, every=1)
        t.phase(t.lasting(120), cp(4))
    t.phase(600, TR, every=1)
    t.phase(40, cp(4))
    onset = t.t
    t.phase(t.lasting(1500), QU)
    return sick("stalled", onset, 240, 420)


def no_first_step(t):
    """Two busy minutes of start, a context and 3 GiB, and then nothing ever: held for nothing."""
    t.phase(t.lasting(120), cp(4).but(mem=3, forks=1))
    onset = t.t
    t.phase(t.lasting(1500), QU.but(mem=3))
    return sick(("idle-holding", "stalled"), onset, 480, 720)


def storage_is_gone(t):
    """Checkpoints took a minute, bytes moving. This one has been on the disk for minutes without a
    byte."""
    for _ in range(3):
        t.phase(t.lasting(900), TR, every=2)
        t.phase(t.lasting(60), QU.but(disk=1, write=200, io_pressure=50))
    t.phase(t.lasting(900), TR, every=2)
    onset = t.t
    t.process(MAIN, "blocked", on="net-fs")
    t.phase(t.lasting(1200), QU.but(disk=1, io_pressure=90))
    return sick("stalled", onset, 200, 360, "storage")


def rank_is_gone(t):
    """Rank 5 of 8 died without a word, its card is empty, its peers wait in a collective."""
    onset = t.onset(1800)
    t.phase(onset, TR, every=3)
    t.process(MAIN + 5, "exited", rank=5, code=None, signal=9)
    spin = SP.but(cpu=7, run=7, busy=7)
    gone = NC.but(power="off")
    t.phase(t.lasting(900), spin, per_gpu=lambda i, _now: gone if i == 5 else spin)
    return sick("stalled", onset, 60, 120, "lost-rank")


def rank_is_a_zombie(t):
    """The same, where the launcher doesn't reap: the rank is a zombie."""
    onset = t.onset(1800)
    t.phase(onset, TR, every=3)
    t.process(MAIN + 5, "zombie", rank=5)
    spin = SP.but(cpu=7, run=7, busy=7, zombie=1)
    gone = NC.but(power="off")
    t.phase(t.lasting(900), spin, per_gpu=lambda i, _now: gone if i == 5 else spin)
    return sick("stalled", onset, 60, 120, "lost-rank", also=("defunct",))


def bar_still_ticks(t):
    """A progress bar is drawn each second with a growing time and the same count; everything that
    works is asleep."""
    onset = t.onset(1200)
    t.phase(onset, TR, every=2)
    end = t.t + t.lasting(900)
    while t.t < end:
        t.out_bytes += 80
        t.phase(1, QU.but(cpu=0.03))
    return sick("stalled", onset, 180, 300)


def slice_spins(t):
    """A kernel that never ends, on a MIG slice: no use is told. Power is a hang's, a core is
    busy with waiting, steps have stopped."""
    t.mask = "no-utilisation"
    onset = t.onset(1500)
    t.phase(onset, TR.but(mem=8), every=2)
    t.phase(t.lasting(900), SP.but(mem=8, cpu=1, run=1, busy=1))
    return sick("stalled", onset, 120, 300)


def host_leak(t):
    """Host memory: 120 MiB more each epoch of 150 s, under the noise of buffers; 24 GiB allowed."""
    length = t.lasting(150)
    for epoch in range(24):
        grown = 120 * epoch
        teeth = [TR.but(rss=9000 + grown + 200 * k, anon=6000 + grown + 100 * k, mem_limit=24576) for k in range(8)]
        t.phase(length, lambda now: teeth[now % 8], every=2)
        t.advance("epoch")
    return sick("memory-leak", 0, 1500, 2700, "host")


def leak_without_epochs(t):
    """A third of a GiB more of the card every ten minutes; nothing but steps is printed."""
    def state(now):
        return states[now // 60]
    states = [TR.but(mem=round(30 + 0.35 * minute / 10, 3)) for minute in range(200)]
    t.phase(3 * 3600, state, every=3)
    return sick("memory-leak", 0, 5400, 7800, "gpu")


def hot_and_slow(t):
    """A fan died: the card protects itself 60 % of the time, clocks fall by a third, steps take
    half as long again."""
    onset = t.onset(1500)
    t.phase(onset, TR.but(temp=70), every=2)
    slow = TR.but(throttle="hw_thermal_slowdown", clock=0.66, temp=88, power=55)
    better = TR.but(clock=0.7, temp=87, power=58)
    t.phase(t.lasting(900), lambda now: slow if now % 5 < 3 else better, every=3)
    return sick("throttled", onset, 60, 150, also=("overheating",))


def nearly_too_hot(t):
    """One degree under its slowdown temperature, minute after minute, not slowed yet."""
    t.record(slowdown_c=89)
    onset = t.onset(1200)
    t.phase(onset, TR.but(temp=74), every=2)
    t.phase(t.lasting(600), TR.but(temp=88), every=2)
    return sick("overheating", onset, 60, 120)


FAST = TR.but(cpu=2, main=0.5, run=1, busy=0)


def disk_is_slow(t):
    """Two busy seconds, six of waiting for a disk at its end; workers asleep on it."""
    works = FAST.but(read=150, io_pressure=55, disk=2)
    waits = QU.but(cpu=0.3, main=0.02, read=150, io_pressure=55, disk=4)
    t.phase(t.lasting(2400), lambda now: works if now % 8 < 2 else waits, every=8)
    return sick("data-starved", 0, 120, 300, "io")


def python_feeds(t):
    """Augmentation in the main process (num_workers=0): one full core, the GPU works one second
    of three."""
    works = TR.but(cpu=1, main=1, run=1, busy=1)
    waits = QU.but(cpu=1, main=1, run=1, busy=1)
    t.phase(t.lasting(2400), lambda now: works if now % 3 == 0 else waits, every=3)
    return sick("data-starved", 0, 120, 300, "python")


def workers_too_few(t):
    """Two workers at full speed: five busy seconds, five of waiting for the next few batches."""
    works = TR.but(cpu=2.4, main=0.4, run=3, busy=2)
    waits = QU.but(cpu=2, main=0.02, run=2, busy=2)
    t.phase(t.lasting(2400), lambda now: works if now % 10 < 5 else waits, every=2.5)
    return sick("data-starved", 0, 120, 300, "cpu")


def one_is_slow(t):
    """GPU 3 of 8 runs at 60 % of its clock; its peers finish early and wait, two seconds of five."""
    slow = TR.but(clock=0.6)
    t.phase(t.lasting(1500), TR, every=5,
            per_gpu=lambda i, now: slow if i == 3 else SP if now % 5 < 2 else TR)
    return sick("imbalanced", 0, 120, 420, "straggler")


def dead_helper(t):
    """A worker died, nobody reaps it, its memory stays taken; the others go on."""
    onset = t.onset(900)
    t.phase(onset, TR, every=2)
    t.process(MAIN + 3, "zombie")
    t.phase(t.lasting(600), TR.but(zombie=1), every=2)
    return sick("defunct", onset, 20, 45)


def killed_for_memory(t):
    """The kernel killed a worker for the host's memory, and says so in its counter."""
    onset = t.onset(1500)
    t.phase(onset, TR.but(mem_limit=32768, anon=30000, rss=31000), every=2)
    t.event("host", oom_kill=1)
    t.process(MAIN + 2, "exited", code=None, signal=9)
    t.phase(t.lasting(300), QU.but(mem_limit=32768, anon=9000, rss=10000))
    return sick("host-oom", onset, 3, 10, also=("stalled",))


def diverged(t):
    """The loss is nan from here on, a step each five seconds."""
    onset = t.onset(1500)
    t.phase(onset, TR, every=5)
    t.loss = "nan"
    t.phase(t.lasting(300), TR, every=5)
    return sick("nan", onset, 15, 30)


def short_on_the_cpu(t):
    """A run of 50 s, all of it on the CPU, on a machine with a free card: to be said at its end."""
    t.phase(8, NC.but(cpu=1, run=1))
    t.phase(42, NC.but(cpu=16, run=16, busy=15, procs=16), every=0.7)
    t.event("exited", code=0, signal=None)
    return sick("gpu-unused", 0, 50, 55)


def cpu_after_restart(t):
    """The trainer restarted itself after an error, found no GPU, and goes on ten times slower."""
    onset = t.onset(1200)
    t.phase(onset, TR, every=1)
    for pid in WORKERS:
        t.process(pid, "exited", code=1)
        t.process(pid + 1000, "started")
    t.phase(t.lasting(1800), NC.but(cpu=16, run=16, busy=15, procs=16), every=10)
    return sick("gpu-unused", onset, 120, 240)


def card_fills(t):
    """A GiB more each hundred seconds: the card passes 92 %, and will be full in ten minutes."""
    onset = None
    for k in range(26):
        mem = 54 + k
        if onset is None and mem > 0.92 * 80:
            onset = t.t
        t.phase(100, TR.but(mem=mem), every=2)
    return sick("near-oom", onset, 60, 150, "gpu", also=("memory-leak",))


def after_long_evaluations(t):
    """Three evaluations of five minutes were seen; this silence falls far from their place, and
    this time no core works."""
    for _ in range(3):
        t.phase(900, TR, every=2)
        t.phase(t.lasting(300), cp(2))
    t.phase(400, TR, every=2)
    onset = t.t
    t.phase(t.lasting(1500), QU)
    return sick("stalled", onset, 180, 420)


def one_core_spins(t):
    """An epoch every quarter of an hour. In the middle of the ninth the card goes quiet, and the
    main process spins on a lock with a full core."""
    t.phase(8 * 900, TR, every=900, by="epoch", first=900)
    t.phase(t.lasting(450), TR)
    onset = t.t
    t.phase(t.lasting(1800), QU.but(cpu=1, run=1, busy=1))
    return sick("stalled", onset, 240, 600)


def seven_spin(t):
    """One of eight ranks waits for its loader and the others for it."""
    onset = t.onset(2000)
    t.phase(onset, TR, every=2)
    spin = SP.but(cpu=7, run=7, busy=7)
    for pid in WORKERS:
        t.process(pid, "blocked", on="pipe")
    t.phase(t.lasting(900), spin, per_gpu=lambda i, _now: QU if i == 6 else spin)
    return sick("stalled", onset, 120, 240)


def never_exits(t):
    """The last of 900 steps is done, and the process doesn't end: it holds the card, asleep."""
    t.steps = 900
    onset = 1850
    t.phase(onset, TR, every=2)
    t.step = t.steps
    t.phase(t.lasting(1500), QU)
    return sick(("stalled", "idle-holding"), onset, 300, 660)


def text_goes_on(t):
    """Each rank prints a heartbeat every ten seconds, and all of them spin in a collective."""
    onset = t.onset(2400)
    t.phase(onset, TR, every=4)
    spin = spinning(t)
    end = t.t + t.lasting(900)
    while t.t < end:
        t.out_bytes += 1600
        t.phase(10, spin)
    return sick("stalled", onset, 60, 120, "spin")


def tensorflow_oom(t):
    """TensorFlow asks for more than there is and ends."""
    onset = t.onset(300)
    t.phase(onset, TR.but(mem=76), every=1)
    t.line("tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node __wrapped__Conv2D}} "
           "OOM when allocating tensor with shape[512,64,224,224] and type float on GPU:0 [Op:Conv2D]", "err")
    t.phase(3, QU)
    t.event("exited", code=1, signal=None)
    return sick("oom", onset, 3, 5)


def link_fails(t):
    """XID 74: an NVLink error, after which all ranks spin."""
    onset = t.onset(2000)
    t.phase(onset, TR, every=2)
    t.event("gpu", gpu=1, change="xid", code=74)
    t.phase(t.lasting(600), spinning(t))
    return sick("hardware", onset, 3, 10)


def card_vanishes(t):
    """A card is lost without any XID."""
    onset = t.onset(2000)
    t.phase(onset, TR, every=2)
    t.event("gpu", gpu=3, change="lost")
    spin = spinning(t)
    t.phase(t.lasting(600), spin, per_gpu=lambda i, _now: None if i == 3 else spin)
    return sick("hardware", onset, 3, 10)


def busy_neighbour(t):
    """Our job fell asleep while somebody else's keeps the same card at full power."""
    t.mask = "none"
    onset = t.onset(1500)
    ours = TR.but(mem=10, other_mem=30, sm=45, other_sm=99)
    t.phase(onset, ours, every=2)
    t.phase(t.lasting(1200), ours.but(sm=0, cpu=0.01, run=0, busy=0, read=0))
    return sick("stalled", onset, 180, 420)


def one_rank_stopped(t):
    """Somebody stopped one rank of four by a signal; its peers wait for it."""
    onset = t.onset(1500)
    t.phase(onset, TR, every=2)
    t.process(MAIN + 2, "stopped", rank=2)
    spin = SP.but(cpu=3, run=3, busy=3)
    t.phase(t.lasting(900), spin, per_gpu=lambda i, _now: QU if i == 2 else spin)
    return sick("stalled", onset, 120, 300)


def dead_after_continue(t):
    """Stopped for ten minutes and continued, but the job doesn't come back: a connection was lost
    meanwhile."""
    t.phase(t.onset(1200), TR, every=2)
    for pid in range(MAIN, MAIN + 5):
        t.process(pid, "stopped")
    t.phase(t.lasting(600), QU.but(stopped=True, cpu=0))
    for pid in range(MAIN, MAIN + 5):
        t.process(pid, "continued")
    onset = t.t
    t.phase(t.lasting(1200), QU)
    return sick("stalled", onset, 180, 360)


def tiny_model_hangs(t):
    """A network too small for the card to notice: only its steps and a fifth of a core tell that it
    works, and both cease."""
    tiny = State(sm=5, mc=0, power="idle", pcie=0.4, cpu=0.2, run=1, mem=0.6)
    onset = t.onset(1500)
    t.phase(onset, tiny, every=0.5)
    t.phase(t.lasting(900), QU.but(mem=0.6))
    return sick("stalled", onset, 180, 660)


def sleeps_between_percents(t):
    """Only a percentage, each minute; after a third of them everything sleeps."""
    for percent in range(34):
        t.phase(t.gap(60), TR)
        t.percent = percent + 1
        t.out_bytes += 8
    onset = t.t
    t.phase(t.lasting(1200), QU)
    return sick("stalled", onset, 240, 420)


def environments_hang(t):
    """Reinforcement learning: thirty environments were busy, and one of them doesn't answer."""
    for _ in range(60):
        t.phase(t.random.uniform(20, 60), cp(30).but(procs=32))
        t.phase(t.random.uniform(5, 15), TR)
        t.advance("step")
    t.phase(10, cp(30).but(procs=32))
    onset = t.t
    t.phase(t.lasting(1200), QU.but(procs=32))
    return sick("stalled", onset, 180, 420)


def hang_after_blindness(t):
    """The driver hung for two minutes; when readings come back the job sleeps for good."""
    t.phase(t.onset(1500), TR, every=2)
    t.sampled = False
    t.phase(120, TR, every=2)
    t.sampled = True
    t.phase(30, TR, every=2)
    onset = t.t
    t.phase(t.lasting(900), QU)
    return sick("stalled", onset, 180, 360)


SICK = {
    "hang-in-evaluation": (1, [hang_in_evaluation]), "no-first-step": (1, [no_first_step]),
    "storage-is-gone": (1, [storage_is_gone]), "rank-is-gone": (8, [rank_is_gone, rank_is_a_zombie]),
    "bar-still-ticks": (1, [bar_still_ticks]), "slice-spins": (1, [slice_spins]), "host-leak": (1, [host_leak]),
    "leak-without-epochs": (1, [leak_without_epochs]), "hot-and-slow": (1, [hot_and_slow]),
    "nearly-too-hot": (1, [nearly_too_hot]), "disk-is-slow": (1, [disk_is_slow]), "python-feeds": (1, [python_feeds]),
    "workers-too-few": (1, [workers_too_few]), "one-is-slow": (8, [one_is_slow]), "dead-helper": (1, [dead_helper]),
    "killed-for-memory": (1, [killed_for_memory]), "diverged": (1, [diverged]),
    "short-on-the-cpu": (1, [short_on_the_cpu]), "cpu-after-restart": (1, [cpu_after_restart]),
    "card-fills": (1, [card_fills]), "after-long-evaluations": (1, [after_long_evaluations]),
    "one-core-spins": (1, [one_core_spins]), "seven-spin": (8, [seven_spin]), "never-exits": (1, [never_exits]),
    "text-goes-on": (8, [text_goes_on]), "tensorflow-oom": (1, [tensorflow_oom]), "link-fails": (8, [link_fails]),
    "card-vanishes": (8, [card_vanishes]), "busy-neighbour": (1, [busy_neighbour]),
    "one-rank-stopped": (4, [one_rank_stopped]), "dead-after-continue": (1, [dead_after_continue]),
    "tiny-model-hangs": (1, [tiny_model_hangs]), "sleeps-between-percents": (1, [sleeps_between_percents]),
    "environments-hang": (1, [environments_hang]), "hang-after-blindness": (1, [hang_after_blindness]),
}
