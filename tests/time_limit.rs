//! `--time-limit`: TERM, a grace, KILL; 124 whatever the command answers; and nothing before it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::time::{Duration, Instant};

use support::no_answer::{NoAnswer, OtherUser};
use support::{Ended, Sandbox, Shell, alive, content, for_each, kill, python, wait_until};

fn run(sandbox: &Sandbox, options: &[&str], script: &str, on_terminal: bool) -> Ended {
    let job = sandbox.watched(options, &["sh", "-c", script]);
    job.run_either_way(on_terminal)
}

fn pid(sandbox: &Sandbox, name: &str) -> i32 {
    content(&sandbox.path(name)).parse().unwrap()
}

#[test]
fn it_is_124_whatever_the_command_answers() {
    let answers = [
        ("trap 'echo saved; exit 0' TERM", Some(0), None),
        ("trap 'echo saved; exit 7' TERM", Some(7), None),
        (":", None, Some(15)),
    ];
    let mut ways = Vec::new();
    for answer in answers {
        ways.extend([(answer, false), (answer, true)]);
    }
    for_each(&ways, |&((handler, code, signal), on_terminal)| {
        let sandbox = Sandbox::new();
        let script = format!("{handler}; while :; do sleep 0.05; done");
        let ended = run(&sandbox, &["--time-limit", "300ms"], &script, on_terminal);
        assert_eq!(ended.code(), Some(124), "{handler}");
        assert_eq!(ended.out().contains("saved"), handler != ":");
        let run = sandbox.record().json();
        assert_eq!(run["state"], "finished");
        assert_eq!(run["verdict"]["outcome"], "timed-out");
        assert_eq!(run["verdict"]["cause"], serde_json::Value::Null);
        assert_eq!(run["exit"]["code"], serde_json::json!(code));
        assert_eq!(run["exit"]["signal"], serde_json::json!(signal));
        let sent = sandbox.record().actions("time-limit");
        assert_eq!(sent, [format!("TERM to PID {}", run["pid"])]);
        let said = ended.out() + &ended.err();
        assert!(said.contains("gpuwatch: timed out ("), "{said}");
    });
}

#[test]
fn what_ignores_it_is_killed_and_then_what_is_left() {
    for_each(&[false, true], |&on_terminal| {
        let sandbox = Sandbox::new();
        let script = "
trap '' TERM HUP
setsid sh -c 'echo $$ > worker; while :; do sleep 0.05; done' >/dev/null 2>&1 &
while :; do sleep 0.05; done";
        let options = ["--time-limit", "1s", "--kill-after", "500ms"];
        let ended = run(&sandbox, &options, script, on_terminal);
        let worker = pid(&sandbox, "worker");
        assert!(!alive(worker), "the limit is the job's");
        assert_eq!(ended.code(), Some(124), "{}", ended.err());
        let run = sandbox.record().json();
        assert_eq!(run["exit"]["signal"], 9);
        assert_eq!(run["verdict"]["outcome"], "timed-out");
        let main = &run["pid"];
        let sent = sandbox.record().actions("time-limit");
        let both = [format!("TERM to PID {main}"), format!("KILL to PID {main}")];
        assert_eq!(sent, both);
        let sent = sandbox.record().actions("leftovers");
        let to_worker = |name: &str| {
            let whom = format!("(PID {worker})");
            sent.iter()
                .any(|a| a.starts_with(name) && a.contains(&whom))
        };
        assert!(to_worker("TERM") && to_worker("KILL"), "{sent:?}");
    });
}

#[test]
fn a_script_that_ends_does_not_leave_its_training_behind() {
    let sandbox = Sandbox::new();
    // A shell without a handler dies at once; what it waited for gets no signal from anybody.
    let script = "sh -c 'echo $$ > training; exec sleep 3600'; echo never";
    let ended = run(&sandbox, &["--time-limit", "500ms"], script, false);
    assert_eq!(ended.code(), Some(124), "{}", ended.err());
    assert!(!alive(pid(&sandbox, "training")));
}

#[test]
fn whom_is_waited_for_has_no_more_time_than_the_command() {
    let sandbox = Sandbox::new();
    let script = "setsid sleep 3600 >/dev/null 2>&1 & echo $! > left; exit 3";
    let options = ["--leftovers", "wait", "--time-limit", "1s"];
    let ended = run(&sandbox, &options, script, false);
    assert_eq!(ended.code(), Some(124), "{}", ended.err());
    assert!(!alive(pid(&sandbox, "left")));
    let run = sandbox.record().json();
    assert_eq!(run["exit"]["code"], 3);
    assert_eq!(run["verdict"]["outcome"], "timed-out");
}

#[test]
fn before_it_nothing_happens() {
    let sandbox = Sandbox::new();
    let options = ["--time-limit", "1h", "--kill-after", "1ms"];
    let ended = run(&sandbox, &options, "echo hi; exit 5", false);
    assert_eq!((ended.code(), ended.out()), (Some(5), "hi\n".to_owned()));
    assert_eq!(sandbox.record().json()["verdict"]["outcome"], "failed");
    assert!(sandbox.record().events_of("action").is_empty());
}

#[test]
fn a_stopped_command_is_ended_too() {
    let sandbox = Sandbox::new();
    let script = "trap 'echo over; exit 0' TERM; echo up; kill -STOP $$; sleep 3600";
    let ended = run(&sandbox, &["--time-limit", "1s"], script, false);
    assert_eq!(ended.code(), Some(124), "{}", ended.err());
    assert_eq!(ended.out(), "up\nover\n");
}

