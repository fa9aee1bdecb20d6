//! Commands that act the moment they begin: on a busy machine they have signalled, read the
//! terminal or ended before gpuwatch gets to look.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::time::Duration;

use support::{Listener, Live, Sandbox, Shell, Terminal, for_each, kill, marked, wait_until};

/// Keeps the machine busy as long as it lives.
fn load() -> [Live; 4] {
    std::array::from_fn(|_| Live::busy())
}

#[test]
fn a_signal_of_its_own_to_the_group_arrives_once() {
    let _load = load();
    // A second one would come while it counts.
    let act =
        "trap 'echo got' USR1; kill -USR1 0; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let runs: Vec<u32> = (0..100).collect();
    for_each(&runs, |run| {
        let sandbox = Sandbox::new();
        let job = sandbox.watched(&["-q", "--no-record", "--gpus", "none"], &["sh", "-c", act]);
        let ended = job.own_group().run();
        assert_eq!(
            (ended.code(), ended.out()),
            (Some(0), "got\n".into()),
            "run {run}"
        );
    });
}

#[test]
fn reading_the_terminal_from_the_background_stops_it_once() {
    let _load = load();
    let runs: Vec<u32> = (0..24).collect();
    for_each(&runs, |_| {
        let sandbox = Sandbox::new();
        let mut shell = Shell::start(&sandbox);
        let gpuwatch = env!("CARGO_BIN_EXE_gpuwatch");
        shell.stops_in_background(&format!("{gpuwatch} run -q -- sh -c 'read x; echo got:$x'"));
        shell.fetch();
        shell.send("typed\n");
        shell.wait_for("got:typed\r\n");
        shell.prompt();
        assert!(shell.exit().success());
    });
}

#[test]
fn a_winch_without_a_resize_arrives_once_on_a_terminal() {
    for_each(&[true, false], |&to_group| {
        let sandbox = Sandbox::new();
        let mut terminal = Terminal::new(24, 80);
        let job = sandbox.watched(&["-q"], &Listener::argv(&sandbox.arg("log"), "0"));
        let listener = Listener::start_on(&mut terminal, &sandbox, &job);
        let pid = listener.live.pid();
        for _ in 0..3 {
            let before = listener.arrived().len();
            kill(if to_group { -pid } else { pid }, libc::SIGWINCH);
            wait_until("it arrives", || listener.arrived().len() > before);
        }
        kill(pid, libc::SIGUSR1);
        listener.wait_for(libc::SIGUSR1);
        let (arrived, _) = listener.end();
        let winch = libc::SIGWINCH as u8;
        assert_eq!(
            arrived,
            [winch, winch, winch, libc::SIGUSR1 as u8],
            "to the group: {to_group}"
        );
    });
}

#[test]
fn a_term_at_any_moment_on_a_terminal_ends_it_and_leaves_nobody() {
    let moments: Vec<u64> = (0..200).map(|i| (i * 37) % 51).collect();
    for_each(&moments, |&moment| {
        let sandbox = Sandbox::new();
        let mark = sandbox.arg("mark");
        let options = ["-q", "--no-record"];
        let job = sandbox.watched(&options, &["sleep", "600"]);
        let mut terminal = Terminal::new(24, 80);
        let mut live = job.env("TEST_MARK", &mark).start_on(&mut terminal);
        // The moment itself is what is tried: nothing waits for it.
        std::thread::sleep(Duration::from_millis(moment));
        kill(live.pid(), libc::SIGTERM);
        let status = live.wait();
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(signal, Some(libc::SIGTERM), "TERM after {moment} ms");
        wait_until("nobody is left", || marked(&mark).is_empty());
    });
}
