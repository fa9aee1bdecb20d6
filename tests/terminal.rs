//! On a terminal gpuwatch isn't there: keys, job control, size, settings and questions are the
//! command's, in a real interactive shell.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use support::{Job, Live, Sandbox, Shell, Terminal, content, for_each, python, script, wait_until};

/// The command line of `job` for typing into a shell.
fn gpuwatch(rest: &str) -> String {
    format!("{} run -q {rest}", env!("CARGO_BIN_EXE_gpuwatch"))
}

fn listener(log: &str, status: i32) -> String {
    format!("{} {} {log} {status}", python(), script("signal_log.py"))
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let sandbox = Sandbox::new();
    let mut shell = Shell::start(&sandbox);
    for (log, redirect) in [
        ("plain", ""),
        ("piped", " | cat"),
        ("errors", " 2>errors.txt"),
    ] {
        let line = gpuwatch(&format!("-- {}{redirect}", listener(log, 7)));
        shell.line(&line);
        shell.wait_for("ready");
        let arrived = || std::fs::read(sandbox.path(log)).unwrap();
        for count in 1..=3 {
            shell.send("\x03");
            wait_until("it arrives", || arrived().len() >= count);
        }
        shell.send("\x1c");
        wait_until("QUIT arrives", || arrived().last() == Some(&3));
        std::fs::write(sandbox.path(&format!("{log}.end")), "").unwrap();
        shell.prompt();
        assert_eq!(arrived(), [2, 2, 2, 3], "{log}");
        if redirect != " | cat" {
            assert_eq!(shell.status(), "7", "the command decides how it ends");
        }
    }
    assert!(shell.exit().success());
}

#[test]
fn ctrl_c_ends_a_command_without_a_handler() {
    let sandbox = Sandbox::new();
    let mut shell = Shell::start(&sandbox);
    for command in [
        "sh -c 'echo up; exec sleep 600'".to_owned(),
        gpuwatch("-- sh -c 'echo up; exec sleep 600'"),
    ] {
        shell.line(&command);
        shell.wait_for("up\r\n");
        shell.send("\x03");
        shell.prompt();
        assert_eq!(shell.status(), "130", "{command}");
    }
    assert!(shell.exit().success());
    assert_eq!(sandbox.record().json()["state"], "cancelled");
}

#[test]
fn ctrl_z_stops_and_fg_resumes() {
    let sandbox = Sandbox::new();
    // One process: a shell that is stopped amid a vfork is never seen to stop.
    let count = "
import itertools, time
for i in itertools.count(1):
    print('tick', i, flush=True)
    time.sleep(0.05)
";
    std::fs::write(sandbox.path("count.py"), count).unwrap();
    let direct = format!("{} count.py", python());
    let watched = gpuwatch(&format!("-- {direct}"));
    let mut shell = Shell::start(&sandbox);
    for command in [direct, watched.clone(), format!("{watched} | cat")] {
        shell.line(&command);
        shell.wait_for("tick 3\r\n");
        shell.stop();
        shell.line("echo while stopped");
        shell.wait_for("while stopped\r\n");
        shell.prompt();
        shell.fetch();
        shell.wait_for("tick ");
        shell.wait_for("tick ");
        shell.send("\x03");
        shell.prompt();
        if !command.contains('|') {
            assert_eq!(shell.status(), "130", "{command}");
        }
    }
    // Stopped twice, then let go in the background and fetched back.
    shell.line(&watched);
    for _ in 0..2 {
        shell.job_in_front();
        shell.wait_for("tick ");
        shell.stop();
        shell.line("bg");
        shell.wait_for("tick ");
        shell.line("fg");
    }
    shell.wait_for("tick ");
    shell.send("\x03");
    shell.prompt();
    assert!(shell.exit().success());
}

/// What a command wrote just before it stops may be shown after it goes on, but never later.
fn stops_and_goes_on(stop: &str) {
    let sandbox = Sandbox::new();
    let mut shell = Shell::start(&sandbox);
    let direct = format!("sh -c 'echo one; {stop}; echo two'");
    for command in [direct.clone(), gpuwatch(&format!("-- {direct}"))] {
        let before = shell.terminal.so_far().len();
        shell.line(&command);
        shell.wait_for("Stopped");
        shell.prompt();
        shell.line("fg");
        shell.wait_for("two\r\n");
        shell.prompt();
        let shown = shell.terminal.so_far().split_off(before);
        assert!(shown.contains("\none\r\n"), "{shown}");
        assert_eq!(shell.status(), "0", "{command}");
    }
    assert!(shell.exit().success());
}

#[test]
fn a_command_that_stops_its_group_stops_the_job() {
    stops_and_goes_on("kill -TSTP 0");
}

