//! A run that somebody ends from outside: a CI runner's cancel, and KILL after a grace.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::os::unix::process::ExitStatusExt;

use support::{Listener, Sandbox, Terminal, alive, content, for_each, kill, wait_until};

const INT: u8 = libc::SIGINT as u8;
const TERM: u8 = libc::SIGTERM as u8;
const USR1: u8 = libc::SIGUSR1 as u8;

/// INT, then TERM, then KILL: each as soon as what the one before must have done is seen, which
/// leaves less time than a runner does.
#[test]
fn a_runner_s_cancel_is_on_disk_before_its_kill() {
    for_each(&[false, true], |&to_group| {
        let sandbox = Sandbox::new();
        let options: &[&str] = if to_group {
            &[]
        } else {
            &["--leftovers", "kill", "--kill-after", "1h"]
        };
        let job = sandbox.watched(options, &Listener::argv(&sandbox.arg("log"), "0"));
        let mut listener = Listener::start(&sandbox, &job);
        let gpuwatch = listener.live.pid();
        let whom = if to_group { -gpuwatch } else { gpuwatch };
        kill(whom, libc::SIGINT);
        listener.wait_for(libc::SIGINT);
        wait_until("the record says so", || {
            sandbox.record().json()["state"] == "cancelled"
        });
        kill(whom, libc::SIGTERM);
        listener.wait_for(libc::SIGTERM);
        assert_eq!(listener.arrived(), [INT, TERM], "once each");
        assert!(listener.live.running(), "it waits as long as the command");
        let command = i32::try_from(sandbox.record().json()["pid"].as_i64().unwrap()).unwrap();
        kill(gpuwatch, libc::SIGKILL);
        listener.live.wait();
        assert_eq!(sandbox.record().json()["state"], "cancelled");
        let shown = sandbox.gpuwatch(&["runs", "--json"]).run();
        let runs: serde_json::Value = serde_json::from_slice(&shown.assert_ok().out).unwrap();
        assert_eq!(runs["runs"][0]["state"], "cancelled", "{runs}");
        std::fs::write(sandbox.path("log.end"), "").unwrap();
        wait_until("the command is gone", || !alive(command));
    });
}

#[test]
fn a_kill_follows_only_where_that_was_asked_for() {
    let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
    for_each(&signals, |&signal| {
        let sandbox = Sandbox::new();
        let argv = Listener::argv(&sandbox.arg("log"), "0");
        let job = sandbox.watched(&["--kill-after", "300ms"], &argv);
        let listener = Listener::start(&sandbox, &job);
        kill(listener.live.pid(), signal);
        let arrived = || std::fs::read(sandbox.path("log")).unwrap();
        // The log stays as it was when the command was killed.
        let ended = listener.live.end();
        assert_eq!(arrived(), [signal as u8], "no TERM of ours besides");
        assert_eq!(ended.signal(), Some(libc::SIGKILL), "{}", ended.err());
        let run = sandbox.record().json();
        assert_eq!(run["state"], "cancelled");
        assert_eq!(run["verdict"]["outcome"], "cancelled");
        let sent = sandbox.record().actions("kill-after");
        assert_eq!(sent, [format!("KILL to PID {}", run["pid"])]);
    });

    let sandbox = Sandbox::new();
    let argv = Listener::argv(&sandbox.arg("log"), "6");
    let listener = Listener::start(&sandbox, &sandbox.watched(&[], &argv));
    for signal in signals {
        kill(listener.live.pid(), signal);
        listener.wait_for(signal);
    }
    let (_, ended) = listener.end();
    assert_eq!(ended.code(), Some(6));
    assert!(sandbox.record().events_of("action").is_empty());
}

#[test]
fn a_key_at_the_terminal_is_followed_by_it_too() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::new(24, 80);
    let argv = Listener::argv(&sandbox.arg("log"), "0");
    let job = sandbox.watched(&["--kill-after", "300ms"], &argv);
    let mut listener = Listener::start_on(&mut terminal, &sandbox, &job);
    terminal.send("\x03");
    let status = listener.live.wait();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    assert_eq!(listener.arrived(), [INT]);
    assert_eq!(sandbox.record().json()["state"], "cancelled");
}

#[test]
fn other_signals_and_ignored_ones_ask_for_nothing() {
    let sandbox = Sandbox::new();
    let argv = Listener::argv(&sandbox.arg("log"), "6");
    let job = sandbox.watched(&["--kill-after", "1ms"], &argv);
    let listener = Listener::start(&sandbox, &job.under(&["env", "--ignore-signal=HUP"]));
    for signal in [libc::SIGHUP, libc::SIGUSR1] {
        kill(listener.live.pid(), signal);
        listener.wait_for(signal);
    }
    let (arrived, ended) = listener.end();
    assert_eq!(arrived, [libc::SIGHUP as u8, USR1]);
    assert_eq!(ended.code(), Some(6), "{}", ended.err());
    assert!(sandbox.record().events_of("action").is_empty());
}

#[test]
fn what_a_killed_command_leaves_is_ended() {
    let sandbox = Sandbox::new();
    let script = "
trap '' TERM
setsid sh -c 'trap - TERM; echo $$ > worker; exec sleep 3600' >/dev/null 2>&1 &
while [ ! -s worker ]; do sleep 0.01; done
echo up; while :; do sleep 0.05; done";
    let live = sandbox
        .watched(&["--kill-after", "300ms"], &["sh", "-c", script])
        .start();
    live.wait_for_out("up");
    live.signal(libc::SIGTERM);
    let ended = live.end();
    let worker: i32 = content(&sandbox.path("worker")).parse().unwrap();
    let lived = alive(worker);
    if lived {
        kill(worker, libc::SIGKILL);
    }
    assert!(!lived, "it had nobody to end it: {}", ended.err());
    assert_eq!(ended.signal(), Some(libc::SIGKILL));
}
