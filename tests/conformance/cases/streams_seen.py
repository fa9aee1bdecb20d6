"""Whatever stdin, stdout and stderr are, the command finds them so, and they get what it writes."""

from __future__ import annotations

from registry import BOTH, cases_of
from world import TERMINAL, World

case = cases_of("Streams")
ON_TERMINAL = (TERMINAL,)

# Terminal, pipe, file, /dev/null and closed, alone and in company.
ARRANGEMENTS = [
    "",
    " > file",
    " 2> file",
    " < /dev/null",
    " | cat",
    " 2>&1 | cat",
    " > file 2>&1",
    " >> file 2>&1",
    " > /dev/null",
    " 2> /dev/null",
    " > /dev/null 2>&1 < /dev/null",
    " >&-",
    " 2>&-",
    " <&-",
    " > file 2>&-",
]

# Answers go to a descriptor of their own: a redirection of the loop would be what is looked at.
KINDS = """
exec 9>> kinds
for n in 0 1 2; do
    if [ -t $n ]; then kind=terminal; elif [ -e /proc/$$/fd/$n ]; then kind=open; else kind=closed; fi
    echo $n $kind >&9
done
"""

WRITES = "echo out 2> /dev/null; echo err >&2"


@case("O02-isatty", "15 arrangements of terminal, pipe, file, /dev/null, closed: isatty and open", ON_TERMINAL)
def kinds_of_streams(world: World) -> object:
    wrapped = world.line("sh", "-c", KINDS)
    seen = {}
    for redirect in ARRANGEMENTS:
        world.run(world.script(wrapped + redirect))
        seen[redirect] = world.noted("kinds")
        world.path("kinds").unlink(missing_ok=True)
    return seen


@case("O02-bytes", "... and each stream has what was written to it", ON_TERMINAL)
def contents_of_streams(world: World) -> object:
    wrapped = world.line("sh", "-c", WRITES)
    seen = {}
    for redirect in ARRANGEMENTS:
        shown = world.run(world.script(wrapped + redirect)).out
        seen[redirect] = sorted(shown.splitlines()), world.noted("file")
        world.path("file").unlink(missing_ok=True)
    return seen


ALTERNATE = "i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done"
IN_ORDER = "".join(f"out {i}\nerr {i}\n" for i in range(300))


@case("O02-order", "stdout and stderr on one pipe or terminal keep their order", BOTH)
def order_of_writes(world: World) -> object:
    out = world.scene(world.line("sh", "-c", ALTERNATE) + " 2>&1").out
    return out.decode().replace("\r\n", "\n") == IN_ORDER


@case("O02-log", "... also in one log (`>> log 2>&1`, `> log 2>&1`)", BOTH)
def order_in_a_log(world: World) -> object:
    wrapped = world.line("sh", "-c", ALTERNATE)
    world.scene(f"{wrapped} >> appended 2>&1\n{wrapped} > written 2>&1")
    return [world.path(name).read_text() == IN_ORDER for name in ("appended", "written")]


@case("O02-offset", "a file is written to where the caller stood")
def where_the_caller_stood(world: World) -> object:
    wrapped = world.line("sh", "-c", "echo middle; echo wrong >&2")
    world.scene("{ echo first; " + wrapped + "; echo last; } > log 2> errors")
    return world.noted("log"), world.noted("errors")


@case("O02-append", "a file that others append to loses nothing")
def others_append(world: World) -> object:
    world.scene(world.line("sh", "-c", "echo one; echo theirs >> shared; echo two") + " >> shared")
    return sorted(world.noted("shared"))


@case("V05-stdin", "stdin: what is piped in arrives whole, then its end", BOTH)
def piped_in(world: World) -> object:
    count = world.line("sh", "-c", "wc -c > got; echo $? >> got", stdin=True)
    world.scene(f"seq 1 20000 | {count}")
    return world.noted("got")


@case("V05-rest", "... what the command doesn't read is left for the next", BOTH)
def the_rest_of_stdin(world: World) -> object:
    world.path("text").write_text("one\ntwo\nthree\n")
    wrapped = world.line("sh", "-c", "read first; echo got $first", stdin=True)
    ended = world.scene("{ " + wrapped + "; cat; } < text")
    return ended.out.split()
