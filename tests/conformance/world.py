"""A world: one case tried by one wrapper, in a folder and an environment of its own.

Owns starting commands in pipes or on a terminal, waiting for conditions, and leaving nobody
behind. Knows nothing of what is asked.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from streams import Seen, Terminal
from wrappers import Wrapper

PIPE, TERMINAL = "pipe", "terminal"
MARK = "CONFORMANCE_WORLD"
LISTENER = Path(__file__).parent.parent / "scripts" / "signal_log.py"
PYTHON = sys.executable


class InVain(Exception):
    """Something was waited for and never came."""


class Unavailable(Exception):
    """This machine can't try it; says why."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its code (a signal is negative) and what it wrote."""

    code: int
    out: bytes
    err: bytes

    @property
    def shown(self) -> int:
        """The code as a shell shows it."""
        return self.code if self.code >= 0 else 128 - self.code


class Live:
    """A command that was started, and what it has written so far."""

    def __init__(self, world: World, process: subprocess.Popen[bytes], terminal: Terminal | None) -> None:
        self.world, self.process, self.terminal = world, process, terminal
        self.pid = process.pid
        if terminal:
            self.out, self.err = terminal.seen, Seen()
        else:
            assert process.stdout and process.stderr
            self.out = Seen.follow(process.stdout.fileno())
            self.err = Seen.follow(process.stderr.fileno())

    def wait_for(self, text: str) -> None:
        """Waits for text that comes after what was waited for before."""
        self.world.until(f"{text!r} is written", lambda: self.out.find(text.encode()))

    def send(self, text: str) -> None:
        """Types, or writes to the command's stdin."""
        if self.terminal:
            self.terminal.send(text)
        else:
            assert self.process.stdin
            os.write(self.process.stdin.fileno(), text.encode())

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        self.world.until("it ends", lambda: self.process.poll() is not None)
        assert self.process.returncode is not None
        return self.process.returncode

    def end(self) -> Ended:
        """Waits until it has ended and nobody holds its streams any more."""
        code = self.wait()
        self.world.until("its output ends", lambda: self.out.ended)
        if not self.terminal:
            self.world.until("its errors end", lambda: self.err.ended)
        return Ended(code, bytes(self.out.data), bytes(self.err.data))


class World:
    """The place in which one case is tried by one wrapper in one mode."""

    def __init__(self, wrapper: Wrapper, mode: str) -> None:
        self.wrapper, self.mode = wrapper, mode
        self.folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        self.folder.chmod(0o755)
        self.work = self.folder / "work"
        for name in ("home", "state", "work"):
            (self.folder / name).mkdir()
        self.env = self._environment()
        self._kept: list[Terminal | subprocess.Popen[bytes]] = []

    def _environment(self) -> dict[str, str]:
        """Small and fixed: what the caller happens to have set changes nothing."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": f"{self.folder}/home",
            "XDG_STATE_HOME": f"{self.folder}/state",
            "XDG_CONFIG_HOME": f"{self.folder}/home/.config",
            "GPUWATCH_NVML_LIBRARY": f"{self.folder}/no-driver.so",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "SHELL": "/bin/sh",
            "PWD": f"{self.folder}/work",
            "PYTHONDONTWRITEBYTECODE": "1",
            MARK: str(self.folder),
        }

    # Commands.

    def command(self, *argv: str, stdin: bool = False) -> list[str]:
        """The command as the wrapper takes it; `stdin` says that it reads that."""
        return self.wrapper.command(list(argv), stdin)

    def line(self, *argv: str, stdin: bool = False) -> str:
        """The same for a shell."""
        return shlex.join(self.command(*argv, stdin=stdin))

    def copy_program(self) -> None:
        """Makes the wrapper one that every user may execute, wherever it was built."""
        program = self.wrapper.program
        if program and os.path.isabs(program):
            copy = shutil.copy(program, self.folder)
            command = self.wrapper.command
            self.wrapper = replace(self.wrapper, command=lambda *args: [copy, *command(*args)[1:]])

    def script(self, text: str) -> list[str]:
        """A bash script that is run without a wrapper, because it has wrapped lines in it."""
        path = self.work / f"scene{len(self._kept)}.sh"
        path.write_bytes(os.fsencode(text))
        return ["bash", str(path)]

    # Starting.

    def start(self, argv: Sequence[str], stdin: bool = False) -> Live:
        """In pipes, or as the leader of a session on a terminal of its own."""
        if self.mode == TERMINAL:
            return self.start_on(Terminal(), argv)
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.env,
            cwd=self.work,
            start_new_session=True,
        )
        self._kept.append(process)
        return Live(self, process, None)

    def start_on(self, terminal: Terminal, argv: Sequence[str]) -> Live:
        process = subprocess.Popen(
            ["setsid", "--ctty", *argv],
            stdin=terminal.slave,
            stdout=terminal.slave,
            stderr=terminal.slave,
            env=self.env,
            cwd=self.work,
        )
        terminal.given()
        self._kept += [process, terminal]
        return Live(self, process, terminal)

    def run(self, argv: Sequence[str]) -> Ended:
        return self.start(argv).end()

    def scene(self, text: str) -> Ended:
        return self.run(self.script(text))

    # Looking.

    def until(self, what: str, holds: Callable[[], object]) -> None:
        """Waits for a condition, and not for ever."""
        limit = time.monotonic() + self.wrapper.patience
        while not holds():
            if time.monotonic() > limit:
                raise InVain(f"waited in vain: {what}")
            time.sleep(0.005)

    def path(self, name: str) -> Path:
        return self.work / name

    def noted(self, name: str = "seen") -> list[str]:
        """The lines of a file that the command or the scene wrote."""
        path = self.path(name)
        return path.read_text(errors="surrogateescape").splitlines() if path.exists() else []

    def note(self, name: str) -> str:
        """Waits for a file with a whole line, and returns that."""
        self.until(f"{name} is written", lambda: "".join(self.noted(name)[:1]))
        return self.noted(name)[0]

    def neutral(self, text: str) -> str:
        """Text without what differs from world to world."""
        return text.replace(str(self.folder), "<folder>")

    def inhabitants(self) -> list[int]:
        """Live processes that were started here."""
        mark = os.fsencode(f"{MARK}={self.folder}\0")
        return [pid for pid in processes() if mark in _read(f"/proc/{pid}/environ")]

    def close(self) -> None:
        """Ends everybody that was started here, and removes the folder."""
        limit = time.monotonic() + 20
        while (left := self.inhabitants()) and time.monotonic() < limit:
            for pid in left:
                send(pid, signal.SIGKILL)
            time.sleep(0.01)
        for kept in self._kept:
            if isinstance(kept, Terminal):
                kept.close()
            else:
                kept.wait()
                for stream in (kept.stdin, kept.stdout, kept.stderr):
                    # A reader of ours may still be at it where a stranger holds the pipe.
                    if stream:
                        stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def send(pid: int, number: int) -> None:
    """Sends a signal to a process that may have ended meanwhile."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(path: str) -> bytes:
    """A file of /proc; empty when its process has ended."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def status(pid: int) -> tuple[str, int]:
    """State letter and parent of a process; a Z where there is none any more."""
    # The name may hold anything: the state follows its last parenthesis.
    fields = _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
    return (fields[0].decode(), int(fields[1])) if fields else ("Z", 0)


def children(pid: int) -> list[int]:
    return [other for other in processes() if status(other)[1] == pid]
