//! Keys reach whoever waits for them on the terminal, by whichever of its descriptors and
//! however it waits; the rest stays for those who come after.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use nix::sys::termios::LocalFlags;
use support::{Job, Sandbox, Shell, Terminal, content, for_each, python, wait_until};

const GPUWATCH: &str = concat!(env!("CARGO_BIN_EXE_gpuwatch"), " run -q --");

/// A command line both ways, typed into a shell: `@` stands for what comes before the command.
fn both_ways(line: &str) -> [String; 2] {
    ["", GPUWATCH].map(|before| line.replace('@', before))
}

fn numbers(sandbox: &Sandbox) {
    let lines: Vec<String> = (1..=300).map(|i| format!("number {i}\n")).collect();
    std::fs::write(sandbox.path("numbers"), lines.concat()).unwrap();
}

#[test]
fn pagers_turn_pages_and_leave_the_rest_to_the_shell() {
    let pagers = [
        "@ more numbers",
        "@ less -X numbers",
        "cat numbers | @ less -X",
    ];
    for_each(&pagers, |pager| {
        let sandbox = Sandbox::new();
        numbers(&sandbox);
        let mut shell = Shell::start(&sandbox);
        let before = shell.terminal.settings();
        for line in both_ways(pager) {
            shell.line(&line);
            for shown in [20, 40, 60] {
                shell.wait_for(&format!("number {shown}\r\n"));
                shell.send(" ");
            }
            shell.wait_for("number 80\r\n");
            // less misses a stop that comes just before it waits, with us or without.
            if pager.contains("more") {
                shell.stop();
                shell.fetch();
                shell.send(" ");
                shell.wait_for("number 100\r\n");
            }
            // Who types ahead means the shell by what comes after the key that leaves.
            let reads_key_by_key = pager.contains("less");
            shell.send(if reads_key_by_key {
                "qecho a''head\n"
            } else {
                "q"
            });
            shell.prompt();
            if reads_key_by_key {
                shell.wait_for("ahead\r\n");
                shell.prompt();
            }
            assert_eq!(shell.status(), "0", "{line}");
            let cooked = || shell.terminal.settings().local_flags == before.local_flags;
            wait_until("the terminal is as before", cooked);
        }
        assert!(shell.exit().success());
    });
}

#[test]
fn an_editor_behind_a_pipe_edits() {
    let sandbox = Sandbox::new();
    numbers(&sandbox);
    let mut shell = Shell::start(&sandbox);
    for (name, line) in ["direct", "watched"]
        .into_iter()
        .zip(both_ways("cat numbers | @ vim.tiny -u NONE -n -"))
    {
        shell.line(&line);
        shell.wait_for("number 20");
        // Arrows are keys of several bytes.
        shell.send("\x1b[Bithis is \x1b");
        shell.send(&format!(":w {name}\r"));
        let saved = content(&sandbox.path(name));
        assert!(
            saved.starts_with("number 1\nthis is number 2\nnumber 3\n"),
            "{saved}"
        );
        shell.send(":q!\r");
        shell.prompt();
        assert_eq!(shell.status(), "0", "{line}");
    }
    assert!(shell.exit().success());
}

#[test]
fn lines_are_read_from_stderr_and_shown_once() {
    let sandbox = Sandbox::new();
    let read = "read -u 2 -p 'say: ' x; echo \"[$x]\"; read -u 2 x; echo \"end $?\"";
    for job in sandbox.both(&["bash", "-c", read]) {
        let mut terminal = Terminal::new(24, 80);
        let mut live = job.start_on(&mut terminal);
        terminal.wait_for("say: ");
        terminal.send("some words\n");
        terminal.wait_for("[some words]\r\n");
        terminal.send("\x04");
        terminal.wait_for("end 1\r\n");
        assert!(live.wait().success());
        let shown = String::from_utf8(terminal.everything()).unwrap();
        assert_eq!(shown, "say: some words\r\n[some words]\r\nend 1\r\n");
    }
}

