//! What a profile wants done to the job because of a finding: a signal, a stop. By default nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use support::http_server::{Answer, Server};
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
print(os.getpid(), file=open('pid', 'w'), flush=True)
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

/// Counts its starts in the file `starts`, and does something else each time.
const FAILS: &str = "
import os, sys, time
with open('starts', 'a') as starts:
    print(os.getpid(), file=starts)
start = len(open('starts').read().splitlines())
print('attempt', start, 'on a terminal' if sys.stdout.isatty() else 'in a pipe', flush=True)
def oom():
    class OutOfMemoryError(RuntimeError):
        pass
    OutOfMemoryError.__module__ = 'torch'
    raise OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25 GiB of which 1.20 GiB is free.')
for step in range(1, 4):
    print(f'step {step}/3 loss {1 / step:.3f}', flush=True)
    time.sleep(0.1)
if start < int(sys.argv[1]):
    oom()
print('done', flush=True)
";

fn failing(sandbox: &Sandbox, profile: &str, options: &[&str], succeeds_at: &str) -> Job {
    std::fs::write(sandbox.path("fails.py"), FAILS).unwrap();
    std::fs::write(sandbox.path("again.yaml"), profile).unwrap();
    let usual = ["--profile", "again.yaml"];
    let options: Vec<&str> = usual.iter().chain(options).copied().collect();
    sandbox.watched(&options, &[python(), "fails.py", succeeds_at])
}

fn starts(sandbox: &Sandbox) -> usize {
    let starts = std::fs::read_to_string(sandbox.path("starts"));
    starts.map_or(0, |text| text.lines().count())
}

const AFTER_OOM: &str = "end: {restart: {on: [oom], max: 2, backoff: 200ms}}\n";

#[test]
fn what_fails_of_a_chosen_cause_is_started_again() {
    for on_terminal in [false, true] {
        let sandbox = Sandbox::new();
        let ended = failing(&sandbox, AFTER_OOM, &[], "3").run_either_way(on_terminal);
        assert_eq!(ended.code(), Some(0), "{}", ended.err());
        let place = if on_terminal {
            "on a terminal"
        } else {
            "in a pipe"
        };
        for attempt in 1..=3 {
            let line = format!("attempt {attempt} {place}");
            assert!(ended.out().contains(&line), "{}", ended.out());
        }
        let record = sandbox.record();
        let run = record.json();
        assert_eq!(run["verdict"]["outcome"], "ok");
        assert_eq!(run["verdict"]["cause"], serde_json::Value::Null);
        let restarts = run["restarts"].as_array().unwrap();
        assert_eq!(restarts.len(), 2, "{run}");
        assert_eq!(restarts[0]["why"], "oom");
        assert_eq!(restarts[0]["exit"]["code"], 1);
        let pids: Vec<String> = content(&sandbox.path("starts"))
            .lines()
            .map(str::to_owned)
            .collect();
        let told: Vec<String> = record
            .events_of("started")
            .iter()
            .map(|event| event["pid"].to_string())
            .collect();
        assert_eq!(told, pids);
        assert_eq!(run["pid"].to_string(), pids[2]);
        let waits: Vec<String> = record.actions("restart");
        assert_eq!(
            waits,
            [
                "in 200ms, 1 of 2 times, because of oom",
                "in 400ms, 2 of 2 times, because of oom"
            ]
        );
        let log = String::from_utf8_lossy(&record.output()).into_owned();
        assert!(
            log.contains("attempt 1") && log.contains("attempt 3"),
            "{log}"
        );
        let found = record.events_of("finding");
        let of = |state: &str| {
            let found = found.iter().filter(|f| f["name"] == "restarted");
            found.filter(|f| f["state"] == state).count()
        };
        assert_eq!(of("raised"), 2, "{found:?}");
    }
}

#[test]
fn at_the_limit_the_last_end_is_the_runs() {
    let sandbox = Sandbox::new();
    let ended = failing(&sandbox, AFTER_OOM, &[], "9").run();
    assert_eq!(ended.code(), Some(1), "{}", ended.err());
    assert_eq!(starts(&sandbox), 3);
    let run = sandbox.record().json();
    assert_eq!(run["verdict"]["outcome"], "failed");
    assert_eq!(run["verdict"]["cause"], "oom");
}

