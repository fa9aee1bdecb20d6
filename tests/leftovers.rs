//! What the command leaves behind is never forgotten: named, waited for or ended, as was asked
//! for, and nobody else is touched.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::process::Command;

use serde_json::json;
use support::fake_driver::python_path;
use support::no_answer::{NoAnswer, OtherUser};
use support::{
    Ended, FakeDriver, Live, Sandbox, Shell, alive, content, for_each, kill, python, wait_until,
};

/// Leaves a plain child, one in a session of its own, and a daemon that forked twice; each writes
/// its PID down. Ends with 3.
const LEAVES: &str = "
trap '' HUP # which the terminal's end sends
sleep 3601 & echo $! > plain
setsid sh -c 'echo $$ > session; exec sleep 3602' &
(setsid sh -c '(echo $$ > daemon; exec sleep 3603) </dev/null >/dev/null 2>&1 &' &)
while [ ! -s session ] || [ ! -s daemon ]; do sleep 0.01; done
echo hi; exit 3";

/// The PIDs that are written in these files.
fn pids(sandbox: &Sandbox, names: &[&str]) -> Vec<i32> {
    let read = |name: &&str| content(&sandbox.path(name)).parse().unwrap();
    names.iter().map(read).collect()
}

/// A shell's `$$` isn't its subshell's PID: who runs is found by the command.
fn running(command: &str) -> Vec<i32> {
    let words = command.replace(' ', "\0") + "\0";
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|c| c == words.as_bytes())
        })
        .collect()
}

fn run(sandbox: &Sandbox, options: &[&str], script: &str, on_terminal: bool) -> Ended {
    let job = sandbox.watched(options, &["sh", "-c", script]);
    job.run_either_way(on_terminal)
}

/// Everything that was said, wherever.
fn said(ended: &Ended) -> String {
    ended.out() + &ended.err()
}

/// Others look for sleepers of their own at the same time.
fn unique(script: &str, number: u32) -> String {
    script.replace("360", &seconds(number))
}

fn seconds(number: u32) -> String {
    format!("{}{number}", 100_000 + std::process::id())
}

#[test]
fn they_are_named_and_left_alone() {
    let ways = [
        (0, false, true),
        (1, true, true),
        (2, false, false),
        (3, true, false),
    ];
    for_each(&ways, |&(number, on_terminal, record)| {
        let sandbox = Sandbox::new();
        let options: &[&str] = if record { &[] } else { &["--no-record"] };
        let script = unique(LEAVES, number);
        let ended = run(&sandbox, options, &script, on_terminal);
        let sleepers = [1, 2, 3].map(|n| format!("sleep {}{n}", seconds(number)));
        let left: Vec<(String, i32)> = sleepers
            .into_iter()
            .map(|command| {
                let found = running(&command);
                assert_eq!(found.len(), 1, "{command} was left alone");
                (command, found[0])
            })
            .collect();
        for (_, pid) in &left {
            kill(*pid, libc::SIGTERM);
        }
        assert_eq!(ended.code(), Some(3));
        assert!(ended.out().contains("hi"), "{}", ended.out());
        let said = said(&ended);
        for (command, pid) in &left {
            let named = format!("{command} (PID {pid})");
            assert!(said.contains(&named), "{named}: {said}");
            if record {
                let told = format!("left: {command} (PID {pid})");
                let actions = sandbox.record().actions("leftovers");
                assert!(actions.contains(&told), "{actions:?}");
            }
        }
    });
}

#[test]
fn they_are_ended_where_that_was_asked_for_and_nobody_else_is() {
    let ways = [(10, false, false), (11, true, false), (12, false, true)];
    for_each(&ways, |&(number, on_terminal, by_profile)| {
        let sandbox = Sandbox::new();
        let mut stranger = Live::stranger();
        let options: &[&str] = if by_profile {
            std::fs::write(
                sandbox.path("gpuwatch.yaml"),
                "end: {leftovers: kill}\nsample: {interval: 100ms}\n",
            )
            .unwrap();
            &["--gpus", "none"]
        } else {
            &["--leftovers", "kill"]
        };
        let ended = run(&sandbox, options, &unique(LEAVES, number), on_terminal);
        let left: Vec<_> = [1, 2, 3]
            .iter()
            .flat_map(|n| running(&format!("sleep {}{n}", seconds(number))))
            .collect();
        assert_eq!(left, [0_i32; 0], "{}", said(&ended));
        assert!(stranger.running(), "a stranger was touched");
        assert_eq!(ended.code(), Some(3), "the exit code stays the command's");
        assert!(said(&ended).contains("left over, ended by now: "));
        let actions = sandbox.record().actions("leftovers");
        assert_eq!(actions.len(), 3, "{actions:?}");
        assert!(
            actions.iter().all(|a| a.starts_with("TERM to sleep ")),
            "{actions:?}"
        );
    });
}

