"""The programs that are put before a command."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass

DIRECT = "direct"

# How long something may take before it counts as never: a wait ends as soon as its condition
# holds. What isn't asserted is given less, because a program that fails, fails many times.
PATIENCE, PATIENCE_WITH_PEERS = 60.0, 8.0


@dataclass(frozen=True)
class Wrapper:
    """A name, and how it takes a command (and whether that reads its stdin)."""

    name: str
    command: Callable[[list[str], bool], list[str]]
    patience: float = PATIENCE_WITH_PEERS
    program: str | None = None

    @property
    def installed(self) -> bool:
        return self.program is None or shutil.which(self.program) is not None


def direct() -> Wrapper:
    return Wrapper(DIRECT, lambda argv, _: argv, PATIENCE)


def gpuwatch(path: str) -> Wrapper:
    words = [path, "run", "-q", "--gpus", "none", "--"]
    return Wrapper("gpuwatch", lambda argv, _: words + argv, PATIENCE, path)


def _prefix(*words: str) -> Wrapper:
    return Wrapper(words[0], lambda argv, _: [*words, *argv], program=words[0])


def _script(argv: list[str], _: bool) -> list[str]:
    # `exec`, or its shell would stand between and answer signals in its own way.
    return ["script", "-qec", f"exec {shlex.join(argv)}", "/dev/null"]


def _unbuffer(argv: list[str], stdin: bool) -> list[str]:
    # Its manual: without -p it doesn't read stdin.
    return ["unbuffer", *(["-p"] if stdin else []), *argv]


def peers() -> list[Wrapper]:
    return [
        _prefix("tini", "-s", "--"),
        _prefix("dumb-init", "--"),
        Wrapper("script", _script, program="script"),
        Wrapper("unbuffer", _unbuffer, program="unbuffer"),
    ]
