//! Every signal reaches the command once, whoever sends it and wherever it is sent to.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::time::Duration;

use support::{
    Job, Listener, Sandbox, alive, for_each, group, kill, marked, python, script, wait_until,
};

fn signals() -> Vec<i32> {
    vec![
        libc::SIGTERM,
        libc::SIGINT,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGCONT,
        libc::SIGWINCH,
        libc::SIGRTMIN() + 1,
        libc::SIGRTMIN() + 5,
        libc::SIGRTMAX(),
    ]
}

/// Sends each signal three times, each after the one before arrived, so that a second copy of
/// any but the last shows; the end shows the last.
fn each_arrives_once(to_group: bool) {
    for_each(&signals(), |&number| {
        let sandbox = Sandbox::new();
        for job in sandbox.both(&Listener::argv(&sandbox.arg("log"), "7")) {
            let listener = Listener::start(&sandbox, &job);
            let pid = listener.live.pid();
            for _ in 0..3 {
                let before = listener.arrived().len();
                kill(if to_group { -pid } else { pid }, number);
                wait_until(&format!("signal {number} arrives"), || {
                    listener.arrived().len() > before
                });
            }
            // Another signal by the same way comes after any second copy.
            let last = if number == libc::SIGUSR1 {
                libc::SIGUSR2
            } else {
                libc::SIGUSR1
            };
            kill(if to_group { -pid } else { pid }, last);
            listener.wait_for(last);
            let (arrived, ended) = listener.end();
            let wanted = [number, number, number, last].map(|n| n as u8);
            assert_eq!(arrived, wanted, "signal {number}, group: {to_group}");
            assert_eq!(ended.code(), Some(7), "the command decides how it ends");
            std::fs::remove_file(sandbox.path("log")).unwrap();
            std::fs::remove_file(sandbox.path("log.end")).unwrap();
        }
    });
}

#[test]
fn a_signal_to_gpuwatch_alone_arrives_once() {
    each_arrives_once(false);
}

#[test]
fn a_signal_to_the_whole_group_arrives_once() {
    each_arrives_once(true);
}

/// Each as soon as the command has the one before: nothing may be doubled or lost on the way.
#[test]
fn signals_back_to_back_arrive_once_each() {
    let cases = [
        (libc::SIGUSR1, true),
        (libc::SIGCONT, true),
        (libc::SIGUSR1, false),
        (libc::SIGCONT, false),
    ];
    for_each(&cases, |&(signal, to_group)| {
        let sandbox = Sandbox::new();
        let argv = Listener::argv(&sandbox.arg("log"), "0");
        let listener = Listener::start(&sandbox, &sandbox.watched(&["-q"], &argv));
        let pid = listener.live.pid();
        for sent in 1..=60 {
            kill(if to_group { -pid } else { pid }, signal);
            wait_until("it arrives", || listener.arrived().len() >= sent);
        }
        kill(pid, libc::SIGUSR2);
        listener.wait_for(libc::SIGUSR2);
        let (arrived, _) = listener.end();
        let mut wanted = vec![signal as u8; 60];
        wanted.push(libc::SIGUSR2 as u8);
        assert_eq!(arrived, wanted, "signal {signal}, to the group: {to_group}");
    });
}

#[test]
fn a_signal_to_every_process_of_the_job_arrives_once() {
    // As `scancel` and container runtimes do: one by one, gpuwatch first or last.
    for_each(&[false, true], |&backwards| {
        let sandbox = Sandbox::new();
        let argv = Listener::argv(&sandbox.arg("log"), "0");
        let listener = Listener::start(&sandbox, &sandbox.watched(&["-q"], &argv));
        let pid = listener.live.pid();
        let mut all = group(pid);
        assert!(all.len() >= 2, "gpuwatch and the command: {all:?}");
        all.sort_unstable();
        if backwards {
            all.reverse();
        }
        // One shell sends them all: nobody has long to answer before the next.
        let ids: Vec<String> = all.iter().map(ToString::to_string).collect();
        let mut sender = std::process::Command::new("sh");
        sender.args(["-c", "kill -TERM \"$@\"", "sh"]).args(&ids);
        assert!(sender.status().unwrap().success());
        listener.wait_for(libc::SIGTERM);
        kill(pid, libc::SIGUSR1);
        listener.wait_for(libc::SIGUSR1);
        let (arrived, _) = listener.end();
        assert_eq!(arrived, [libc::SIGTERM as u8, libc::SIGUSR1 as u8]);
    });
}