/// Where nobody would hear of the run nothing is watched; what was asked for is done all the same.
#[test]
fn they_are_ended_in_silence_too() {
    let sandbox = Sandbox::new();
    let options = ["-q", "--no-record", "--gpus", "none", "--leftovers", "kill"];
    let ended = run(&sandbox, &options, &unique(LEAVES, 20), false);
    let left: Vec<_> = [1, 2, 3]
        .iter()
        .flat_map(|n| running(&format!("sleep {}{n}", seconds(20))))
        .collect();
    assert_eq!(left, [0_i32; 0]);
    let all = (ended.code(), ended.out(), ended.err());
    assert_eq!(all, (Some(3), "hi\n".to_owned(), String::new()));
}

#[test]
fn who_does_not_heed_term_gets_kill_and_what_a_handler_says_is_delivered() {
    let script = "
sh -c 'trap \"sleep 0.2; echo saved; exit\" TERM; echo $$ > heeds; while :; do sleep 0.05; done' &
sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 0.05; done' &
while [ ! -s heeds ] || [ ! -s stubborn ]; do sleep 0.01; done
echo hi";
    for_each(&[false, true], |&on_terminal| {
        let sandbox = Sandbox::new();
        let options = ["--leftovers", "kill", "--kill-after", "4s"];
        let ended = run(&sandbox, &options, script, on_terminal);
        let both = pids(&sandbox, &["heeds", "stubborn"]);
        assert_eq!(ended.code(), Some(0), "{}", said(&ended));
        assert!(both.iter().all(|pid| !alive(*pid)));
        assert!(ended.out().contains("saved"), "{}", ended.out());
        let actions = sandbox.record().actions("leftovers");
        let signalled = |name: &str, pid: i32| {
            let (to, whom) = (format!("{name} to "), format!("(PID {pid})"));
            let of = |a: &&String| a.starts_with(&to) && a.ends_with(&whom);
            actions.iter().filter(of).count()
        };
        assert_eq!(signalled("TERM", both[0]), 1, "{actions:?}");
        assert_eq!(signalled("KILL", both[0]), 0, "{actions:?}");
        assert_eq!(signalled("TERM", both[1]), 1, "{actions:?}");
        assert_eq!(signalled("KILL", both[1]), 1, "{actions:?}");
    });
}

#[test]
fn a_stopped_one_answers_too() {
    let sandbox = Sandbox::new();
    let script = "
setsid sh -c 'trap \"echo over > ended; exit\" TERM; echo $$ > pid; kill -STOP $$; sleep 3600' &
while [ ! -s pid ]; do sleep 0.01; done
until grep -q '^State:.T' /proc/$(cat pid)/status; do sleep 0.01; done";
    let options = ["--leftovers", "kill", "--kill-after", "1h"];
    let ended = run(&sandbox, &options, script, false);
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    assert_eq!(content(&sandbox.path("ended")), "over");
    let actions = sandbox.record().actions("leftovers");
    assert!(
        actions.iter().any(|a| a.contains(", and CONT")),
        "{actions:?}"
    );
}

#[test]
fn they_are_waited_for_and_heard() {
    let script = "
(while [ ! -e go ]; do sleep 0.02; done; echo late; echo worse >&2) &
echo hi; exit 3";
    for_each(&[false, true], |&on_terminal| {
        let sandbox = Sandbox::new();
        let argv = ["sh", "-c", script];
        let job = sandbox.watched(&["--leftovers", "wait"], &argv);
        let go = || {
            // Far past the two seconds after which a stream is given up that nobody waits for.
            sandbox.wait_for_exit();
            std::thread::sleep(std::time::Duration::from_secs(3));
            std::fs::write(sandbox.path("go"), "").unwrap();
        };
        let said = std::thread::scope(|scope| {
            scope.spawn(go);
            let ended = job.run_either_way(on_terminal);
            assert_eq!(ended.code(), Some(3));
            said(&ended)
        });
        assert!(said.contains("late") && said.contains("worse"), "{said}");
        assert!(!said.contains("end with `kill"), "nobody is left: {said}");
        let log = String::from_utf8(sandbox.record().output()).unwrap();
        assert!(log.contains("late") && log.contains("worse"), "{log}");
    });
}

fn waiting(sandbox: &Sandbox) -> Live {
    let script = "setsid sleep 3600 >/dev/null 2>&1 & echo $! > pid; echo hi; exit 3";
    let live = sandbox
        .watched(&["--leftovers", "wait"], &["sh", "-c", script])
        .start();
    live.wait_for_out("hi");
    sandbox.wait_for_exit();
    live
}

