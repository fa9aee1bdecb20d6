//! A panic of ours, in whatever thread: the command goes on to its own end, its output is
//! delivered whole, its exit code comes back, the terminal is as it was, and one line says
//! what was lost. Built with the feature `fault-injection` alone (src/sys/fault.rs).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use serde_json::json;

use support::{
    Ended, FakeDriver, Job, Listener, Sandbox, Terminal, content, for_each, python, wait_until,
};

/// Output on both streams with pauses in it, more than a relay reads at once, no newline at
/// its end, and a code of its own.
const COMMAND: &str = "
import os, sys, time
for i in range(40):
    os.write(1, b'Epoch %d/40 ' % (i + 1) + b'x' * 4000 + b'\\n')
    os.write(2, b'err %d\\n' % i)
    time.sleep(0.01)
os.write(1, b'the end')
sys.exit(7)
";

/// Where panics are wanted, and how the line begins that tells of them.
const POINTS: [(&str, &str); 10] = [
    ("panic:digest", "progress is no longer read"),
    ("panic:scribe", "the record is incomplete"),
    ("panic:judge", "the run is no longer judged"),
    ("panic:sampler", "no samples are taken any more"),
    ("panic:relay", "output is delivered but not read"),
    ("panic:main", "signals are no longer recorded"),
    ("panic:turn", "signals are no longer recorded"),
    ("panic:main,panic:turn", "signals are no longer recorded"),
    ("panic:watchers", "nothing is watched"),
    (
        "panic:relay,panic:digest,panic:judge",
        "output is delivered but not read",
    ),
];

fn with_fault(job: &Job, fault: &str) -> Job {
    job.clone()
        .env("GPUWATCH_FAULT", fault)
        .env("RUST_BACKTRACE", "1")
}

/// Whether nothing of a panic is to be seen but what we say of it.
fn assert_quiet(fault: &str, said: &str, line: &str) {
    assert!(
        !said.contains("panicked") && !said.contains("RUST_BACKTRACE"),
        "{fault}: {said}"
    );
    let about: Vec<_> = said
        .lines()
        .filter(|l| l.contains("a defect in gpuwatch"))
        .collect();
    let wanted = fault.split(',').count();
    assert!(
        (1..=wanted).contains(&about.len()),
        "{fault}: {about:?} in {said}"
    );
    assert!(
        about
            .iter()
            .any(|l| l.starts_with(&format!("gpuwatch: {line}"))),
        "{fault}: {about:?}"
    );
}

/// Without our own lines.
fn theirs(ended: &Ended) -> String {
    let text = ended.err();
    let lines = text
        .split_inclusive('\n')
        .filter(|l| !l.starts_with("gpuwatch:"));
    lines.collect()
}

#[test]
fn the_command_in_pipes_notices_nothing() {
    let argv = [python(), "-c", COMMAND];
    let sandbox = Sandbox::new();
    let direct = sandbox.direct(&argv).run();
    for_each(&POINTS, |(fault, line)| {
        let sandbox = Sandbox::new();
        let ended = with_fault(&sandbox.watched(&[], &argv), fault).run();
        assert_eq!(ended.code(), Some(7), "{fault}: {}", ended.err());
        assert!(
            ended.out == direct.out,
            "{fault}: {} bytes",
            ended.out.len()
        );
        assert_eq!(theirs(&ended), direct.err(), "{fault}");
        assert_quiet(fault, &ended.err(), line);
        if *fault == "panic:watchers" {
            return; // nobody is left who would write a record
        }
        let run = sandbox.record().json();
        assert_eq!(run["exit"]["code"], 7, "{fault}: {run}");
        assert_eq!(run["state"], "finished", "{fault}");
        assert_eq!(run["verdict"]["outcome"], "failed", "{fault}");
    });
}