/// Reads keys from the terminal that stderr is, in one of the ways in which that can be done.
const READS: &str = "
import os, select, sys, termios, time
way = sys.argv[1]
fd = 2
if way == 'asks again and again':
    fd = os.open(os.ttyname(2), os.O_RDONLY | os.O_NONBLOCK)
found = termios.tcgetattr(2)
raw = termios.tcgetattr(2)
raw[3] &= ~(termios.ICANON | termios.ECHO)
termios.tcsetattr(2, termios.TCSADRAIN, raw)
poll = select.poll()
poll.register(fd, select.POLLIN)
epoll = select.epoll()
epoll.register(fd, select.EPOLLIN)
def key():
    if way == 'select':
        select.select([fd], [], [])
    elif way == 'poll':
        poll.poll()
    elif way == 'poll with a timeout':
        while not poll.poll(50):
            pass
    elif way == 'epoll':
        epoll.poll()
    while True:
        try:
            return os.read(fd, 1)
        except BlockingIOError:
            time.sleep(0.02)
os.write(1, b'ready\\n')
while True:
    pressed = key()
    os.write(1, b'key <' + pressed + b'>\\n')
    if pressed == b'q':
        break
termios.tcsetattr(2, termios.TCSADRAIN, found)
";

/// It reads its keys one by one, and leaves the terminal as it was.
fn assert_gets_keys(job: &Job) {
    let mut terminal = Terminal::new(24, 80);
    let before = terminal.settings();
    let mut live = job.start_on(&mut terminal);
    terminal.wait_for("ready\r\n");
    for key in ["a", "b", "q"] {
        terminal.send(key);
        terminal.wait_for(&format!("key <{key}>\r\n"));
    }
    assert!(live.wait().success());
    assert_eq!(terminal.settings(), before);
}

#[test]
fn however_it_waits_a_command_gets_its_keys() {
    let ways = [
        "read",
        "select",
        "poll",
        "poll with a timeout",
        "epoll",
        "asks again and again",
    ];
    for_each(&ways, |way| {
        let sandbox = Sandbox::new();
        for job in sandbox.both(&[python(), "-c", READS, way]) {
            assert_gets_keys(&job);
        }
    });
}

#[test]
fn one_that_was_started_behind_a_line_editor_gets_its_keys_in_front() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("reads.py"), READS).unwrap();
    let mut shell = Shell::start(&sandbox);
    for line in both_ways(&format!("@ {} reads.py read", python())) {
        // As a shell's line editor has it while a background job starts.
        shell.line(&format!(
            "stty -icanon min 1; {line} & until [ \"$(jobs -s)\" ]; do sleep 0.05; done; stty icanon"
        ));
        shell.prompt();
        shell.line("fg");
        shell.wait_for("ready\r\n");
        for key in ["a", "q"] {
            shell.send(key);
            shell.wait_for(&format!("key <{key}>\r\n"));
        }
        shell.prompt();
        // What it found at its start is what it leaves, direct.
        shell.send("stty sane\n");
        shell.prompt();
    }
    assert!(shell.exit().success());
}

#[test]
fn one_launcher_in_another_passes_keys_and_settings_too() {
    let sandbox = Sandbox::new();
    let inner = [env!("CARGO_BIN_EXE_gpuwatch"), "run", "-q", "--"];
    for way in ["read", "poll"] {
        let argv = [&inner[..], &[python(), "-c", READS, way]].concat();
        assert_gets_keys(&sandbox.watched(&["-q"], &argv));
    }
}

