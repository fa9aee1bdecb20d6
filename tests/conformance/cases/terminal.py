"""On a terminal: settings, sizes, keys, prompts."""

from __future__ import annotations

import signal
from collections.abc import Callable

from registry import cases_of
from streams import Terminal
from world import PYTHON, TERMINAL, Live, World, send

case = cases_of("Terminal")
ON_TERMINAL = (TERMINAL,)

IDENTITY = """
import json, os
caller = int(open('caller').read())
def answer(ask):
    try:
        return ask()
    except OSError as error:
        return error.strerror
seen = {
    'same session': os.getsid(0) == os.getsid(caller),
    'same group': os.getpgrp() == os.getpgid(caller),
    'in the foreground': answer(lambda: os.tcgetpgrp(0) == os.getpgrp()),
    'stdin is': answer(lambda: os.ttyname(0)),
    '/dev/tty opens': answer(lambda: os.isatty(os.open('/dev/tty', os.O_RDWR))),
}
with open('seen', 'w') as file:
    print(json.dumps(seen), file=file)
"""


@case("T02-session", "session, group, foreground, stdin and /dev/tty are the caller's", ON_TERMINAL)
def whose_terminal(world: World) -> object:
    terminal = Terminal()
    scene = "echo $$ > caller\n" + world.line(PYTHON, "-c", IDENTITY)
    world.start_on(terminal, world.script(scene)).end()
    return [line.replace(terminal.name, "the caller's") for line in world.noted()]


def same_settings(world: World, script: str, act: Callable[[Live, int], None]) -> object:
    terminal = Terminal()
    before = terminal.settings()
    live = world.start_on(terminal, world.command("sh", "-c", f"echo $$ > pid; echo up; {script}"))
    live.wait_for("up\r\n")
    act(live, int(world.note("pid")))
    live.wait()
    return terminal.settings() == before


@case("T03-normal", "settings are the same before and after", ON_TERMINAL, wanted=True)
def settings_after_an_end(world: World) -> object:
    return same_settings(world, "exit 0", lambda live, child: None)


@case("T03-killed", "... also when the command is KILLed", ON_TERMINAL, wanted=True)
def settings_after_a_kill(world: World) -> object:
    return same_settings(world, "exec sleep 600", lambda live, child: send(child, signal.SIGKILL))


@case("T03-term", "... when the wrapper is sent TERM", ON_TERMINAL, wanted=True)
def settings_after_term(world: World) -> object:
    return same_settings(world, "exec sleep 600", lambda live, child: live.signal(signal.SIGTERM))


@case("T03-kill", "... when the wrapper is KILLed", ON_TERMINAL, wanted=True)
def settings_after_kill_of_the_wrapper(world: World) -> object:
    return same_settings(world, "exec sleep 600", lambda live, child: live.signal(signal.SIGKILL))


REPORT = """
import os, signal, time
def size(*_):
    sizes = {os.get_terminal_size(fd) for fd in range(3)}
    os.write(1, ''.join(f'{s.lines}x{s.columns};\\n' for s in sizes).encode())
signal.signal(signal.SIGWINCH, size)
size()
while not os.path.exists('end'):
    time.sleep(0.01)
"""


@case("T04-size", "the window's size is right at once and after each resize", ON_TERMINAL)
def window_size(world: World) -> object:
    terminal = Terminal(31, 97)
    live = world.start_on(terminal, world.command(PYTHON, "-c", REPORT))
    live.wait_for("\n")
    first = bytes(live.out.data).split(b";")[0]
    for rows, columns in [(40, 120), (10, 30), (50, 200)]:
        terminal.resize(rows, columns)
        live.wait_for(f"{rows}x{columns};")
    world.path("end").touch()
    return first, live.wait()


QUERY = """
import os, sys, termios, tty
found = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b'\\x1b[6n')
answer = b''
while not answer.endswith(b'R'):
    answer += os.read(0, 1)
termios.tcsetattr(0, termios.TCSANOW, found)
print('answer', answer.hex(), flush=True)
"""


@case("T05-query", "a question to the terminal (ESC [6n) is answered", ON_TERMINAL)
def a_terminal_query(world: World) -> object:
    live = world.start(world.command(PYTHON, "-c", QUERY, stdin=True))
    live.wait_for("\x1b[6n")
    live.send("\x1b[5;7R")
    live.wait_for("answer 1b5b353b3752\r\n")
    return live.wait()


ASK = """
import getpass
word = getpass.getpass('Password: ')
name = input('Name: ')
print('got', len(word), name)
"""


@case("T02-getpass", "a password is asked for and not shown, the line after it is", ON_TERMINAL)
def a_password(world: World) -> object:
    terminal = Terminal()
    live = world.start_on(terminal, world.command(PYTHON, "-c", ASK, stdin=True))
    live.wait_for("Password: ")
    world.until("the echo is off", lambda: not terminal.echoes())
    live.send("geheim\n")
    live.wait_for("Name: ")
    live.send("li\n")
    live.wait_for("got 6 li\r\n")
    return live.wait(), b"geheim" in live.out.data, terminal.echoes()


@case("T06-eof", "what is typed arrives, Ctrl-D is its end", ON_TERMINAL)
def typed_to_the_end(world: World) -> object:
    live = world.start(world.command("sh", "-c", "echo up; cat > got; echo done", stdin=True))
    live.wait_for("up\r\n")
    live.send("one\ntwo\n\x04")
    live.wait_for("done\r\n")
    return world.noted("got"), live.wait()


@case("T02-shell", "`bash -i` as the command has job control and doesn't complain", ON_TERMINAL)
def an_interactive_shell(world: World) -> object:
    world.env["PS1"] = "inner> "
    live = world.start(world.command("bash", "--norc", "--noprofile", "--noediting", "-i", stdin=True))
    live.wait_for("inner> ")
    live.send("sh -c 'echo u''p; exec sleep 600'\n")
    live.wait_for("up\r\n")
    live.send("\x1a")
    live.wait_for("Stopped")
    live.wait_for("inner> ")
    live.send("kill -KILL %1; wait; echo $((40+2))\n")
    live.wait_for("42\r\n")
    # Where bash still thinks of the job as stopped, it warns once.
    live.send("exit 5\nexit 5\n")
    live.wait()
    return b"job control" in live.out.data