#[test]
fn what_is_lost_with_a_relay_is_counted() {
    let sandbox = Sandbox::new();
    let job = sandbox.watched(&[], &[python(), "-c", COMMAND]);
    let ended = with_fault(&job, "panic:relay").run();
    let dropped = sandbox.record().events_of("dropped");
    let lost: u64 = dropped.iter().filter_map(|e| e["n"].as_u64()).sum();
    assert!(lost > 0, "{dropped:?} {}", ended.err());
    let log = sandbox.record().output();
    let text = String::from_utf8_lossy(&log);
    assert!(text.contains("bytes left out here"), "{text}");
}

#[test]
fn what_nobody_can_scrape_costs_nothing_else() {
    for (fault, line) in [
        ("panic:metrics", "there are no more metrics"),
        ("panic:textfile", "metrics are no longer written"),
    ] {
        let sandbox = Sandbox::new();
        let folder = sandbox.arg("collector");
        std::fs::create_dir(&folder).unwrap();
        let options = [
            "--metrics",
            "0",
            "--metrics-textfile",
            &folder,
            "--interval",
            "100ms",
        ];
        let script = "for i in 1 2 3 4 5; do echo step $i; sleep 0.1; done; exit 7";
        let ended = with_fault(&sandbox.watched(&options, &["sh", "-c", script]), fault).run();
        assert_eq!(ended.code(), Some(7), "{fault}: {}", ended.err());
        assert_quiet(fault, &ended.err(), line);
        assert!(sandbox.record().samples().len() > 1, "{fault}");
        assert_eq!(sandbox.record().json()["state"], "finished", "{fault}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "{fault}");
    }
}

#[test]
fn a_digest_that_is_gone_costs_no_output_in_the_record() {
    let sandbox = Sandbox::new();
    let script = "for i in 1 2 3 4 5; do echo step $i; sleep 0.1; done";
    let job = sandbox.watched(&[], &["sh", "-c", script]);
    with_fault(&job, "panic:digest").run().assert_ok();
    let log = String::from_utf8(sandbox.record().output()).unwrap();
    assert!(log.ends_with("step 4\nstep 5\n"), "{log}");
}

#[test]
fn a_terminal_is_as_it_was() {
    // Raw mode by the stand-in, and nobody puts it back.
    let script = "stty raw -echo <&1; i=0; while [ $i -lt 300 ]; do printf 'line %d\\r\\n' $i; i=$((i+1)); done; \
                  sleep 0.1; printf 'the end'; exit 7";
    let sandbox = Sandbox::new();
    let sound = sandbox.watched(&["-q"], &["sh", "-c", script]);
    let sound = sound.run_on_terminal().out();
    assert!(sound.ends_with("the end"), "{sound}");
    for_each(&POINTS, |(fault, line)| {
        let sandbox = Sandbox::new();
        let mut terminal = Terminal::new(24, 80);
        let before = terminal.settings();
        let argv = ["sh", "-c", script];
        let job = with_fault(&sandbox.watched(&["--gpus", "none"], &argv), fault);
        let mut live = job.start_on(&mut terminal);
        assert_eq!(live.wait().code(), Some(7), "{fault}");
        assert_eq!(terminal.settings(), before, "{fault}");
        let shown = String::from_utf8(terminal.everything()).unwrap();
        let (child, own) = shown.split_once("gpuwatch:").unwrap();
        // Our line begins on a line of its own.
        assert_eq!(child.trim_end(), sound.trim_end(), "{fault}");
        let own = format!("gpuwatch:{own}").replace('\r', "");
        assert_quiet(fault, &own, line);
    });
}

#[test]
fn signals_still_reach_the_command_once() {
    let faults = ["panic:main", "panic:turn", "panic:main,panic:turn"];
    for_each(&faults, |fault| {
        let sandbox = Sandbox::new();
        let argv = Listener::argv(&sandbox.arg("log"), "6");
        let job = with_fault(&sandbox.watched(&[], &argv), fault);
        let listener = Listener::start(&sandbox, &job);
        // The first to wake the main thread is the one that meets the fault.
        listener.live.signal(libc::SIGUSR1);
        listener.wait_for(libc::SIGUSR1);
        listener.live.signal(libc::SIGUSR2);
        listener.wait_for(libc::SIGUSR2);
        listener.live.signal(libc::SIGTERM);
        listener.wait_for(libc::SIGTERM);
        let (arrived, ended) = listener.end();
        let sent = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGTERM].map(|n| n as u8);
        assert_eq!(arrived, sent, "{fault}");
        assert_eq!(ended.code(), Some(6), "{fault}");
        assert_quiet(fault, &ended.err(), "signals are no longer recorded");
    });
}