#[test]
fn what_fails_otherwise_is_not_started_again() {
    let other = "end: {restart: {on: [collective_timeout, disk], max: 2, backoff: 200ms}}\n";
    for profile in [other, "{}\n"] {
        let sandbox = Sandbox::new();
        let ended = failing(&sandbox, profile, &[], "9").run();
        assert_eq!(ended.code(), Some(1), "{}", ended.err());
        assert_eq!(starts(&sandbox), 1);
        let run = sandbox.record().json();
        assert_eq!(run["restarts"], serde_json::Value::Null);
        assert_eq!(run["verdict"]["cause"], "oom");
    }
}

#[test]
fn a_signal_in_the_pause_ends_the_run_at_once() {
    for (signal, on_terminal) in [(2, false), (15, false), (2, true)] {
        let sandbox = Sandbox::new();
        let profile = "end: {restart: {on: [oom], backoff: 1h}}\n";
        let job = failing(&sandbox, profile, &[], "9");
        let mut terminal = support::Terminal::new(24, 80);
        let live = if on_terminal {
            job.start_on(&mut terminal)
        } else {
            job.start()
        };
        support::wait_until("it rests", || {
            sandbox.so_far("events.jsonl").contains("because of oom")
        });
        if on_terminal {
            terminal.send("\x03");
        } else {
            live.signal(signal);
        }
        let ended = live.end();
        assert_eq!(ended.signal(), Some(signal), "{}", ended.err());
        assert_eq!(starts(&sandbox), 1);
        let run = sandbox.record().json();
        assert_eq!(run["state"], "cancelled");
        assert_eq!(run["verdict"]["outcome"], "cancelled");
        assert_eq!(run["exit"]["code"], 1);
    }
}

#[test]
fn the_time_limit_counts_over_all_attempts() {
    let sandbox = Sandbox::new();
    let profile = "end: {restart: {on: [failure], backoff: 1h}}\n";
    let options = ["--time-limit", "4s"];
    let ended = failing(&sandbox, profile, &options, "9").run();
    assert_eq!(ended.code(), Some(124), "{}", ended.err());
    assert_eq!(sandbox.record().json()["verdict"]["outcome"], "timed-out");
}

#[test]
fn whoever_stops_the_command_stops_it_for_good() {
    let sandbox = Sandbox::new();
    let script = "echo $$ >> starts; trap 'exit 9' TERM; while :; do sleep 0.05; done";
    let live = sandbox
        .watched(&["--restart", "3"], &["sh", "-c", script])
        .start();
    support::wait_until("it runs", || starts(&sandbox) == 1);
    live.signal(15);
    let ended = live.end();
    assert_eq!(ended.code(), Some(9), "{}", ended.err());
    assert_eq!(starts(&sandbox), 1);
}

#[test]
fn what_the_first_attempt_leaves_is_ended_before_the_second() {
    let sandbox = Sandbox::new();
    let script = "
echo $$ >> starts
if [ -e left ]; then kill -0 $(cat left) 2>/dev/null && exit 5; exit 0; fi
setsid sleep 3600 >/dev/null 2>&1 &
echo $! > left
exit 3";
    let profile = "end: {restart: {backoff: 100ms}}\n";
    std::fs::write(sandbox.path("again.yaml"), profile).unwrap();
    let options = ["--profile", "again.yaml", "--restart", "1"];
    let ended = sandbox.watched(&options, &["sh", "-c", script]).run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    assert_eq!(starts(&sandbox), 2);
    assert_eq!(sandbox.record().json()["restarts"][0]["why"], "failure");
}

#[test]
fn a_stalled_job_is_started_again() {
    let sandbox = Sandbox::new();
    let profile = "end: {restart: {backoff: 100ms}}\n";
    let options = ["--on-stall", "restart"];
    let script = HANGS.replace("while not", "open('starts', 'a').write('x\\n'.replace('x', str(os.getpid())))\nif len(open('starts').read().split()) > 1: sys.exit(0)\nwhile not");
    let job = hanging(&sandbox, profile, &options, "");
    std::fs::write(sandbox.path("hangs.py"), script).unwrap();
    let ended = job.run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let record = sandbox.record();
    let run = record.json();
    assert_eq!(run["restarts"][0]["why"], "stalled");
    assert_eq!(run["restarts"][0]["exit"]["code"], 7);
    assert_eq!(run["verdict"]["outcome"], "ok");
    assert_eq!(record.actions("stacks").len(), 1);
}

#[test]
fn a_supervisor_that_dies_in_the_pause_leaves_nothing() {
    let sandbox = Sandbox::new();
    let profile = "end: {restart: {on: [oom], backoff: 1h}}\n";
    let live = failing(&sandbox, profile, &[], "9").start();
    support::wait_until("it rests", || {
        sandbox.so_far("events.jsonl").contains("because of oom")
    });
    let below = support::descendants(live.pid().unsigned_abs());
    live.signal(9);
    assert_eq!(live.end().signal(), Some(9));
    support::wait_until("nobody is left", || below.iter().all(|pid| !alive(*pid)));
    assert_eq!(starts(&sandbox), 1);
}

