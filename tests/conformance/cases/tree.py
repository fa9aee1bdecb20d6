"""Processes that the command leaves, orphans, and being process 1."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from registry import BOTH, cases_of
from world import PYTHON, InVain, Live, Unavailable, World, children, send, status

case = cases_of("Process tree")


@case("P01-holder", "a background process holds the stream: the code comes within 10 s", BOTH)
def a_process_that_holds_the_stream(world: World) -> object:
    before = time.monotonic()
    live: Live = world.start(world.command("sh", "-c", "sleep 300 & echo hi; exit 3"))
    code = live.wait()
    in_time = time.monotonic() - before < 10
    world.until("the output is there", lambda: b"hi" in live.out.data)
    return code, bytes(live.out.data).strip(), in_time


@case("P02-leftovers", "what called setsid or forked twice lives on after the end")
def leftovers_live_on(world: World) -> object:
    late = "while [ ! -e go ]; do sleep 0.02; done; echo well >"
    leave = f"setsid sh -c '{late} session' > /dev/null 2>&1 & (sh -c '{late} twice' > /dev/null 2>&1 &) ; exit 3"
    code = world.start(world.command("sh", "-c", leave)).wait()
    world.path("go").touch()
    return code, world.note("session"), world.note("twice")


ORPHANS = """
import os, time
def orphan(log):
    if os.fork() == 0:
        if os.fork() == 0:
            os.write(log, f'{os.getpid()}\\n'.encode())
            os._exit(0)
        os._exit(0)
    os.wait()
log = os.open('orphans', os.O_CREAT | os.O_WRONLY | os.O_APPEND)
for _ in range(20):
    orphan(log)
os.rename('orphans', 'all')
while not os.path.exists('end'):
    time.sleep(0.01)
"""


def orphans_are_reaped(world: World, namespace: int | None = None) -> object:
    """Waits until 20 orphans are gone although the command goes on."""
    world.until("there were orphans", lambda: len(world.noted("all")) == 20)

    def is_gone() -> bool:
        if namespace is None:
            return not any(os.path.exists(f"/proc/{pid}") for pid in world.noted("all"))
        return not any(status(child)[0] == "Z" for child in children(namespace))

    world.until("the orphans are reaped", is_gone)
    world.path("end").touch()
    return True


@case("P03-zombies", "20 orphans are reaped while the command goes on")
def zombies(world: World) -> object:
    live = world.start(world.command(PYTHON, "-c", ORPHANS))
    orphans_are_reaped(world)
    return live.wait()


FATES = """
import os, signal
def told(*_):
    open('told', 'w').close()
    os._exit(0)
signal.signal(signal.SIGTERM, told)
with open('pid.new', 'w') as file:
    print(os.getpid(), file=file)
os.rename('pid.new', 'pid')
while True:
    os.write(1, b'line\\n' * 100)
"""


def fate(world: World) -> str:
    """What becomes of a printing command when its wrapper is KILLed."""
    for name in ("told", "pid"):
        world.path(name).unlink(missing_ok=True)
    live = world.start(world.command(PYTHON, "-c", FATES))
    child = int(world.note("pid"))
    live.wait_for("line")
    send(live.pid, signal.SIGKILL)
    live.wait()
    try:
        world.until("it ends", lambda: status(child)[0] == "Z")
    except InVain:
        return "lives on"
    return "told by TERM" if world.path("told").exists() else "ended untold"


@case("P06-fate", "5 times KILL to the wrapper under a printing command: the same fate", wanted=1)
def the_same_fate(world: World) -> object:
    first = fate(world)
    # Who lives on after the whole patience does so; waiting so long once is enough.
    again = [fate(world) for _ in range(4 if first != "lives on" else 1)]
    return len({first, *again})


ALONE = {"direct": "alone as process 1 a command has no default for signals and adopts orphans unawares"}


def as_process_1(world: World, *argv: str) -> list[str]:
    """The wrapped command in a PID namespace of its own, as a container runs it."""
    unshare = ["unshare", "--fork", "--pid", "--mount-proc"]
    if os.geteuid() != 0:
        unshare += ["--user", "--map-root-user"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        raise Unavailable("this machine allows no PID namespace")
    return [*unshare, *world.command(*argv)]


@case("P04-codes", "as process 1 (a container): exit 7 is 7, death by TERM 143", wanted=[7, 143], not_claimed=ALONE)
def codes_as_process_1(world: World) -> object:
    scripts = ["exit 7", "kill -TERM $$; sleep 600"]
    live = [world.start(as_process_1(world, "sh", "-c", script)) for script in scripts]
    return [one.end().shown for one in live]


def process_1(unshare: int, world: World) -> int:
    world.until("process 1 is there", lambda: children(unshare))
    return children(unshare)[0]


@case("P04-term", "as process 1: TERM ends a command without a handler", wanted=143, not_claimed=ALONE)
def term_as_process_1(world: World) -> object:
    live = world.start(as_process_1(world, "sh", "-c", "echo up; sleep 600"))
    live.wait_for("up")
    send(process_1(live.pid, world), signal.SIGTERM)
    return live.end().shown


@case("P04-zombies", "as process 1: 20 orphans are reaped while the command goes on", wanted=True, not_claimed=ALONE)
def zombies_as_process_1(world: World) -> object:
    live = world.start(as_process_1(world, PYTHON, "-c", ORPHANS))
    answer = orphans_are_reaped(world, process_1(live.pid, world))
    live.wait()
    return answer