#[test]
fn a_signal_to_the_group_comes_once_after_a_panic_of_the_main_thread() {
    let sandbox = Sandbox::new();
    let argv = Listener::argv(&sandbox.arg("log"), "0");
    let job = with_fault(&sandbox.watched(&[], &argv), "panic:main");
    let listener = Listener::start(&sandbox, &job);
    support::kill(-listener.live.pid(), libc::SIGUSR1);
    listener.wait_for(libc::SIGUSR1);
    // One more, so that whatever would have come twice has come.
    listener.live.signal(libc::SIGUSR2);
    listener.wait_for(libc::SIGUSR2);
    let (arrived, ended) = listener.end();
    assert_eq!(arrived, [libc::SIGUSR1 as u8, libc::SIGUSR2 as u8]);
    let said = ended.assert_ok().err();
    assert_quiet("panic:main", &said, "signals are no longer recorded");
}

#[test]
fn a_helper_that_panics_costs_the_readings_alone() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let script = "echo up; read word; echo over; exit 5";
    let job = sandbox
        .watched(&["--interval", "100ms"], &["sh", "-c", script])
        .with(&driver)
        .env("CUDA_VISIBLE_DEVICES", "0");
    let mut live = with_fault(&job, "panic:helper").start();
    live.wait_for_out("up");
    wait_until("that the helper is gone is recorded", || {
        sandbox
            .so_far("events.jsonl")
            .contains("the helper process")
    });
    live.send("on\n");
    let ended = live.end();
    assert_eq!((ended.code(), ended.out()), (Some(5), "up\nover\n".into()));
    let said = ended.own_lines().join("\n");
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(said.matches("the helper process").count(), 1, "{said}");
}

#[test]
fn a_teller_that_panics_costs_the_alerts_alone() {
    let sandbox = Sandbox::new();
    let argv = ["sh", "-c", "echo hi; exit 3"];
    let notify = ["--notify", "http://127.0.0.1:9/hook"];
    let ended = with_fault(&sandbox.watched(&notify, &argv), "panic:teller").run();
    assert_eq!((ended.code(), ended.out()), (Some(3), "hi\n".into()));
    assert_quiet("panic:teller", &ended.err(), "alerts may be missing");
    assert_eq!(sandbox.record().json()["exit"]["code"], 3);
}

#[test]
fn before_the_start_nothing_is_started() {
    let sandbox = Sandbox::new();
    let job = sandbox.watched(&[], &["touch", "started"]);
    let ended = with_fault(&job, "panic:start").run();
    assert_eq!(ended.code(), Some(125));
    let said = ended.err();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("a defect in gpuwatch"), "{said}");
    assert!(!sandbox.path("started").exists());
}

#[test]
fn ctrl_z_and_fg_still_work_after_a_panic_of_the_main_thread() {
    let sandbox = Sandbox::new();
    let mut shell = support::Shell::start(&sandbox);
    let gpuwatch = env!("CARGO_BIN_EXE_gpuwatch");
    shell.line(&format!(
        "GPUWATCH_FAULT=panic:main {gpuwatch} run -- sh -c 'echo $$ > pid; echo up; read a; echo \"got $a\"'"
    ));
    shell.wait_for("up\r\n");
    content(&sandbox.path("pid"));
    shell.stop();
    shell.fetch();
    shell.line("on");
    shell.wait_for("got on\r\n");
    shell.wait_for("a defect in gpuwatch");
    shell.prompt();
    assert!(shell.exit().success());
}