#[test]
fn a_dry_run_lists_what_would_be_done() {
    let sandbox = Sandbox::new();
    let profile = "act: {stalled: [stacks, {signal: USR1}], nan: [stop]}\nend: {restart: {on: [oom, nan], max: 2}}\n";
    let ended = failing(&sandbox, profile, &["--dry-run"], "1").run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let acts: Vec<String> = ended
        .out()
        .lines()
        .filter(|line| line.starts_with("act: "))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        acts,
        [
            "act: when nan: TERM, KILL 30s later, and another start",
            "act: when stalled: stacks as evidence, then USR1 to the main process",
            "act: the command is started again after oom, nan: 2 times at most, 30s after its end, then twice as long each time",
        ]
    );
    assert_eq!(starts(&sandbox), 0);
}

#[test]
fn a_replay_says_what_the_run_said() {
    let sandbox = Sandbox::new();
    let ended = failing(&sandbox, AFTER_OOM, &[], "2").run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let folder = sandbox.record().folder;
    let replayed = sandbox
        .gpuwatch(&["replay", "--json", folder.to_str().unwrap()])
        .run();
    let key = |event: &serde_json::Value| {
        let word = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        (word("name"), word("state"), event["since_s"].to_string())
    };
    let live: Vec<_> = sandbox
        .record()
        .events_of("finding")
        .iter()
        .map(key)
        .collect();
    let again: Vec<_> = replayed
        .out()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|event: &serde_json::Value| event["state"].is_string())
        .map(|event| key(&event))
        .collect();
    assert!(
        live.iter().any(|(name, ..)| name == "restarted"),
        "{live:?}"
    );
    assert_eq!(again, live);
}

#[test]
fn an_alert_says_that_it_was_started_again() {
    let server = Server::start(&[Answer::status(204)]);
    let sandbox = Sandbox::new();
    let url = server.url("/x");
    let ended = failing(&sandbox, AFTER_OOM, &["--notify", &url], "2").run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let requests = server.requests();
    let told: Vec<_> = requests
        .iter()
        .map(support::http_server::Request::json)
        .collect();
    let restarted = told.iter().find(|alert| alert["type"] == "job.restarted");
    let data = &restarted.expect("an alert")["data"];
    assert_eq!(data["evidence"]["why"], "oom", "{data}");
}

#[test]
fn output_that_nobody_takes_is_not_written_again() {
    let sandbox = Sandbox::new();
    let script = "echo x >> starts; while echo line; do sleep 0.05; done; exit 1";
    let profile = "end: {restart: {on: [failure], max: 3, backoff: 100ms}}\n";
    std::fs::write(sandbox.path("again.yaml"), profile).unwrap();
    let job = sandbox.watched(&["--profile", "again.yaml"], &["sh", "-c", script]);
    let ended = job.under(&["sh", "-c", "\"$@\" | head -n 1", "sh"]).run();
    assert_eq!(ended.out(), "line\n");
    sandbox.wait_for_exit();
    assert_eq!(starts(&sandbox), 1);
}

#[test]
fn where_one_attempt_stood_is_not_where_the_next_begins() {
    let sandbox = Sandbox::new();
    let script = "
echo x >> starts
if [ $(wc -l < starts) -gt 1 ]; then
    while [ ! -e enough ]; do sleep 0.1; done
    exit 0
fi
echo '{\"step\": 500, \"steps\": 900}' >> \"$GPUWATCH_PROGRESS\"
sleep 2.5
exit 4";
    let profile = "end: {restart: {on: [failure], backoff: 100ms}}\n";
    std::fs::write(sandbox.path("again.yaml"), profile).unwrap();
    let live = sandbox
        .watched(&["--profile", "again.yaml"], &["sh", "-c", script])
        .start();
    let rows = || sandbox.so_far("samples.csv").lines().count();
    support::wait_until("it runs again", || starts(&sandbox) == 2);
    let before = rows();
    support::wait_until("some samples more", || rows() > before + 2);
    std::fs::write(sandbox.path("enough"), "").unwrap();
    assert_eq!(live.end().code(), Some(0));
    let samples = sandbox.record().samples();
    let steps: Vec<&str> = samples.iter().map(|row| row["step"].as_str()).collect();
    assert!(steps.contains(&"500"), "{steps:?}");
    assert_eq!(steps.last(), Some(&""), "{steps:?}");
}
