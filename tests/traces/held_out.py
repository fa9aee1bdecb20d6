"""Healthy families that were written before the rules were tried on them.

They come from the situations that people report, not from the rules: nothing in here was changed
to please the judge. What each healthy run must be spared is in its docstring; the sick ones are
in `held_out_sick`.
"""

from families import healthy, spinning
from held_out_sick import SICK
from trace import MAIN, NC, QU, TR, State, cp


def replaced(t, pids, name="python"):
    """These processes end, and others take their place."""
    for pid in pids:
        t.process(pid, "exited", code=0)
        t.process(pid + 1000, "started", name=name)


def recompiles(t):
    """torch.compile meets new shapes in the middle: minutes of compiler workers, no step. The CPU
    is busy and compilers come and go, so it is work."""
    t.phase(t.lasting(300), cp(8).but(forks=2, mem=12))
    for length in (60, 240, 150):
        t.phase(t.lasting(1200), TR, every=1)
        t.phase(t.lasting(length), cp(8).but(forks=2))
    t.phase(t.lasting(1200), TR, every=1)
    return healthy()


def sweep_gaps(t):
    """A sweep: each trial is a new process, the card is empty between them, steps start at 0."""
    for trial in range(8):
        t.step = 0
        t.phase(t.lasting(900), TR.but(mem=t.random.choice([9, 20, 33])), every=2)
        replaced(t, [MAIN + 1 + trial])
        t.phase(t.random.uniform(30, 120), NC.but(cpu=0.8, run=1, forks=1, read=20))
    return healthy()


def metric_on_cpu(t):
    """Every 600 steps a metric (COCO, BLEU) is computed on six cores for minutes."""
    for _ in range(5):
        t.phase(t.lasting(600), TR, every=1)
        t.phase(t.lasting(240), cp(6))
    return healthy()


def low_duty(t):
    """PPO with a tiny network: the GPU hardly wakes, a dozen environments are busy, steps go on."""
    state = State(sm=8, mc=1, power="idle", pcie=3, cpu=12, run=12, busy=11, mem=1.5, procs=14)
    t.phase(t.lasting(2 * 3600), state, every=20)
    return healthy()


def shuffle_buffer(t):
    """Each epoch begins with a shuffle buffer that fills for minutes: memory of the host rises,
    the disk is read, the GPU waits."""
    for _ in range(5):
        length = t.lasting(150)
        for second in range(length):
            if second % 10 == 0:
                t.line(f"Filling up shuffle buffer (this may take a while): {second * 70} of 10000")
            grown = 40 * second
            t.phase(1, QU.but(cpu=1, run=1, busy=1, read=80, rss=4000 + grown, anon=3000 + grown))
        t.phase(t.lasting(900), TR.but(rss=4000 + 40 * length, anon=3000 + 40 * length), every=2)
    return healthy()


def idle_server(t):
    """An inference server: a port, weights in memory, a request now and then."""
    t.phase(t.lasting(60), cp(2).but(read=800, mem=20))
    t.process(MAIN, "listening", on="tcp:8000")
    t.line("INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)", "err")
    for _ in range(4):
        t.phase(t.lasting(2700), QU.but(cpu=0.03))
        t.phase(t.lasting(60), TR.but(cpu=1, read=0))
    return healthy("idle-serving")


def no_logs(t):
    """Nothing is printed in two hours. The GPU works, and epochs end with a pass on two cores."""
    for _ in range(5):
        t.phase(t.lasting(1500), TR)
        t.phase(t.lasting(120), cp(2))
    return healthy()


def first_rank_alone(t):
    """Rank 0 evaluates for five minutes while seven peers spin in a barrier."""
    spin, alone = spinning(t), TR.but(sm=55, mc=20, power=50)
    for _ in range(3):
        t.phase(t.lasting(1800), TR, every=2)
        t.phase(t.lasting(300), spin, per_gpu=lambda i, _now: spin if i else alone)
    return healthy()


def laptop_sleeps(t):
    """The machine was suspended for an hour, and later its clock was set: own time goes on."""
    for _ in range(2):
        t.phase(t.lasting(1200), TR, every=2)
        t.event("clock", suspended_s=3600.0)
        t.phase(t.lasting(1200), TR, every=2)
        t.event("clock", step_s=-3600.0)
    t.phase(t.lasting(600), TR, every=2)
    return healthy()


def blind_minutes(t):
    """The driver hung and nothing was sampled for minutes; the job went on meanwhile."""
    for _ in range(4):
        t.phase(t.lasting(900), TR, every=2)
        t.event("source", name="nvml", state="failed", why="Timeout")
        t.sampled = False
        t.phase(t.random.uniform(40, 400), TR, every=2)
        t.sampled = True
        t.event("source", name="nvml", state="ok", why=None)
    return healthy()