#[test]
fn only_the_command_gets_it_not_its_workers() {
    let sandbox = Sandbox::new();
    let both = "\"$1\" \"$2\" worker & while [ ! -s worker.up ]; do sleep 0.01; test -e worker && echo > worker.up; done; exec \"$1\" \"$2\" main";
    let argv = ["sh", "-c", both, "sh", python(), &script("signal_log.py")];
    let live = sandbox.watched(&["-q"], &argv).own_group().start();
    let log = |name: &str| std::fs::read(sandbox.path(name)).unwrap_or_default();
    wait_until("both listen", || {
        live.out_so_far().matches("ready").count() == 2
    });
    kill(live.pid(), libc::SIGUSR1);
    wait_until("it arrives", || !log("main").is_empty());
    kill(live.pid(), libc::SIGUSR2);
    wait_until("the next arrives", || log("main").len() > 1);
    for name in ["worker.end", "main.end"] {
        std::fs::write(sandbox.path(name), "").unwrap();
    }
    assert_eq!(live.end().code(), Some(0));
    assert_eq!(log("main"), [libc::SIGUSR1 as u8, libc::SIGUSR2 as u8]);
    assert_eq!(log("worker"), [0_u8; 0]);
}

#[test]
fn the_command_may_take_its_time_after_an_interrupt() {
    let sandbox = Sandbox::new();
    let save = "trap 'sleep 2; echo saved; exit 0' INT; echo ready; while :; do sleep 0.05; done";
    let live = sandbox.watched(&["-q"], &["sh", "-c", save]).start();
    live.wait_for_out("ready");
    live.signal(libc::SIGINT);
    let ended = live.end();
    assert_eq!(
        (ended.code(), ended.out()),
        (Some(0), "ready\nsaved\n".into())
    );
    assert_eq!(sandbox.record().json()["state"], "finished");
}

#[test]
fn a_cancelled_run_is_recorded_before_the_command_answers() {
    // A runner that cancels sends KILL soon after: what isn't on disk by then is lost.
    let sandbox = Sandbox::new();
    let job = sandbox.watched(&["-q"], &Listener::argv(&sandbox.arg("log"), "9"));
    let listener = Listener::start(&sandbox, &job);
    kill(listener.live.pid(), libc::SIGINT);
    wait_until("the record says cancelled", || {
        sandbox.record().json()["state"] == "cancelled"
    });
    let (arrived, ended) = listener.end();
    assert_eq!(arrived, [libc::SIGINT as u8]);
    assert_eq!(ended.code(), Some(9));
    let run = sandbox.record().json();
    assert_eq!(run["state"], "cancelled");
    assert_eq!(run["verdict"]["outcome"], "cancelled");
}

#[test]
fn a_command_without_a_handler_dies_of_it() {
    let numbers = [
        libc::SIGUSR1,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGRTMIN() + 2,
    ];
    for_each(&numbers, |&number| {
        let sandbox = Sandbox::new();
        for job in sandbox.both(&["sh", "-c", "echo ready; exec sleep 600"]) {
            let live = job.start();
            live.wait_for_out("ready");
            live.signal(number);
            assert_eq!(live.end().signal(), Some(number));
        }
    });
}

#[test]
fn a_shell_shows_it_as_it_does_direct() {
    let sandbox = Sandbox::new();
    for (number, status) in [
        (libc::SIGUSR1, 138),
        (libc::SIGTERM, 143),
        (libc::SIGHUP, 129),
    ] {
        let follow = format!("\"$@\" & read go; kill -{number} $!; wait $!; echo \"status $?\"");
        for job in sandbox.both(&["sh", "-c", "echo ready; exec sleep 600"]) {
            let mut live = job.under(&["bash", "-c", &follow, "bash"]).start();
            live.wait_for_out("ready");
            live.send("go\n");
            assert!(live.end().out().ends_with(&format!("status {status}\n")));
        }
    }
}

/// The masks of blocked and ignored signals that a command finds.
fn inherited(job: &Job) -> Vec<u64> {
    // 32 and 33 are the C library's own; posix_spawn changes them as it likes.
    const PRIVATE: u64 = 0b11 << 31;
    let ended = job.run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let text = ended.out();
    let masks = text.lines().map(|l| l.split_once(":\t").unwrap().1);
    masks
        .map(|m| u64::from_str_radix(m, 16).unwrap() & !PRIVATE)
        .collect()
}

#[test]
fn ignored_and_blocked_signals_are_inherited() {
    let starts: [&[&str]; 8] = [
        &[],
        &["env", "--ignore-signal=HUP"],
        &["env", "--ignore-signal=INT,QUIT"],
        &["env", "--ignore-signal=PIPE"],
        &["env", "--ignore-signal=CHLD,USR1,TERM,WINCH"],
        &["env", "--block-signal=USR2"],
        &["env", "--block-signal=TERM,INT,HUP,CHLD"],
        &[
            "env",
            "--block-signal=WINCH",
            "--ignore-signal=TSTP,TTOU,TTIN",
        ],
    ];
    let sandbox = Sandbox::new();
    for_each(&starts, |start| {
        let look = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"];
        let options = ["-q", "--no-record"];
        let direct = inherited(&sandbox.direct(&look).under(start));
        let watched = inherited(&sandbox.watched(&options, &look).under(start));
        assert_eq!(watched, direct, "under {start:?}");
    });
}

