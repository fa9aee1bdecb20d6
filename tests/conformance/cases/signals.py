"""Every signal reaches the command once, whoever sends it and wherever it is sent to."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable

from registry import BOTH, cases_of
from streams import Terminal
from world import LISTENER, PYTHON, TERMINAL, Live, World, send

case = cases_of("Signals")

SIGNALS = [
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGCONT,
    signal.SIGWINCH,
    signal.SIGRTMIN + 1,
    signal.SIGRTMAX,
]


class Listener:
    """A command that notes each signal that it gets, until it is told to end."""

    def __init__(self, world: World, log: str = "log", code: int = 0, terminal: Terminal | None = None, keys: bool = False) -> None:
        self.world, self.log = world, world.path(log)
        argv = world.command(*Listener.argv(log, code), stdin=keys)
        self.live = world.start_on(terminal, argv) if terminal else world.start(argv)
        self.live.wait_for("ready")

    @staticmethod
    def argv(log: str, code: int = 0) -> list[str]:
        return [PYTHON, str(LISTENER), log, str(code)]

    def arrived(self) -> list[int]:
        return list(self.log.read_bytes())

    def after(self, act: Callable[[], object], what: str) -> None:
        """Does something and waits until one more signal has arrived."""
        before = len(self.arrived())
        act()
        self.world.until(f"{what} arrives", lambda: len(self.arrived()) > before)

    def end(self) -> list[int]:
        self.log.with_name(self.log.name + ".end").touch()
        self.live.wait()
        return self.arrived()


def each_three_times(world: World, to_group: bool) -> object:
    """Each after the one before arrived; another signal at the end shows a second copy."""
    return [three_times(world, int(number), to_group) for number in SIGNALS]


def three_times(world: World, number: int, to_group: bool) -> list[int]:
    listener = Listener(world, f"log{number}")
    kill = os.killpg if to_group else os.kill
    for _ in range(3):
        listener.after(lambda: kill(listener.live.pid, number), f"signal {number}")
    last = signal.SIGUSR2 if number == signal.SIGUSR1 else signal.SIGUSR1
    listener.after(lambda: kill(listener.live.pid, last), "the last")
    world.until("the last is last", lambda: listener.arrived()[-1] == last)
    return listener.end()


@case("E03-alone", "each of 11 signals to the wrapper alone arrives once", BOTH)
def to_the_wrapper_alone(world: World) -> object:
    return each_three_times(world, to_group=False)


@case("E03-group", "each of 11 signals to the process group arrives once", BOTH)
def to_the_group(world: World) -> object:
    return each_three_times(world, to_group=True)


@case("E03-keys", "Ctrl-C and Ctrl-\\ are one signal each", (TERMINAL,))
def by_a_key(world: World) -> object:
    listener = Listener(world, keys=True)
    for key in "\x03\x03\x03\x1c":
        listener.after(lambda: listener.live.send(key), f"{key!r}")
    return listener.end()


@case("E03-saves", "a command that saves for 2 s after INT is waited for, and its 0 returned", BOTH)
def it_may_take_its_time(world: World) -> object:
    save = "trap 'sleep 2; echo saved > saved; exit 0' INT; echo ready; while :; do sleep 0.05; done"
    live = world.start(world.command("sh", "-c", save, stdin=world.mode == TERMINAL))
    live.wait_for("ready")
    if world.mode == TERMINAL:
        live.send("\x03")
    else:
        live.signal(signal.SIGINT)
    return live.wait(), world.noted("saved")


@case("E04-nohup", "under nohup a hangup ends nobody")
def under_nohup(world: World) -> object:
    linger = "echo ready; while [ ! -e end ]; do sleep 0.02; done; echo well"
    live = world.start(["nohup", *world.command("sh", "-c", linger)])
    live.wait_for("ready")
    live.signal(signal.SIGHUP)
    os.killpg(live.pid, signal.SIGHUP)
    world.path("end").touch()
    ended = live.end()
    return ended.code, ended.out.split()


@case("E04-hangup", "a terminal that goes away is a hangup to the command", (TERMINAL,))
def the_terminal_goes_away(world: World) -> object:
    terminal = Terminal()
    listener = Listener(world, terminal=terminal)
    listener.after(terminal.close, "a signal")
    return signal.SIGHUP in listener.arrived()


@case("E05-workers", "USR1 to the wrapper reaches the command, not its workers")
def not_its_workers(world: World) -> object:
    both = '"$@" worker & while [ ! -s up ]; do sleep 0.01; test -e worker && echo > up; done; exec "$@" main'
    live = world.start(world.command("sh", "-c", both, "sh", *Listener.argv("")[:2]))
    world.until("both listen", lambda: bytes(live.out.data).count(b"ready") == 2)
    for count, number in enumerate([signal.SIGUSR1, signal.SIGUSR2], 1):
        live.signal(number)
        world.until("it arrives", lambda: len(world.path("main").read_bytes()) >= count)
    return list(world.path("worker").read_bytes()), list(world.path("main").read_bytes())


@case("E06-any-moment", "50 starts with TERM after 0 to 50 ms: 143 each time, no survivor", BOTH, wanted=([143] * 50, 0))
def a_term_at_any_moment(world: World) -> object:
    moments = random.Random(6)
    codes = []
    for _ in range(50):
        live = world.start(world.command("sleep", "600"))
        # The moment itself is what is tried: nothing waits for it.
        time.sleep(moments.uniform(0, 0.05))
        send(live.pid, signal.SIGTERM)
        code = live.wait()
        codes.append(128 - code if code < 0 else code)
    world.until("nobody is left", lambda: not world.inhabitants())
    return codes, len(world.inhabitants())


@case("E06-stray", "30 starts: no signal comes by itself", BOTH, wanted=[[]] * 30)
def no_signal_by_itself(world: World) -> object:
    return [undisturbed(world, f"log{start}") for start in range(30)]


def undisturbed(world: World, log: str) -> list[int]:
    world.path(f"{log}.end").touch()
    live: Live = world.start(world.command(*Listener.argv(log)))
    live.wait()
    return list(world.path(log).read_bytes())


STARTS = [
    [],
    ["env", "--ignore-signal=HUP"],
    ["env", "--ignore-signal=INT,QUIT"],
    ["env", "--ignore-signal=PIPE"],
    ["env", "--ignore-signal=USR1,TERM,WINCH"],
    ["env", "--block-signal=USR2"],
    ["env", "--block-signal=TERM,INT,HUP,CHLD"],
    ["env", "--block-signal=WINCH", "--ignore-signal=TSTP,TTOU,TTIN"],
]


@case("E07-inherited", "ignored and blocked signals are inherited, SIGPIPE's default too", BOTH)
def dispositions_and_mask(world: World) -> object:
    private = 0b11 << 31  # 32 and 33 are the C library's own
    seen = []
    for start in STARTS:
        world.run([*start, *world.command("cp", "/proc/self/status", "status")])
        lines = dict(line.split(":\t") for line in world.noted("status") if line.startswith("Sig"))
        seen.append([hex(int(lines[name], 16) & ~private) for name in ("SigBlk", "SigIgn")])
        world.path("status").unlink()
    return seen
