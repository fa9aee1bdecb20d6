"""The same bytes in the same order, as soon as they are written, however they are read."""

from __future__ import annotations

import hashlib
import subprocess
import time
from pathlib import Path

from registry import BOTH, cases_of
from streams import Terminal
from world import PYTHON, TERMINAL, World

case = cases_of("Output")

ALL_BYTES = """
import os
every = bytes(range(256))
for i in range(0, 256, 7):
    os.write(1, every[i:i + 7])
for i in range(0, 256, 5):
    os.write(2, every[::-1][i:i + 5])
"""


@case("O01-bytes", "all 256 byte values, on stdout and stderr", BOTH)
def all_bytes(world: World) -> object:
    return world.run(world.command(PYTHON, "-c", ALL_BYTES))


SPLIT = """
import os, time
text = 'é漢字🚀 50%\\r60%\\b\\b\\b70%\\x1b[2K\\x1b[1A\\x1b[31mred\\x1b[0m\\twide ＷＩＤＥ\\n'
for byte in text.encode() * 3:
    os.write(1, bytes([byte]))
    time.sleep(0.001)
"""


@case("O07-split", "\\r, \\b, cursor movement, wide characters, split at every byte", BOTH)
def split_at_every_byte(world: World) -> object:
    # As a file: whether arguments come through is asked elsewhere.
    world.path("split.py").write_text(SPLIT)
    return world.run(world.command(PYTHON, "split.py")).out


@case("O10-much", "16 MiB pass whole")
def much_output(world: World) -> object:
    pour = "import os\nfor i in range(256): os.write(1, bytes([i]) * 65536)"
    out = world.run(world.command(PYTHON, "-c", pour)).out
    return len(out), hashlib.sha256(out).hexdigest()[:12]


@case("O11-killed", "what was written before a KILL comes out", BOTH)
def written_before_a_kill(world: World) -> object:
    ended = world.run(world.command("sh", "-c", "seq 1 20000; kill -KILL $$"))
    return len(ended.out.splitlines())


@case("O03-prompt", "a prompt without a newline is shown; the answer arrives", BOTH)
def an_unfinished_line(world: World) -> object:
    ask = "printf 'Go? '; read answer; printf 'then %s' \"$answer\""
    live = world.start(world.command("sh", "-c", ask, stdin=True), stdin=True)
    live.wait_for("Go? ")
    live.send("on\n")
    live.wait_for("then on")
    return live.wait()


@case("O05-reader", "`yes` into `head -1`: over, quiet, and yes has died of SIGPIPE (141)", BOTH)
def a_reader_that_leaves(world: World) -> object:
    ended = world.scene(world.line("yes") + ' | head -n 1\necho "status ${PIPESTATUS[0]}"')
    return ended.out, ended.err


@case("O05-closed", "closed streams and /dev/full: exit 6 is 6, a write fails as it would", BOTH)
def closed_streams(world: World) -> object:
    closings = [">&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-", ">/dev/null", ">/dev/full"]
    lines = [f"{world.line('sh', '-c', 'exit 6')} {closing}\necho $? >> seen" for closing in closings]
    write = world.line("sh", "-c", "echo x 2> errors || exit 2")
    lines += [f"{write} {closing}\necho $? >> seen" for closing in (">&-", ">/dev/null")]
    world.scene("\n".join(lines))
    return world.noted()


POUR = """
import os
def note(count):
    with open('count.new', 'w') as file:
        file.write(str(count))
    os.rename('count.new', 'count')
note(0)
for i in range(int(os.environ['BLOCKS'])):
    os.write(1, bytes([97 + i % 26]) * int(os.environ['SIZE']))
    note(i + 1)
"""


def resident_kib(pid: int) -> int:
    """0 for one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def stuck(world: World) -> int:
    """Waits until the command writes no more; returns how many blocks it has got rid of."""
    last, since = "", time.monotonic()

    def has_waited() -> bool:
        nonlocal last, since
        now = "".join(world.noted("count"))
        if now != last:
            last, since = now, time.monotonic()
        return now != "" and time.monotonic() - since > 1

    world.until("the command waits for its reader", has_waited)
    return int(last)


@case("O06-slow", "a slow reader holds the command back; nobody's memory grows; all comes", BOTH)
def a_slow_reader(world: World) -> object:
    # More than any buffer on the way holds; a terminal has small ones, and is slow.
    blocks, size = (512, 4096) if world.mode == TERMINAL else (256, 65536)
    world.env |= {"BLOCKS": str(blocks), "SIZE": str(size)}
    if world.mode == TERMINAL:
        live = world.start_on(Terminal(paused=True), world.command(PYTHON, "-c", POUR))
        seen = live.out
    else:
        slow = world.script('exec "$@" | { while [ ! -e read ]; do sleep 0.02; done; cat; }')
        live = world.start([*slow, *world.command(PYTHON, "-c", POUR)])
        seen = None
    held = stuck(world)
    memory = max(resident_kib(pid) for pid in world.inhabitants())
    world.path("read").touch()
    if seen:
        seen.resume()
    ended = live.end()
    letters = sum(ended.out.count(letter) for letter in b"abcdefghijklmnopqrstuvwxyz")
    return held < blocks // 4, memory < 100 * 1024, letters, ended.code


@case("O09-whole", "30 times `seq 1 20000` on a terminal under load: all 108,894 bytes (and CRs)", (TERMINAL,), wanted={128_894: 30})
def whole_under_load(world: World) -> object:
    burn = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
    try:
        sizes = [len(world.run(world.command("seq", "1", "20000")).out) for _ in range(30)]
    finally:
        for process in burn:
            process.kill()
            process.wait()
    return {size: sizes.count(size) for size in sizes}