/// Only that it doesn't come too early is looked at: a busy machine makes it later.
#[test]
fn time_at_which_the_job_is_stopped_does_not_count() {
    const LIMIT: Duration = Duration::from_secs(6);
    // One process: a shell that is stopped amid a vfork is never seen to stop.
    let code = "
import signal, sys, time
def over(*_):
    print('over', flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, over)
print('up', flush=True)
while True:
    time.sleep(0.05)
";
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("waits.py"), code).unwrap();
    let mut shell = Shell::start(&sandbox);
    let start = Instant::now();
    shell.line(&format!(
        "{} run -q --time-limit {}s -- {} waits.py",
        env!("CARGO_BIN_EXE_gpuwatch"),
        LIMIT.as_secs(),
        python()
    ));
    shell.wait_for("up");
    shell.stop();
    let stopped = Instant::now();
    std::thread::sleep(Duration::from_secs(3));
    let span = stopped.elapsed();
    shell.line("fg");
    shell.wait_for("over");
    let took = start.elapsed();
    shell.prompt();
    assert!(took >= LIMIT + span, "{took:?}, {span:?} of it stopped");
    assert_eq!(shell.status(), "124");
    assert!(shell.exit().success());
}

#[test]
fn a_command_in_the_kernel_is_named_and_left() {
    let Some(silent) = NoAnswer::mount() else {
        return;
    };
    let sandbox = Sandbox::new();
    let options = ["--time-limit", "1s", "--kill-after", "200ms"];
    let file = silent.file();
    let live = sandbox.watched(&options, &["cat", &file]).start();
    silent.wait_until_asked();
    let ended = live.end();
    assert_eq!(ended.code(), Some(124), "{}", ended.err());
    let run = sandbox.record().json();
    let named = format!("the command (PID {}) can't be ended", run["pid"]);
    assert!(ended.err().contains(&named), "{}", ended.err());
    assert_eq!(run["exit"]["signal"], serde_json::Value::Null);
    assert_eq!(run["verdict"]["outcome"], "timed-out");
    let main = i32::try_from(run["pid"].as_i64().unwrap()).unwrap();
    drop(silent);
    wait_until("it is gone", || !alive(main));
}

#[test]
fn a_command_of_another_user_is_named_and_left() {
    let Some(other) = OtherUser::new(471_002) else {
        return;
    };
    let sandbox = Sandbox::new();
    let mut words = other.gpuwatch();
    words.extend(["run", "--no-record", "--time-limit", "1s", "--"].map(String::from));
    let script = format!("echo $$; exec {} sleep 3600", other.as_root());
    words.extend(["sh", "-c"].map(String::from));
    words.push(script);
    let ended = sandbox.direct(&words).cwd(std::path::Path::new("/")).run();
    let main: i32 = ended.out().trim().parse().unwrap();
    let lived = alive(main);
    kill(main, libc::SIGKILL);
    assert!(lived, "{}", ended.err());
    assert_eq!(ended.code(), Some(124), "{}", ended.err());
    let named = format!("the command (PID {main}) can't be ended: Operation not permitted");
    assert!(ended.err().contains(&named), "{}", ended.err());
}

#[test]
fn it_is_read_from_everywhere_and_a_wrong_one_starts_nothing() {
    let sandbox = Sandbox::new();
    let dry = |job: support::Job| job.run().assert_ok().out();
    let plan = sandbox.watched(&["--dry-run"], &["true"]);
    assert!(!dry(plan.clone()).contains("end:"));
    std::fs::write(
        sandbox.path("gpuwatch.yaml"),
        "end: {time_limit: 90m, leftovers: wait, kill_after: 5s}\n",
    )
    .unwrap();
    let said = dry(plan.clone());
    for line in [
        "end: after 90m by TERM, and KILL 5s later\n",
        "end: KILL 5s after INT, TERM, HUP or QUIT\n",
        "end: leftovers are waited for\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let by_env = plan
        .env("GPUWATCH_TIME_LIMIT", "2h")
        .env("GPUWATCH_LEFTOVERS", "kill")
        .env("GPUWATCH_KILL_AFTER", "1m");
    let said = dry(by_env);
    assert!(
        said.contains("end: after 2h by TERM, and KILL 1m later\n"),
        "{said}"
    );
    assert!(
        said.contains("end: leftovers get TERM, and KILL 1m later\n"),
        "{said}"
    );

    for (option, value) in [
        ("--time-limit", "0s"),
        ("--time-limit", "90"),
        ("--kill-after", "0"),
        ("--leftovers", "shoot"),
    ] {
        let ended = sandbox
            .watched(&[option, value], &["touch", "touched"])
            .run();
        assert_eq!(ended.code(), Some(125), "{option} {value}");
        assert!(ended.err().contains(option), "{}", ended.err());
        assert_eq!(ended.err().lines().count(), 1, "{}", ended.err());
    }
    std::fs::write(sandbox.path("gpuwatch.yaml"), "end: {time_limit: 0s}\n").unwrap();
    let ended = sandbox.watched(&[], &["touch", "touched"]).run();
    assert_eq!(ended.code(), Some(125));
    assert!(ended.err().contains("end.time_limit"), "{}", ended.err());
    assert!(!sandbox.path("touched").exists());
}