#[test]
fn whoever_interrupts_the_wait_is_told_of_them() {
    for_each(&[libc::SIGINT, libc::SIGTERM], |&signal| {
        let sandbox = Sandbox::new();
        let live = waiting(&sandbox);
        live.signal(signal);
        let ended = live.end();
        let [pid] = pids(&sandbox, &["pid"])[..] else {
            panic!("one PID")
        };
        let lived = alive(pid);
        kill(pid, libc::SIGTERM);
        assert!(lived, "signal {signal} is not for it");
        assert_eq!(ended.code(), Some(3), "{}", ended.err());
        assert!(ended.err().contains(&format!("sleep 3600 (PID {pid})")));
    });
}

#[test]
fn a_wait_obeys_the_terminal() {
    let sandbox = Sandbox::new();
    let mut shell = Shell::start(&sandbox);
    let gpuwatch = env!("CARGO_BIN_EXE_gpuwatch");
    // It ignores what the terminal sends.
    let left = "trap \"\" INT TSTP; echo $$ > pid; echo up; while :; do sleep 0.05; done";
    std::fs::write(sandbox.path("left.sh"), left).unwrap();
    let script = "sh left.sh & while [ ! -s pid ]; do sleep 0.01; done; exit 3";
    shell.line(&format!(
        "{gpuwatch} run -q --leftovers wait -- sh -c '{script}'"
    ));
    shell.wait_for("up");
    let [pid] = pids(&sandbox, &["pid"])[..] else {
        panic!("one PID")
    };
    sandbox.wait_for_exit();
    shell.stop();
    shell.fetch();
    shell.send("\x03");
    shell.prompt();
    assert_eq!(shell.status(), "3");
    assert!(alive(pid), "it ignores Ctrl-C, and was only waited for");
    kill(pid, libc::SIGKILL);
    assert!(shell.exit().success());
}

#[test]
fn whoever_asks_again_need_not_wait_for_the_grace() {
    let sandbox = Sandbox::new();
    let script = "
sh -c 'trap \"echo asked\" TERM; echo $$ > pid; while :; do sleep 0.05; done' &
while [ ! -s pid ]; do sleep 0.01; done";
    let options = ["--leftovers", "kill", "--kill-after", "1h"];
    let live = sandbox.watched(&options, &["sh", "-c", script]).start();
    live.wait_for_out("asked");
    live.signal(libc::SIGINT);
    let ended = live.end();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let left = pids(&sandbox, &["pid"]);
    assert!(!alive(left[0]));
}

#[test]
fn one_of_another_user_is_named_and_the_end_comes() {
    let Some(other) = OtherUser::new(471_001) else {
        return;
    };
    let sandbox = Sandbox::new();
    let command = format!("sleep {}", seconds(30));
    let script = format!(
        "{} {command} >/dev/null 2>&1 &
        until grep -q '^Name:.sleep' /proc/$!/status; do sleep 0.01; done; exit 3",
        other.as_root()
    );
    let mut words = other.gpuwatch();
    words.extend(["run", "--no-record", "--leftovers", "kill", "--"].map(String::from));
    words.extend(["sh", "-c"].map(String::from));
    words.push(script);
    let ended = sandbox.direct(&words).cwd(std::path::Path::new("/")).run();
    let left = running(&command);
    for pid in &left {
        kill(*pid, libc::SIGKILL);
    }
    assert_eq!(left.len(), 1, "it lives on: {}", ended.err());
    assert_eq!(ended.code(), Some(3), "{}", ended.err());
    let named = format!("(PID {}): Operation not permitted", left[0]);
    assert!(ended.err().contains(&named), "{}", ended.err());
}

#[test]
fn one_that_waits_in_the_kernel_is_named_and_the_end_comes() {
    let Some(silent) = NoAnswer::mount() else {
        return;
    };
    let sandbox = Sandbox::new();
    let script = "cat \"$1\" >/dev/null 2>&1 & echo $! > pid; while [ ! -e go ]; do sleep 0.01; done; exit 3";
    let argv = ["sh", "-c", script, "sh", &silent.file()];
    let options = ["--leftovers", "kill", "--kill-after", "200ms"];
    let live = sandbox.watched(&options, &argv).start();
    silent.wait_until_asked();
    std::fs::write(sandbox.path("go"), "").unwrap();
    let ended = live.end();
    let left = pids(&sandbox, &["pid"]);
    assert!(alive(left[0]), "it can't be killed");
    assert_eq!(ended.code(), Some(3), "{}", ended.err());
    let named = format!("can't be ended: cat (PID {})", left[0]);
    assert!(ended.err().contains(&named), "{}", ended.err());
    let actions = sandbox.record().actions("leftovers");
    let rungs: Vec<_> = actions.iter().map(|a| &a[..4]).collect();
    assert_eq!(rungs, ["TERM", "KILL"], "once each: {actions:?}");
    drop(silent);
    wait_until("it is gone", || !alive(left[0]));
}

