//! Programs that draw: they set the terminal up by the stream that they draw on, and expect
//! it that way after a stop and in another window; and two ways to one terminal.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use nix::sys::termios::LocalFlags;
use support::{Sandbox, Shell, python, wait_until};

/// As curses does it: raw by way of stdout; before a stop the screen is left first and the
/// settings are put back after, and when it goes on they come before the screen.
const DRAWS: &str = "
import os, signal, sys, termios
found = termios.tcgetattr(1)
raw = termios.tcgetattr(1)
raw[3] &= ~(termios.ICANON | termios.ECHO)
def draw(text):
    termios.tcsetattr(1, termios.TCSADRAIN, raw)
    os.write(1, text)
def stop(*_):
    os.write(1, b'left\\n')
    termios.tcsetattr(1, termios.TCSADRAIN, found)
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTSTP])
    signal.signal(signal.SIGTSTP, stop)
    draw(b'drawn again\\n')
signal.signal(signal.SIGTSTP, stop)
draw(b'drawn\\n')
while True:
    key = os.read(0, 1)
    os.write(1, b'key <' + key + b'>\\n')
    if key == b'q':
        break
termios.tcsetattr(1, termios.TCSADRAIN, found)
";

fn shell_with(sandbox: &Sandbox, code: &str) -> (Shell, [String; 2]) {
    std::fs::write(sandbox.path("draws.py"), code).unwrap();
    let direct = format!("{} draws.py", python());
    let watched = format!("{} run -q -- {direct}", env!("CARGO_BIN_EXE_gpuwatch"));
    (Shell::start(sandbox), [direct, watched])
}

#[test]
fn a_program_that_draws_gets_its_keys_after_each_stop() {
    let sandbox = Sandbox::new();
    let (mut shell, commands) = shell_with(&sandbox, DRAWS);
    for command in commands {
        shell.line(&command);
        shell.wait_for("drawn\r\n");
        for _ in 0..5 {
            shell.send("k");
            shell.wait_for("key <k>\r\n");
            shell.stop();
            shell.line("fg");
            shell.wait_for("drawn again\r\n");
        }
        shell.send("q");
        shell.wait_for("key <q>\r\n");
        shell.prompt();
        assert_eq!(shell.status(), "0", "{command}");
        let cooked = LocalFlags::ICANON | LocalFlags::ECHO;
        wait_until("the terminal is as before", || {
            shell.terminal.settings().local_flags.contains(cooked)
        });
    }
    assert!(shell.exit().success());
}

#[test]
fn in_the_background_it_waits_to_be_fetched() {
    let sandbox = Sandbox::new();
    let (mut shell, commands) = shell_with(&sandbox, DRAWS);
    for command in commands {
        shell.stops_in_background(&command);
        assert!(!shell.terminal.so_far().contains("drawn\r\n"), "{command}");
        shell.line("fg");
        shell.wait_for("drawn\r\n");
        shell.send("k");
        shell.wait_for("key <k>\r\n");
        shell.send("q");
        shell.prompt();
        assert_eq!(shell.status(), "0", "{command}");
        // The next one's screen is told from this one's by what comes after.
        shell = Shell::start(&sandbox);
    }
    assert!(shell.exit().success());
}

#[test]
fn a_size_that_changed_in_the_background_is_right_in_the_foreground() {
    let sandbox = Sandbox::new();
    let sizes = "
import os, signal, time
print('up', flush=True)
while not os.path.exists('front'):
    time.sleep(0.01)
# Nobody tells it; a busy machine may need a moment to bring it here.
wanted = int(open('front').read())
while os.get_terminal_size(1).lines != wanted:
    time.sleep(0.01)
print('rows', wanted, flush=True)
";
    let (mut shell, commands) = shell_with(&sandbox, sizes);
    for (rows, command) in [33, 44].into_iter().zip(commands) {
        shell.line(&command);
        shell.wait_for("up\r\n");
        shell.stop();
        shell.line("bg");
        shell.prompt();
        shell.terminal.resize(rows, 80);
        shell.line("kill -CONT %1; fg");
        shell.job_in_front();
        std::fs::write(sandbox.path("front.new"), rows.to_string()).unwrap();
        std::fs::rename(sandbox.path("front.new"), sandbox.path("front")).unwrap();
        shell.wait_for("rows ");
        shell.wait_for(&format!("{rows}\r\n"));
        shell.prompt();
        std::fs::remove_file(sandbox.path("front")).unwrap();
    }
    assert!(shell.exit().success());
}

#[test]
fn two_ways_to_one_terminal_keep_their_order() {
    let sandbox = Sandbox::new();
    let count = "i=0; while [ $i -lt 300 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done";
    for job in sandbox.both(&["sh", "-c", count]) {
        let ended = job
            .under(&["sh", "-c", "exec \"$@\" 2>/dev/tty", "sh"])
            .run_on_terminal();
        let wanted = (0..300).fold(String::new(), |text, i| {
            text + &format!("out{i}\r\nerr{i}\r\n")
        });
        assert_eq!(ended.out(), wanted);
    }
}

/// As `less` does it: keys are read from the terminal that stderr names, opened for reading
/// alone; output is to be processed; the terminal is given back in the end.
const READS_BY_NAME: &str = "
import os, termios
fd = os.open(os.ttyname(2), os.O_RDONLY)
found = termios.tcgetattr(fd)
raw = termios.tcgetattr(fd)
raw[1] |= termios.OPOST | termios.ONLCR
raw[3] &= ~(termios.ICANON | termios.ECHO)
termios.tcsetattr(fd, termios.TCSADRAIN, raw)
os.write(1, b'shown\\n')
while True:
    key = os.read(fd, 1)
    os.write(1, b'key <' + key + b'>\\n')
    if key == b'q':
        break
termios.tcsetattr(fd, termios.TCSADRAIN, found)
os.close(fd)
os.write(1, b'line: ')
print('read', input(), flush=True)
";

#[test]
fn a_pager_gets_its_keys_and_who_comes_after_it_the_rest() {
    let sandbox = Sandbox::new();
    let (mut shell, commands) = shell_with(&sandbox, READS_BY_NAME);
    for command in commands {
        shell.line(&command);
        shell.wait_for("shown\r\n");
        for key in ["a", "b", "q"] {
            shell.send(key);
            // Where it gives the terminal back at once, the line may end in one \r more.
            shell.wait_for(&format!("key <{key}>\r"));
        }
        shell.wait_for("line: ");
        shell.send("words\n");
        shell.wait_for("read words\r\n");
        shell.prompt();
        assert_eq!(shell.status(), "0", "{command}");
    }
    assert!(shell.exit().success());
}