def epoch_boundary(t):
    """Loaders are started anew at each epoch: half a minute of imports in sixteen processes."""
    for _ in range(10):
        t.phase(t.lasting(300), TR, every=1)
        t.advance("epoch")
        replaced(t, range(MAIN + 1, MAIN + 5))
        t.phase(t.random.uniform(20, 50), cp(8).but(forks=4, read=5))
    return healthy()


def slow_nfs(t):
    """Checkpoints trickle to a busy NFS server for minutes: asleep on the disk, bytes moving."""
    for _ in range(4):
        t.phase(t.lasting(1800), TR, every=2)
        t.phase(t.lasting(280), QU.but(disk=1, write=2, cpu=0.05, io_pressure=40))
    return healthy()


def tiny_model(t):
    """A network too small for the card to notice: every gauge under its floor, steps go on."""
    tiny = State(sm=5, mc=0, power="idle", pcie=0.4, cpu=0.2, run=1, mem=0.6)
    for _ in range(4):
        t.phase(t.lasting(1500), tiny, every=0.5)
        t.phase(t.lasting(40), tiny.but(sm=2))
    return healthy()


def accumulation(t):
    """Gradients are accumulated: a step takes from 90 s to 300 s, as it comes."""
    end = t.t + t.lasting(4 * 3600)
    while t.t < end:
        t.phase(t.random.uniform(90, 300), TR)
        t.advance("step")
    return healthy()


def curriculum(t):
    """Sequences double every half hour, and so does the time of a step: 2 s at first, 64 s at last."""
    for k in range(6):
        t.phase(t.lasting(1800), TR, every=2 * 2**k)
    return healthy()


def download_between(t):
    """A second dataset is fetched in the middle: ten minutes in which only bytes move."""
    t.phase(t.lasting(1200), TR, every=2)
    t.phase(t.lasting(600), QU.but(cpu=0.25, write=40))
    t.phase(t.lasting(1200), TR, every=2)
    return healthy()


def first_epoch_fills_cache(t):
    """The first epoch reads from far away and is three times slower; later ones come from memory."""
    slow = TR.but(sm=31, mc=14, power=42, read=200, cpu=4, io_pressure=20)
    t.phase(t.lasting(1800), slow, every=3)
    for _ in range(5):
        t.advance("epoch")
        t.phase(t.lasting(600), TR.but(read=0), every=1)
    return healthy()


def preallocated(t):
    """TensorFlow or JAX took 97 % of the card in the first minute and keeps it: by design."""
    full = TR.but(mem=77.7)
    t.phase(t.lasting(60), cp(3).but(mem=77.7))
    for _ in range(10):
        t.phase(t.lasting(600), full, every=2)
        t.advance("epoch")
    return healthy()


def allocator_steps(t):
    """A caching allocator takes more four times in the first half hour, and then no more."""
    mem = 20
    for epoch in range(24):
        t.phase(t.lasting(300), TR.but(mem=mem), every=2)
        t.advance("epoch")
        if epoch in (0, 1, 3, 5):
            mem += 4
    return healthy()


def larger_evaluation(t):
    """Evaluation uses larger batches and gives the memory back, eight times."""
    for _ in range(8):
        t.phase(t.lasting(900), TR.but(mem=38), every=2)
        t.phase(t.lasting(80), TR.but(sm=80, mc=40, mem=70), every=20)
    return healthy()


def capped(t):
    """An administrator halved the power limit: always at it, a quarter slower than it could be."""
    state = TR.but(throttle="sw_power_cap", clock=0.74, power=99, temp=66)
    for _ in range(4):
        t.phase(t.lasting(1800), state, every=2)
        t.phase(t.lasting(60), state.but(sm=60, mc=25))
    return healthy()


def slice_of_a_card(t):
    """A MIG slice: no use is told, and CPU evaluations interrupt the work."""
    t.mask = "no-utilisation"
    t.names = ["MIG-5c1e0f7a-0000-4000-8000-000000000003"]
    for _ in range(6):
        t.phase(t.lasting(900), TR.but(mem=8), every=2)
        t.phase(t.lasting(90), cp(2).but(mem=8))
    return healthy()


def shared_card(t):
    """Somebody else's job keeps the card busy; ours evaluates on the CPU now and then."""
    t.mask = "none"
    ours = TR.but(mem=10, other_mem=30, sm=45, other_sm=99)
    for _ in range(5):
        t.phase(t.lasting(900), ours, every=2)
        t.phase(t.lasting(120), ours.but(sm=0, cpu=2, run=2, busy=2, read=0))
    return healthy()