#[test]
fn as_pid_1_everybody_is_seen_to() {
    let unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork"];
    let probe = Command::new(unshare[0])
        .args(&unshare[1..])
        .args(["--mount-proc", "true"])
        .output()
        .unwrap();
    if !probe.status.success() {
        eprintln!("skipped: no PID namespace can be made here");
        return;
    }
    for_each(&["report", "wait", "kill"], |how| {
        let sandbox = Sandbox::new();
        // A crowd of orphans that end, and one that stays until it is told.
        let script = "
for n in 1 2 3 4 5 6 7 8; do (setsid sh -c 'exit 0' &) ; done
(setsid sh -c 'echo $$ > pid; while [ ! -e gone ]; do sleep 0.02; done' >/dev/null 2>&1 &)
while [ ! -s pid ]; do sleep 0.01; done
until ! grep -q '^State:.Z' /proc/[0-9]*/status 2>/dev/null; do sleep 0.01; done
echo reaped; [ $1 = wait ] && (sleep 0.3; : > gone) & exit 3";
        let argv = ["sh", "-c", script, "sh", how];
        let job = sandbox.watched(&["--no-record", "--leftovers", how], &argv);
        let mut words: Vec<&str> = unshare.to_vec();
        words.extend(["--kill-child", "--mount-proc"]);
        let ended = job.under(&words).run();
        assert_eq!(ended.code(), Some(3), "{how}: {}", said(&ended));
        assert!(ended.out().contains("reaped"), "{how}: {}", said(&ended));
        let err = ended.err();
        match *how {
            "report" => assert!(err.contains("ends them with gpuwatch"), "{err}"),
            // Beside it there may be one of the crowd that was about to end.
            "kill" => {
                let line = err.lines().find(|line| line.contains("ended by now: "));
                assert!(
                    line.is_some_and(|l| l.contains("sh -c echo $$ > pid")),
                    "{err}"
                );
            }
            _ => assert!(!err.contains("PID 1)"), "{err}"),
        }
    });
}

#[test]
fn what_holds_gpu_memory_is_ended_and_strangers_keep_theirs() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let mut stranger = Live::stranger();
    let script = "
import os, time
import fake_gpu
if os.fork() == 0:
    os.setsid()
    fake_gpu.hold(0, 6144)
    open('worker', 'w').write(f'{os.getpid()}\\n')
    time.sleep(3600)
while not os.path.exists('end'):
    time.sleep(0.02)
";
    let live = sandbox
        .watched(
            &["--leftovers", "kill", "--interval", "100ms"],
            &[python(), "-c", script],
        )
        .with(&driver)
        .env("PYTHONPATH", python_path())
        .start();
    driver.hold(stranger.pid() as u32, 0, 2048, 10);
    let worker = pids(&sandbox, &["worker"])[0];
    wait_until("both are seen", || {
        let rows = sandbox.samples_so_far();
        rows.iter()
            .any(|r| r["mem_used_mib"] == "8192" && r["job_mem_mib"] == "6144")
    });
    std::fs::write(sandbox.path("end"), "").unwrap();
    let ended = live.end();
    assert!(stranger.running(), "a stranger was touched");
    assert!(!alive(worker));
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let last = sandbox.record().samples().pop().unwrap();
    assert_eq!(last["job_mem_mib"], "0", "nothing of it is held at the end");
}

#[test]
fn programs_of_our_own_are_no_leftovers() {
    let sandbox = Sandbox::new();
    let profile = "
rules: [{name: always, when: job.rss >= 0, for: 0s, severity: note, say: it is}]
act: {always: [{command: [sh, -c, 'echo up > hook; while [ ! -e end ]; do sleep 0.02; done; echo over > hook.done']}]}
";
    std::fs::write(sandbox.path("own.yaml"), profile).unwrap();
    let script = "
setsid sleep 3600 >/dev/null 2>&1 & echo $! > pid
while [ ! -s hook ]; do sleep 0.02; done";
    let options = ["--profile", "./own.yaml", "--leftovers", "kill"];
    let ended = sandbox.watched(&options, &["sh", "-c", script]).run();
    std::fs::write(sandbox.path("end"), "").unwrap();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    assert!(!alive(pids(&sandbox, &["pid"])[0]));
    assert_eq!(content(&sandbox.path("hook.done")), "over");
    let actions = sandbox.record().actions("leftovers");
    assert_eq!(actions.len(), 1, "{actions:?}");
}
