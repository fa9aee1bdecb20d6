"""Ctrl-Z, fg, & and tostop, in a real interactive bash on a terminal."""

from __future__ import annotations

import re

from registry import cases_of
from streams import Terminal
from world import TERMINAL, World

case = cases_of("Job control")
ON_TERMINAL = (TERMINAL,)
PROMPT = "next> "


class Shell:
    """An interactive bash, and the person at it."""

    def __init__(self, world: World) -> None:
        self.world, self.terminal = world, Terminal()
        world.env |= {"PS1": PROMPT, "PS2": ""}
        # Without readline, what the terminal shows is what programs wrote.
        argv = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
        self.bash = world.start_on(self.terminal, argv)
        self.prompt()

    def type(self, line: str) -> None:
        self.terminal.send(f"{line}\n")
        # The echo, so that a later wait doesn't take the typed words for an answer.
        self.bash.wait_for("\r\n")

    def prompt(self) -> None:
        self.bash.wait_for(PROMPT)

    def do(self, line: str) -> None:
        self.type(line)
        self.prompt()

    def status(self) -> int:
        """What the last command returned."""
        self.do('echo "=$?="')
        return int(re.findall(rb"=(\d+)=", bytes(self.bash.out.data))[-1])

    def in_front(self) -> None:
        """Waits until a job has the terminal: keys typed before reach the shell."""
        self.world.until("the job is in front", lambda: self.terminal.foreground() != self.bash.pid)

    def stop(self) -> None:
        """Ctrl-Z: waits until bash says that its job is stopped."""
        self.terminal.send("\x1a")
        self.bash.wait_for("Stopped")
        self.prompt()

    def fetch(self) -> None:
        """Brings the stopped job to the front, and waits until it is there."""
        self.type("fg")
        self.in_front()

    def answer(self) -> int:
        """Types for a command that reads x and prints it; returns how that ended."""
        self.terminal.send("typed\n")
        self.bash.wait_for("got:typed\r\n")
        self.prompt()
        return self.status()

    def stopped(self) -> None:
        """Waits until bash says so of a job in the background."""
        before = self.bash.out.data.count(b"Stopped")

        def is_said() -> bool:
            self.do("jobs")
            return self.bash.out.data.count(b"Stopped") > before

        self.world.until("bash says Stopped", is_said)


@case("T01-stop", "Ctrl-Z: Stopped; fg goes on; Ctrl-C ends it, the shell shows 130", ON_TERMINAL)
def ctrl_z_and_fg(world: World) -> object:
    shell = Shell(world)
    before = shell.terminal.settings()
    shell.type(world.line("sh", "-c", "echo up; exec sleep 600"))
    shell.bash.wait_for("up\r\n")
    for _ in range(2):
        shell.stop()
        shell.fetch()
    shell.terminal.send("\x03")
    shell.prompt()
    return shell.status(), shell.terminal.settings() == before


@case("T01-keys", "after a stop and fg, what is typed reaches the command", ON_TERMINAL)
def keys_after_a_stop(world: World) -> object:
    shell = Shell(world)
    shell.type(world.line("sh", "-c", "echo up; read x; echo got:$x; exit 4", stdin=True))
    shell.bash.wait_for("up\r\n")
    shell.stop()
    shell.fetch()
    return shell.answer()


@case("T01-itself", "a command that stops itself stops the job; fg goes on", ON_TERMINAL)
def a_command_that_stops_itself(world: World) -> object:
    shell = Shell(world)
    for signal in ("STOP", "TSTP"):
        shell.type(world.line("sh", "-c", f"kill -{signal} $$; echo o''n"))
        shell.bash.wait_for("Stopped")
        shell.prompt()
        shell.type("fg")
        shell.bash.wait_for("on\r\n")
        shell.prompt()
    return shell.status()


@case("T02-quiet", "in the background, with and without tostop: not stopped when it is silent", ON_TERMINAL)
def silent_in_the_background(world: World) -> object:
    shell = Shell(world)
    codes = []
    for setting in ("-tostop", "tostop"):
        shell.do(f"stty {setting}")
        shell.do(world.line("sh", "-c", f"sleep 0.3; echo x > done{setting}; exit 6") + " &")
        world.note(f"done{setting}")
        shell.do("wait $!")
        codes.append(shell.status())
    return codes, b"Stopped" in shell.bash.out.data


@case("T02-shown", "in the background without tostop: its output is shown", ON_TERMINAL)
def output_from_the_background(world: World) -> object:
    shell = Shell(world)
    shell.type(world.line("sh", "-c", "echo from; sleep 0.2; echo behi''nd") + " &")
    shell.bash.wait_for("behind\r\n")
    shell.do("wait $!")
    return shell.status()


@case("T02-tostop", "... with tostop it stops there, and goes on with fg", ON_TERMINAL)
def output_under_tostop(world: World) -> object:
    shell = Shell(world)
    shell.do("stty tostop")
    shell.do(world.line("sh", "-c", "echo sho''wn") + " &")
    shell.stopped()
    shown_before = b"shown" in shell.bash.out.data
    shell.type("fg")
    shell.bash.wait_for("shown\r\n")
    shell.prompt()
    return shown_before, shell.status()


@case("T02-reads", "in the background, reading the terminal stops it; fg goes on", ON_TERMINAL)
def a_reader_in_the_background(world: World) -> object:
    shell = Shell(world)
    shell.do(world.line("sh", "-c", "read x; echo got:$x", stdin=True) + " &")
    shell.stopped()
    shell.fetch()
    return shell.answer()