def only_percent(t):
    """Nothing but a percentage, a whole one each minute or so."""
    for percent in range(100):
        t.phase(t.gap(72), TR)
        t.percent = percent + 1
        t.out_bytes += 8
    return healthy()


def longer_validations(t):
    """Each validation takes longer than the last one: 60 s at first, 300 s at last."""
    for k in range(9):
        t.phase(t.lasting(600), TR, every=1)
        t.phase(60 + 30 * k, cp(2))
    return healthy()


def rate_finder(t):
    """A learning-rate finder counts to 100 and throws its steps away; then counting begins anew."""
    t.phase(t.lasting(40), cp(1).but(mem=5))
    t.phase(t.lasting(100), TR, every=1)
    t.phase(t.lasting(30), cp(1))
    for _ in range(4):
        t.step, t.percent = 0, None
        t.phase(t.lasting(900), TR, every=2)
        t.advance("epoch")
    return healthy()


def notebook_after_bars(t):
    """A notebook with progress bars: a cell trains, and its reader goes to lunch."""
    t.process(200, "started", name="ipykernel_launcher")
    for pause in (300, 5400, 900):
        t.phase(t.lasting(600), TR.but(mem=14), every=1)
        t.phase(t.lasting(pause), QU.but(mem=14, cpu=0.02))
    return healthy("idle-interactive")


def long_samples(t):
    """Every 1,000 steps samples are generated token by token: one busy core, a GPU that idles
    half of the time."""
    sample = TR.but(sm=30, mc=5, power=38, pcie=20, cpu=1, run=1, busy=1, read=0)
    for _ in range(4):
        t.phase(1000, TR, every=1)
        t.phase(t.lasting(400), sample)
    return healthy()


def upload_at_the_end(t):
    """All 1,800 steps are done and the model is being uploaded, which takes ten minutes."""
    t.steps = 1800
    t.phase(3700, TR, every=2)
    t.step = t.steps
    t.phase(t.lasting(600), QU.but(cpu=0.4, run=1, read=15))
    return healthy()


def slow_first_compile(t):
    """XLA compiles for forty minutes on one core, before the first step, its memory taken."""
    t.phase(t.lasting(40), cp(1).but(mem=0.4))
    t.phase(120, cp(1).but(mem=60))
    t.line("Very slow compile? If you want to file a bug, run with envvar XLA_FLAGS=--xla_dump_to=/tmp/foo", "err")
    t.phase(t.lasting(2400), cp(1).but(mem=60))
    t.phase(t.lasting(1800), TR.but(mem=60), every=2)
    return healthy("starting")


def index_of_an_epoch(t):
    """Each epoch's index is shuffled and pickled by the main process alone, three minutes long."""
    for _ in range(5):
        t.phase(t.lasting(1200), TR, every=2)
        t.advance("epoch")
        t.phase(t.lasting(180), cp(1))
    return healthy()


def asks_a_question(t):
    """The script asks whether to go on, and nobody is there."""
    t.phase(t.lasting(900), TR, every=2)
    asked = t.t
    t.line("Overwrite existing checkpoint? [y/N] ")
    t.process(MAIN, "blocked", on="terminal")
    t.phase(t.lasting(2400), QU)
    t.process(MAIN, "running")
    t.phase(t.lasting(900), TR, every=2)
    return healthy("waiting-for-input", 15, asked)


def gang_scheduled(t):
    """A scheduler stops the job for ten minutes again and again."""
    job = range(MAIN, MAIN + 5)
    for _ in range(4):
        t.phase(t.lasting(1200), TR, every=2)
        for pid in job:
            t.process(pid, "stopped")
        t.phase(t.lasting(600), QU.but(stopped=True, cpu=0))
        for pid in job:
            t.process(pid, "continued")
    t.phase(t.lasting(600), TR, every=2)
    return healthy("suspended")


def queue_worker(t):
    """A worker takes what comes from a queue: a minute or two of work, then nothing for as long
    as it pleases the queue."""
    done = 0
    while t.t < 3 * 3600:
        t.phase(t.random.uniform(30, 90), TR.but(mem=12))
        done += 1
        t.step = done
        t.out_bytes += 40
        t.phase(min(400, 40 * t.random.lognormvariate(0, 0.8)), QU.but(mem=12, cpu=0.05))
    return healthy()


def warm_card(t):
    """A warm room: the thermal limit is touched now and then, which costs three percent."""
    hot = TR.but(throttle="sw_thermal", clock=0.96, temp=82)
    warm = TR.but(temp=80)
    t.phase(t.lasting(2 * 3600), lambda now: hot if now % 20 < 3 else warm, every=2)
    return healthy()


