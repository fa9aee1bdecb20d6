"""What a command inherits: environment, descriptors, limits, identity, names."""

from __future__ import annotations

import os
from pathlib import Path

from registry import BOTH, cases_of
from world import PYTHON, World

case = cases_of("Inheritance")

# What the manual says that gpuwatch sets where nobody has (ARCHITECTURE.md, "Exceptions to
# transparency"), with `--gpus none`; in pipes alone the second.
DOCUMENTED = {"GPUWATCH_RUN_ID", "GPUWATCH_RUN_DIR", "GPUWATCH_PROGRESS", "TF_FORCE_GPU_ALLOW_GROWTH"}
DOCUMENTED_IN_PIPES = {"PYTHONUNBUFFERED"}


@case("V01-environ", "the environment, but for the variables that the manual names", BOTH)
def environment(world: World) -> object:
    world.run(world.command("cp", "/proc/self/environ", "environ"))
    text = world.neutral(os.fsdecode(world.path("environ").read_bytes()))
    seen = dict(entry.split("=", 1) for entry in text.split("\0") if entry)
    if world.wrapper.name == "gpuwatch":
        documented = DOCUMENTED | (DOCUMENTED_IN_PIPES if world.mode == "pipe" else set())
        seen = {name: value for name, value in seen.items() if name not in documented}
    return seen


ODD = ["", " ", "a\nb", "'\"$x`\\", os.fsdecode(b"\xff\xfe"), "-n", "--", "*", "🚀"]


@case("V02-argv", "arguments and argv[0] byte for byte: empty, newlines, quotes, no UTF-8", BOTH)
def arguments(world: World) -> object:
    world.run(world.command("sh", "-c", "cp /proc/$$/cmdline cmdline; :", *ODD))
    return world.path("cmdline").read_bytes()


@case("V02-odd", "the same in variables and in the working directory's name", BOTH)
def odd_environment(world: World) -> object:
    world.env["ODD"] = "".join(ODD)
    folder = world.work / os.fsdecode(b"odd \n\xff'name")
    folder.mkdir()
    world.work = folder
    ended = world.run(world.command("sh", "-c", 'printf %s "$ODD" > odd; pwd > cwd; exit 5'))
    return ended.code, folder.joinpath("odd").read_bytes(), world.neutral(folder.joinpath("cwd").read_text(errors="replace"))


@case("V03-descriptors", "descriptors beyond 2 are passed on, and none is added", BOTH)
def descriptors(world: World) -> object:
    look = "n=0; while [ $n -lt 64 ]; do test -e /proc/$$/fd/$n && echo $n; n=$((n+1)); done > fds; cat <&7 > got"
    world.path("given").write_text("passed\n")
    world.scene(world.line("sh", "-c", look) + " 3< given 7< given")
    return world.noted("fds"), world.noted("got")


LIMITS = """
import os, resource
print(os.getpriority(os.PRIO_PROCESS, 0), os.umask(0o22), sorted(os.sched_getaffinity(0)))
print([resource.getrlimit(getattr(resource, n)) for n in sorted(dir(resource)) if n.startswith('RLIMIT')])
for name in ('oom_score_adj', 'timerslack_ns', 'cgroup', 'coredump_filter', 'loginuid'):
    try:
        print(name, open(f'/proc/self/{name}').read())
    except OSError as error:
        print(name, error)
lines = open('/proc/self/status').read().splitlines()
print([line for line in lines if line.startswith(('Uid', 'Gid', 'Groups', 'Cap', 'NoNewPrivs', 'Seccomp:', 'Umask'))])
print(os.sched_getscheduler(0), os.getcwd())
"""


@case("V04-limits", "nice, umask, affinity, rlimits, oom_score_adj, cgroup, capabilities, ...", BOTH)
def limits(world: World) -> object:
    prepare = "umask 027; ulimit -n 512; ulimit -c 0; echo 123 > /proc/self/oom_score_adj; taskset -p 1 $$ > /dev/null"
    wrapped = world.line(PYTHON, "-c", "import sys; sys.stdout = open('seen', 'w')" + LIMITS)
    world.scene(f"{prepare}\nnice -n 3 {wrapped}")
    return [world.neutral(line) for line in world.noted()]


@case("V06-group", "session and process group are the caller's")
def session_and_group(world: World) -> object:
    look = "read -r _ _ _ _ group session _ < /proc/$$/stat; echo $group $session > seen"
    live = world.start(world.script(world.line("sh", "-c", look) + "; :"))
    live.end()
    return [int(word) == live.pid for word in " ".join(world.noted()).split()]


@case("V08-script", "a script without a first line runs as in a shell, with its arguments")
def a_script_without_a_first_line(world: World) -> object:
    path = Path(world.work, "plain")
    path.write_text('echo "ran $1 $#"; exit 5\n')
    path.chmod(0o755)
    ended = world.scene(world.line("./plain", "well") + "\nexit $?")
    return ended.code, ended.out.split()