#[test]
fn a_command_that_stops_itself_stops_the_job() {
    stops_and_goes_on("kill -STOP $$");
    stops_and_goes_on("kill -TSTP $$");
}

#[test]
fn in_the_background_it_is_never_stopped_on_its_own_account() {
    let sandbox = Sandbox::new();
    let mut shell = Shell::start(&sandbox);
    for setting in ["-tostop", "tostop"] {
        shell.line(&format!("stty {setting}"));
        shell.prompt();
        // A silent command, once quiet and once with our own words at the end.
        for options in ["-q", ""] {
            let done = format!("done{options}{setting}");
            let line = format!(
                "{} run {options} -- sh -c 'sleep 0.3; echo x > {done}' &",
                env!("CARGO_BIN_EXE_gpuwatch")
            );
            shell.line(&line);
            shell.prompt();
            content(&sandbox.path(&done));
            shell.line("wait");
            shell.prompt();
            assert_eq!(shell.status(), "0");
        }
    }
    assert!(
        !shell.terminal.so_far().contains("Stopped"),
        "{}",
        shell.terminal.so_far()
    );
    // One that prints is stopped under tostop, as it is direct, and goes on with fg.
    for command in [
        "sh -c 'echo shown'".to_owned(),
        gpuwatch("-- sh -c 'echo shown'"),
    ] {
        shell.stops_in_background(&command);
        shell.line("fg");
        shell.wait_for("shown\r\n");
        shell.prompt();
    }
    assert!(shell.exit().success());
}

#[test]
fn output_from_the_background_is_shown() {
    let sandbox = Sandbox::new();
    let mut shell = Shell::start(&sandbox);
    shell.line(&gpuwatch("-- sh -c 'echo from; sleep 0.2; echo behind' &"));
    shell.wait_for("behind\r\n");
    shell.line("wait");
    shell.prompt();
    assert!(shell.exit().success());
}

#[test]
fn a_background_reader_is_stopped_as_it_is_direct() {
    let sandbox = Sandbox::new();
    let mut shell = Shell::start(&sandbox);
    for command in [
        "sh -c 'read x; echo got:$x'".to_owned(),
        gpuwatch("-- sh -c 'read x; echo got:$x'"),
    ] {
        shell.stops_in_background(&command);
        shell.line("fg");
        shell.send("typed\n");
        shell.wait_for("got:typed\r\n");
        shell.prompt();
    }
    assert!(shell.exit().success());
}

#[test]
fn the_command_is_on_a_terminal() {
    let look = "
import os, sys
print([os.isatty(fd) for fd in range(3)], os.get_terminal_size())
print(os.getpgrp() == os.tcgetpgrp(0), open('/dev/tty').isatty())
";
    let sandbox = Sandbox::new();
    for job in sandbox.both(&[python(), "-c", look]) {
        let mut terminal = Terminal::new(31, 97);
        assert!(job.start_on(&mut terminal).wait().success());
        let shown = String::from_utf8(terminal.everything()).unwrap();
        assert_eq!(
            shown,
            "[True, True, True] os.terminal_size(columns=97, lines=31)\r\nTrue True\r\n"
        );
    }
}

#[test]
fn a_new_size_is_told_to_the_command() {
    // The command reports its size at the start and at every WINCH, from each stream.
    let report = "
import os, signal, sys, time
def size(*_):
    sizes = {os.get_terminal_size(fd) for fd in range(3)}
    os.write(1, ''.join(f'{s.lines}x{s.columns};\\n' for s in sizes).encode())
signal.signal(signal.SIGWINCH, size)
size()
while not os.path.exists('end'):
    time.sleep(0.01)
";
    let sandbox = Sandbox::new();
    for job in sandbox.both(&[python(), "-c", report]) {
        let mut terminal = Terminal::new(24, 80);
        let mut live = job.start_on(&mut terminal);
        terminal.wait_for("24x80;\r\n");
        for (rows, cols) in [(40, 120), (10, 30), (50, 200)] {
            terminal.resize(rows, cols);
            terminal.wait_for(&format!("{rows}x{cols};\r\n"));
        }
        std::fs::write(sandbox.path("end"), "").unwrap();
        assert!(live.wait().success());
        std::fs::remove_file(sandbox.path("end")).unwrap();
    }
}