def elastic_restart(t):
    """The trainer restarts its workers and goes on from an older checkpoint."""
    for _ in range(3):
        t.phase(t.lasting(1200), TR, every=2)
        replaced(t, range(MAIN + 1, MAIN + 5))
        t.phase(t.lasting(45), NC.but(cpu=3, run=3, forks=2))
        t.phase(t.lasting(60), cp(1).but(mem=20, read=300, pcie=900))
        t.step = max(0, t.step - 250)
    t.phase(t.lasting(900), TR, every=2)
    return healthy()


def pipeline(t):
    """A pipeline's stages differ a little, by design."""
    stages = [TR.but(sm=80, mem=60), TR.but(sm=72, mem=52), TR.but(sm=70, mem=50), TR.but(sm=77, mem=58)]
    t.phase(t.lasting(3600), TR, every=4, per_gpu=lambda i, _now: stages[i])
    return healthy()


def mapped_dataset(t):
    """A dataset is mapped into memory: resident pages grow to 200 GB, and all of them can go."""
    for minute in range(90):
        t.phase(60, TR.but(rss=4000 + 2200 * minute), every=2)
        if minute % 10 == 9:
            t.advance("epoch")
    return healthy()


def scaled_gradients(t):
    """Mixed precision: one step in a few hundred overflows, its loss is nan, the next one is fine.
    A step takes 4 s, so that the nan stands on the display as long."""
    for _ in range(12):
        t.phase(t.lasting(400), TR, every=4)
        t.step += 1
        t.loss = "nan"
        t.phase(4, TR)
        t.step += 1
        t.loss = 0.7
        t.phase(4, TR)
    return healthy()


def flushes_seldom(t):
    """Through a pipe without PYTHONUNBUFFERED: steps are seen 200 at a time, every few minutes."""
    for _ in range(20):
        t.phase(t.random.uniform(250, 450), TR)
        t.step = (t.step or 0) + 200
        t.out_bytes += 8192
    return healthy()


def barrier_between_nodes(t):
    """Other machines save a large checkpoint: all local ranks spin for a minute, each half
    hour, after the same number of steps."""
    spin = spinning(t)
    for _ in range(4):
        t.phase(1800, TR, every=2)
        t.phase(t.lasting(45), spin.but(write=300))
        t.phase(t.lasting(25), spin)
    return healthy()


HEALTHY = {
    "recompiles": (1, [recompiles]), "sweep-gaps": (1, [sweep_gaps]), "metric-on-cpu": (1, [metric_on_cpu]),
    "low-duty": (1, [low_duty]), "shuffle-buffer": (1, [shuffle_buffer]), "idle-server": (1, [idle_server]),
    "no-logs": (1, [no_logs]), "first-rank-alone": (8, [first_rank_alone]), "laptop-sleeps": (1, [laptop_sleeps]),
    "blind-minutes": (1, [blind_minutes]), "epoch-boundary": (1, [epoch_boundary]), "slow-nfs": (1, [slow_nfs]),
    "tiny-model": (1, [tiny_model]), "accumulation": (1, [accumulation]), "curriculum": (1, [curriculum]),
    "download-between": (1, [download_between]), "first-epoch-fills-cache": (1, [first_epoch_fills_cache]),
    "preallocated": (1, [preallocated]), "allocator-steps": (1, [allocator_steps]),
    "larger-evaluation": (1, [larger_evaluation]), "capped": (1, [capped]), "slice-of-a-card": (1, [slice_of_a_card]),
    "shared-card": (1, [shared_card]), "only-percent": (1, [only_percent]),
    "longer-validations": (1, [longer_validations]), "rate-finder": (1, [rate_finder]),
    "notebook-after-bars": (1, [notebook_after_bars]), "long-samples": (1, [long_samples]),
    "upload-at-the-end": (1, [upload_at_the_end]), "slow-first-compile": (1, [slow_first_compile]),
    "index-of-an-epoch": (1, [index_of_an_epoch]), "asks-a-question": (1, [asks_a_question]),
    "gang-scheduled": (1, [gang_scheduled]), "queue-worker": (1, [queue_worker]), "warm-card": (1, [warm_card]),
    "elastic-restart": (1, [elastic_restart]), "pipeline": (4, [pipeline]), "mapped-dataset": (1, [mapped_dataset]),
    "scaled-gradients": (1, [scaled_gradients]), "flushes-seldom": (1, [flushes_seldom]),
    "barrier-between-nodes": (8, [barrier_between_nodes]),
}
HELD_OUT = {**HEALTHY, **SICK}
