"""How the command ended is how the wrapper ends."""

from __future__ import annotations

import json
import re
import signal

from registry import BOTH, cases_of
from world import Unavailable, World

case = cases_of("Exit codes")

# What ends a process that hasn't set a handler; 32 and 33 are the C library's own.
HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
STOPPING = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
DEADLY = sorted(int(number) for number in signal.valid_signals() - HARMLESS - STOPPING)


def die_of(number: int) -> list[str]:
    return ["sh", "-c", f"ulimit -c 0; kill -{number} $$"]


def statuses(world: World, commands: list[str]) -> list[int]:
    """What a shell shows after each."""
    # Some at a time: the patience is for them, not for hundreds of starts.
    for start in range(0, len(commands), 16):
        some = commands[start : start + 16]
        world.scene("\n".join(f"{command} 2>> errors; echo $? >> seen" for command in some))
    return [int(line) for line in world.noted()]


@case("E01-codes", "every exit code, 0 to 255", BOTH, wanted=list(range(256)))
def every_exit_code(world: World) -> object:
    return statuses(world, [world.line("sh", "-c", f"exit {code}") for code in range(256)])


@case("E01-status", "death by each deadly signal is 128+n in a shell", BOTH, wanted=[128 + n for n in DEADLY])
def every_death_in_a_shell(world: World) -> object:
    return statuses(world, [world.line(*die_of(number)) for number in DEADLY])


@case("E01-waitpid", "waitpid sees death by that signal", BOTH, wanted=[-n for n in DEADLY])
def every_death_by_waitpid(world: World) -> object:
    return [world.run(world.command(*die_of(number))).code for number in DEADLY]


@case("E01-core", "one core is written, the command's")
def the_core_is_the_commands(world: World) -> object:
    with open("/proc/sys/kernel/core_pattern") as pattern:
        if not re.fullmatch(r"core(\.%p)?\n", pattern.read()):
            raise Unavailable("cores aren't written to the working directory here")
    world.scene("ulimit -c unlimited\n" + world.line("sh", "-c", "kill -SEGV $$"))
    cores = [path.read_bytes() for path in sorted(world.work.glob("core*"))]
    # Name and arguments, as the kernel notes them side by side.
    return [re.search(rb"sh\0{14}sh -c kill -SEGV", core) is not None for core in cores]


@case("E02-start", "not found 127, a directory or no permission 126, no interpreter either", wanted=[127, 127, 126, 126, "either"])
def a_command_that_cannot_start(world: World) -> object:
    (world.work / "folder").mkdir()
    world.path("plain").write_text("echo hello\n")
    orphan = world.path("orphan")
    orphan.write_text("#!/nowhere/interpreter\n")
    orphan.chmod(0o755)
    names = ["no-such-command-anywhere", "./missing", "./folder", "./plain", "./orphan"]
    *others, last = statuses(world, [world.line(name) for name in names])
    return [*others, "either" if last in (126, 127) else last]


@case("E08-sigchld", "a caller that ignores SIGCHLD gets the code all the same", BOTH)
def the_caller_ignores_sigchld(world: World) -> object:
    under = "env --ignore-signal=CHLD " + world.line("sh", "-c", "exit 7")
    return statuses(world, [under])


ONLY_GPUWATCH = {name: "keeps no record" for name in ("direct", "tini", "dumb-init", "script", "unbuffer")}


@case("R01-record", "the record keeps code and signal apart", wanted=[(143, None), (None, 15)], not_claimed=ONLY_GPUWATCH)
def the_record_of_the_end(world: World) -> object:
    seen = []
    for script in ("exit 143", "kill -TERM $$"):
        world.run(world.command("sh", "-c", script))
        (path,) = (world.folder / "state").glob("gpuwatch/runs/*/run.json")
        ending = json.loads(path.read_text())["exit"]
        seen.append((ending["code"], ending["signal"]))
        path.rename(path.with_name("seen.json"))
    return seen
