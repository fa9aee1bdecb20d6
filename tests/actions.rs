//! What a profile wants done to the job because of a finding: a signal, a stop. By default nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use support::{Job, Sandbox, alive, content, python};

/// Some steps, then a wait for ever; the signals that it gets are printed.
const HANGS: &str = "
import os, signal, sys, time
def said(number, frame):
    print('got', signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM and 'stubborn' not in sys.argv:
        sys.exit(7)
for number in (signal.SIGUSR1, signal.SIGTERM):
    signal.signal(number, said)
open('pid', 'w').write(str(os.getpid()))
for step in range(1, 6):
    print(f'step {step}/100 loss {1 / step:.3f}', flush=True)
    time.sleep(0.2)
while not os.path.exists('enough'):
    time.sleep(0.1)
print('went on', flush=True)
";

fn hanging(sandbox: &Sandbox, profile: &str, options: &[&str], word: &str) -> Job {
    std::fs::write(sandbox.path("hangs.py"), HANGS).unwrap();
    std::fs::write(sandbox.path("acts.yaml"), profile).unwrap();
    let usual = ["--profile", "acts.yaml", "--stall-after", "3s"];
    let options: Vec<&str> = usual.iter().chain(options).copied().collect();
    sandbox.watched(&options, &[python(), "hangs.py", word])
}

#[test]
fn a_stalled_job_gets_the_signal_and_goes_on() {
    let sandbox = Sandbox::new();
    let profile = "act: {stalled: [stacks, {signal: SIGUSR1}]}\n";
    let live = hanging(&sandbox, profile, &[], "").start();
    live.wait_for_out("got SIGUSR1");
    std::fs::write(sandbox.path("enough"), "").unwrap();
    let ended = live.end();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    assert_eq!(ended.out().matches("got").count(), 1, "once a finding");
    let record = sandbox.record();
    let pid = &record.json()["pid"];
    let sent = record.actions("signal");
    assert_eq!(sent, [format!("USR1 to PID {pid}, because of stalled")]);
    assert_eq!(record.json()["verdict"]["outcome"], "ok");
}

#[test]
fn a_stop_comes_after_the_evidence_and_has_its_own_code() {
    for (word, options, exit) in [
        ("", &[][..], ("code", 7)),
        ("stubborn", &["--kill-after", "500ms"][..], ("signal", 9)),
    ] {
        let sandbox = Sandbox::new();
        let profile = "act: {stalled: [stacks, stop]}\n";
        let ended = hanging(&sandbox, profile, options, word).run();
        assert_eq!(ended.code(), Some(123), "{}", ended.err());
        assert!(ended.out().contains("got SIGTERM"));
        let record = sandbox.record();
        let run = record.json();
        assert_eq!(run["state"], "finished");
        assert_eq!(run["stopped_for"], "stalled");
        assert_eq!(run["verdict"]["outcome"], "stopped");
        assert_eq!(run["verdict"]["cause"], "stalled");
        assert_eq!(run["exit"][exit.0], exit.1);
        assert!(
            ended.err().contains("gpuwatch: stopped ("),
            "{}",
            ended.err()
        );
        let done: Vec<String> = record
            .events_of("action")
            .iter()
            .map(|event| event["what"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(done[..3], ["stacks", "stop", "stop"], "{done:?}");
        let evidence = record.actions("stacks");
        assert!(record.folder.join(&evidence[0]).exists(), "{evidence:?}");
        let pid = content(&sandbox.path("pid")).parse().unwrap();
        assert!(!alive(pid));
    }
}

#[test]
fn by_default_nothing_is_done_to_the_job() {
    let sandbox = Sandbox::new();
    let live = hanging(&sandbox, "{}\n", &[], "").start();
    support::wait_until("the stall is recorded", || {
        sandbox.so_far("events.jsonl").contains("\"stalled\"")
    });
    std::fs::write(sandbox.path("enough"), "").unwrap();
    let ended = live.end();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    assert!(!ended.out().contains("got"), "{}", ended.out());
}

#[test]
fn what_nobody_vouched_for_does_nothing_to_the_job() {
    for text in [
        "act: {stalled: [stop]}\n",
        "act: {stalled: [{signal: USR1}]}\n",
        "act: {stalled: [restart]}\n",
        "end: {restart: {on: [oom]}}\n",
    ] {
        let sandbox = Sandbox::new();
        std::fs::write(sandbox.path("gpuwatch.yaml"), text).unwrap();
        let job = sandbox.watched(&[], &["sh", "-c", "echo ran"]);
        let ended = job.cwd(&sandbox.path("")).run();
        assert_eq!(ended.code(), Some(125), "{text}: {}", ended.err());
        assert_eq!(ended.out(), "");
        assert!(
            ended.err().contains("nobody has vouched"),
            "{}",
            ended.err()
        );
    }
}