#[test]
fn the_settings_are_the_same_before_and_after() {
    type Ending = fn(&mut Live, i32);
    let endings: [(&str, &str, Ending); 6] = [
        ("normal", "echo up; echo $$ > pid", |_, _| {}),
        (
            "killed",
            "echo up; echo $$ > pid; exec sleep 600",
            |_, child| support::kill(child, libc::SIGKILL),
        ),
        (
            "TERM to us",
            "echo up; echo $$ > pid; exec sleep 600",
            |live, _| live.signal(libc::SIGTERM),
        ),
        (
            "HUP to us",
            "echo up; echo $$ > pid; exec sleep 600",
            |live, _| live.signal(libc::SIGHUP),
        ),
        (
            "changed by stdout",
            "stty -echo -icanon <&1; echo up; echo $$ > pid",
            |_, _| {},
        ),
        (
            "changed and killed",
            "stty -echo -icanon <&1; echo up; echo $$ > pid; exec sleep 600",
            |_, child| {
                support::kill(child, libc::SIGKILL);
            },
        ),
    ];
    for_each(&endings, |(name, script, end)| {
        let sandbox = Sandbox::new();
        let mut terminal = Terminal::new(24, 80);
        let before = terminal.settings();
        let mut live = sandbox
            .watched(&["-q"], &["sh", "-c", script])
            .start_on(&mut terminal);
        terminal.wait_for("up\r\n");
        let child = content(&sandbox.path("pid")).parse().unwrap();
        end(&mut live, child);
        live.wait();
        assert_eq!(terminal.settings(), before, "{name}");
    });
}

#[test]
fn settings_made_through_stdout_are_the_terminals_meanwhile() {
    // A command that turns the echo off by its stdout means the terminal that the user types at.
    let sandbox = Sandbox::new();
    let hide = "stty -echo <&1; echo up; read word; stty echo <&1; echo \"[$word]\"";
    for job in sandbox.both(&["sh", "-c", hide]) {
        let mut terminal = Terminal::new(24, 80);
        let mut live = job.start_on(&mut terminal);
        terminal.wait_for("up\r\n");
        wait_until("the echo is off", || {
            !terminal
                .settings()
                .local_flags
                .contains(nix::sys::termios::LocalFlags::ECHO)
        });
        terminal.send("secret\n");
        terminal.wait_for("[secret]");
        assert!(live.wait().success());
        assert_eq!(
            terminal.so_far().matches("secret").count(),
            1,
            "{}",
            terminal.so_far()
        );
    }
}

#[test]
fn a_password_is_asked_for_and_not_shown() {
    let ask = "
import getpass, sys
word = getpass.getpass('Password: ')
name = input('Name: ')
print('got', len(word), name)
";
    let sandbox = Sandbox::new();
    for job in sandbox.both(&[python(), "-c", ask]) {
        let mut terminal = Terminal::new(24, 80);
        let before = terminal.settings();
        let mut live = job.start_on(&mut terminal);
        terminal.wait_for("Password: ");
        wait_until("the echo is off", || terminal.settings() != before);
        terminal.send("geheim\n");
        terminal.wait_for("Name: ");
        terminal.send("li\n");
        terminal.wait_for("got 6 li\r\n");
        assert!(live.wait().success());
        assert_eq!(terminal.settings(), before);
        assert!(
            !terminal.so_far().contains("geheim"),
            "{}",
            terminal.so_far()
        );
    }
}

#[test]
fn an_interactive_shell_as_the_command_has_job_control() {
    let sandbox = Sandbox::new();
    let bash = ["bash", "--norc", "--noprofile", "--noediting", "-i"];
    for job in sandbox.both(&bash) {
        let mut terminal = Terminal::new(24, 80);
        let job: Job = job.env("PS1", "inner> ");
        let mut live = job.start_on(&mut terminal);
        terminal.wait_for("inner> ");
        terminal.send("sh -c 'echo u''p; exec sleep 600'\n");
        terminal.wait_for("up\r\n");
        terminal.send("\x1a");
        terminal.wait_for("Stopped");
        terminal.wait_for("inner> ");
        terminal.send("kill -KILL %1; wait; echo $((40+2))\n");
        terminal.wait_for("42\r\n");
        // Where bash still thinks of the job as stopped, it warns once.
        terminal.send("exit 5\nexit 5\n");
        assert_eq!(live.wait().code(), Some(5));
        let shown = terminal.so_far();
        assert!(!shown.contains("job control"), "{shown}");
    }
}

#[test]
fn our_own_words_keep_off_the_commands_last_line() {
    let sandbox = Sandbox::new();
    let ended = sandbox
        .watched(&[], &["printf", "no newline"])
        .run_on_terminal();
    let shown = ended.out();
    let last = shown.split("no newline").nth(1).unwrap();
    assert!(
        last.starts_with("\r\n"),
        "the summary begins a line of its own: {shown:?}"
    );
    let summary: Vec<_> = last.trim().lines().collect();
    assert!(!summary.is_empty());
    assert!(
        summary.iter().all(|l| l.starts_with("gpuwatch:")),
        "{shown:?}"
    );
}