#[test]
fn under_nohup_a_hangup_is_ignored_by_both() {
    let sandbox = Sandbox::new();
    for job in sandbox.both(&[
        "sh",
        "-c",
        "echo ready; while [ ! -e end ]; do sleep 0.02; done; echo well",
    ]) {
        let live = job.under(&["nohup"]).own_group().start();
        live.wait_for_out("ready");
        live.signal(libc::SIGHUP);
        kill(-live.pid(), libc::SIGHUP);
        std::fs::write(sandbox.path("end"), "").unwrap();
        let ended = live.end();
        assert_eq!(
            (ended.code(), ended.out()),
            (Some(0), "ready\nwell\n".into())
        );
        std::fs::remove_file(sandbox.path("end")).unwrap();
    }
}

#[test]
fn a_blocked_signal_waits_as_it_does_direct() {
    // Python, because dash unblocks everything when it starts.
    let linger = "
import os, sys, time
print('ready', flush=True)
while not os.path.exists('end'):
    time.sleep(0.01)
sys.exit(4)
";
    let sandbox = Sandbox::new();
    for job in sandbox.both(&[python(), "-c", linger]) {
        let live = job.under(&["env", "--block-signal=TERM"]).start();
        live.wait_for_out("ready");
        live.signal(libc::SIGTERM);
        std::fs::write(sandbox.path("end"), "").unwrap();
        assert_eq!(live.end().code(), Some(4));
        std::fs::remove_file(sandbox.path("end")).unwrap();
    }
}

#[test]
fn a_term_at_any_moment_ends_it_and_leaves_nobody() {
    let moments: Vec<u64> = (0..200).map(|i| (i * 37) % 51).collect();
    for_each(&moments, |&moment| {
        let sandbox = Sandbox::new();
        let mark = sandbox.arg("mark");
        let job = sandbox
            .watched(&["-q"], &["sleep", "600"])
            .env("TEST_MARK", &mark);
        let live = job.start();
        // The moment itself is what is tried: nothing waits for it.
        std::thread::sleep(Duration::from_millis(moment));
        live.signal(libc::SIGTERM);
        let ended = live.end();
        assert_eq!(
            ended.signal(),
            Some(libc::SIGTERM),
            "TERM after {moment} ms: {:?} {}",
            ended.status,
            ended.err()
        );
        wait_until("nobody is left", || marked(&mark).is_empty());
        for record in support::Record::all_in(&sandbox.runs()) {
            let state = record.json()["state"].clone();
            assert!(
                state == "cancelled" || state == "lost",
                "TERM after {moment} ms: {state}"
            );
        }
    });
}

#[test]
fn no_signal_comes_by_itself() {
    let sandbox = Sandbox::new();
    let runs: Vec<u32> = (0..200).collect();
    for_each(&runs, |run| {
        let log = sandbox.arg(&format!("log{run}"));
        std::fs::write(format!("{log}.end"), "").unwrap();
        let options = ["-q", "--no-record"];
        let ended = sandbox.watched(&options, &Listener::argv(&log, "0")).run();
        assert_eq!(ended.code(), Some(0));
        assert_eq!(std::fs::read(&log).unwrap(), [0_u8; 0], "run {run}");
    });
}

#[test]
fn if_gpuwatch_is_killed_the_command_is_told_to_end() {
    let sandbox = Sandbox::new();
    let runs: Vec<u32> = (0..10).collect();
    for_each(&runs, |run| {
        let log = sandbox.arg(&format!("killed{run}"));
        let mark = format!("{log}.mark");
        let job = sandbox
            .watched(&["-q"], &Listener::argv(&log, "0"))
            .env("TEST_MARK", &mark);
        let live = job.start();
        live.wait_for_out("ready");
        let ours = live.pid();
        kill(ours, libc::SIGKILL);
        assert_eq!(live.end().signal(), Some(libc::SIGKILL));
        wait_until("the command has it", || {
            !std::fs::read(&log).unwrap().is_empty()
        });
        std::fs::write(format!("{log}.end"), "").unwrap();
        wait_until("nobody is left", || {
            marked(&mark).iter().all(|pid| !alive(*pid))
        });
        // The kernel may send it again for each of our threads that it takes down.
        let arrived = std::fs::read(&log).unwrap();
        assert!(
            arrived.iter().all(|n| *n == libc::SIGTERM as u8),
            "{arrived:?}"
        );
    });
    let shown = sandbox.gpuwatch(&["runs", "--json"]).run();
    let runs: serde_json::Value = serde_json::from_slice(&shown.assert_ok().out).unwrap();
    let states: Vec<_> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["state"])
        .collect();
    assert_eq!(states.len(), 10);
    assert!(states.iter().all(|s| *s == "lost"), "{states:?}");
}