#[test]
fn who_reads_the_terminal_itself_comes_first() {
    // Its child waits for keys at the stand-in all the time, in raw mode.
    let code = "
import os, termios
raw = termios.tcgetattr(2)
raw[3] &= ~(termios.ICANON | termios.ECHO)
termios.tcsetattr(2, termios.TCSADRAIN, raw)
child = os.fork()
if child == 0:
    while True:
        os.write(1, b'stolen <' + os.read(2, 1) + b'>\\n')
with open('pids.new', 'w') as file:
    print(os.getpid(), child, file=file)
os.rename('pids.new', 'pids')
for _ in range(40):
    os.write(1, b'key <' + os.read(0, 1) + b'>\\n')
os.kill(child, 9)
";
    let sandbox = Sandbox::new();
    let job = sandbox.watched(&["-q"], &[python(), "-c", code]);
    let mut terminal = Terminal::new(24, 80);
    let mut live = job.start_on(&mut terminal);
    let pids = content(&sandbox.path("pids"));
    let pids: Vec<&str> = pids.split_ascii_whitespace().collect();
    let reads = |pid: &str, fd: i32| {
        let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap();
        call.starts_with(&format!("{} {fd:#x} ", libc::SYS_read))
    };
    for i in 0..40 {
        // Between two reads nobody can know that it will come back.
        wait_until("both wait", || reads(pids[0], 0) && reads(pids[1], 2));
        let key = char::from(b'A' + i % 26);
        terminal.send(&key.to_string());
        terminal.wait_for(&format!("key <{key}>\r\n"));
    }
    assert!(live.wait().success());
    let shown = terminal.so_far();
    assert!(!shown.contains("stolen"), "{shown}");
}

/// A command that reads once the file `typed` is there shows what was typed before.
fn assert_reads_what_was_typed(argv: &[&str], typed: impl Fn(&mut Terminal), shown: &str) {
    let sandbox = Sandbox::new();
    for job in sandbox.both(argv) {
        let mut terminal = Terminal::new(24, 80);
        let mut live = job.start_on(&mut terminal);
        typed(&mut terminal);
        std::fs::write(sandbox.path("typed"), "").unwrap();
        terminal.wait_for(shown);
        assert!(live.wait().success());
        std::fs::remove_file(sandbox.path("typed")).unwrap();
    }
}

#[test]
fn keys_typed_ahead_wait_for_who_reads_the_terminal() {
    // It draws by way of stdout, is busy for a while, and then reads its stdin.
    let code = "
import os, termios, time
raw = termios.tcgetattr(1)
raw[3] &= ~(termios.ICANON | termios.ECHO)
termios.tcsetattr(1, termios.TCSADRAIN, raw)
os.write(1, b'busy\\n')
while not os.path.exists('typed'):
    time.sleep(0.01)
time.sleep(0.7)
os.write(1, b'read <' + os.read(0, 100) + b'>\\n')
";
    let typed = |terminal: &mut Terminal| {
        terminal.wait_for("busy\r\n");
        terminal.send("ahead");
    };
    assert_reads_what_was_typed(&[python(), "-c", code], typed, "read <ahead>\r\n");
}

#[test]
fn a_line_typed_ahead_is_read_from_stderr_later() {
    let read = "while [ ! -e typed ]; do sleep 0.01; done; sleep 0.7; read -u 2 x; echo \"[$x]\"";
    let typed = |terminal: &mut Terminal| {
        terminal.send("ahead\n");
        terminal.wait_for("ahead\r\n");
    };
    assert_reads_what_was_typed(&["bash", "-c", read], typed, "[ahead]\r\n");
}

#[test]
fn what_is_set_by_stdout_holds_before_anything_is_written() {
    let sandbox = Sandbox::new();
    let hide = "stty -echo <&1; read word; stty echo <&1; read more; echo \"[$word $more]\"";
    for job in sandbox.both(&["sh", "-c", hide]) {
        let mut terminal = Terminal::new(24, 80);
        let mut live = job.start_on(&mut terminal);
        let shows =
            |terminal: &Terminal| terminal.settings().local_flags.contains(LocalFlags::ECHO);
        wait_until("the echo is off", || !shows(&terminal));
        terminal.send("secret\n");
        wait_until("the echo is on", || shows(&terminal));
        terminal.send("words\n");
        terminal.wait_for("[secret words]\r\n");
        assert!(live.wait().success());
        assert_eq!(
            terminal.so_far().matches("secret").count(),
            1,
            "{}",
            terminal.so_far()
        );
    }
}
