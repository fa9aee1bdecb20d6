"""Where something is missing: a home, a working directory, descriptors, room."""

from __future__ import annotations

import os
import shutil

from registry import cases_of
from world import PYTHON, Unavailable, World

case = cases_of("Scarcity")

# Notes where its record lies, because without a home that is not in this world's folder.
HI = 'echo "${GPUWATCH_RUN_DIR-}" >&9; echo hi; exit 7'


def outcome(world: World, prepare: str, under: tuple[str, ...] = ()) -> object:
    """Code, last word, and whether there was at most one line of warning."""
    start = " ".join(under) + " " + world.line("sh", "-c", HI)
    ended = world.scene(f"exec 9> {world.work}/record\n{prepare}\n{start}\nexit $?")
    for folder in filter(None, world.noted("record")):
        shutil.rmtree(folder, ignore_errors=True)
    return ended.code, ended.out.split()[-1:], len(ended.err.splitlines()) <= 1


@case("V07-no-home", "no HOME: the command runs, its code comes back, one warning at most")
def no_home(world: World) -> object:
    return outcome(world, "unset HOME XDG_CONFIG_HOME; export XDG_STATE_HOME=/proc/state")


@case("V07-read-only", "a home that nobody can write to")
def read_only_home(world: World) -> object:
    return outcome(world, "unset XDG_CONFIG_HOME XDG_STATE_HOME; export HOME=/proc")


@case("V07-no-cwd", "a working directory that is gone")
def no_working_directory(world: World) -> object:
    return outcome(world, "mkdir gone; cd gone; rmdir ../gone")


@case("V07-any-user", "a user that nobody knows, without a home")
def any_user(world: World) -> object:
    if os.geteuid() != 0:
        raise Unavailable("needs root")
    ids = str(480_000 + os.getpid() % 10_000)
    world.copy_program()
    prepare = "unset HOME XDG_CONFIG_HOME XDG_STATE_HOME; cd /"
    try:
        return outcome(world, prepare, ("setpriv", "--clear-groups", "--reuid", ids, "--regid", ids))
    finally:
        shutil.rmtree(f"/tmp/gpuwatch-{ids}", ignore_errors=True)


@case("S01-files", "RLIMIT_NOFILE of 16, 20, 24, 64")
def few_descriptors(world: World) -> object:
    return [outcome(world, f"ulimit -n {limit}") for limit in (16, 20, 24, 64)]


@case("S02-size", "RLIMIT_FSIZE of 100 KiB: 3 MB through a pipe")
def small_files(world: World) -> object:
    pour = world.line(PYTHON, "-c", "import sys; sys.stdout.write('x' * 3000000)")
    ended = world.scene(f"ulimit -f 100\n{pour}\nexit $?")
    return ended.code, len(ended.out)
