//! The verdict where lines, processes, samples and signals go together.

use proptest::prelude::*;

use super::run::{Run, quiet, training};
use crate::model::{Event, Exit, Outcome, ProcessChange, Reading, Verdict};

const OOM: &str = "WARNING: CUDA out of memory. Tried to allocate 2 GiB, skipping batch";
const TRACEBACK: &str = "Traceback (most recent call last):";

fn failed(run: &Run, code: i32) -> Verdict {
    let exit = Exit {
        code: Some(code),
        signal: None,
    };
    run.judge.verdict(Outcome::Failed, exit)
}

fn killed(run: &Run, signal: i32) -> Verdict {
    let exit = Exit {
        code: None,
        signal: Some(signal),
    };
    run.judge.verdict(Outcome::Killed, exit)
}

fn cause(verdict: &Verdict) -> (&str, &str) {
    (
        verdict.cause.as_deref().unwrap_or_default(),
        verdict.line.as_deref().unwrap_or_default(),
    )
}

#[test]
fn what_the_program_went_on_from_did_not_end_it() {
    // For a minute, whatever ends it then.
    let mut run = Run::new();
    run.steps(20, 1, &training()).line(OOM);
    run.steps(59, 1, &training());
    assert_eq!(cause(&failed(&run, 1)), ("oom", OOM));
    run.steps(10, 1, &training());
    assert_eq!(cause(&failed(&run, 1)), ("", ""));
    // It came again.
    let again = format!("again: {OOM}");
    run.line(&again);
    assert_eq!(cause(&failed(&run, 1)), ("oom", again.as_str()));
    // For some seconds, where something else is known to have ended it.
    for (seconds, expected) in [(5, "oom"), (20, "traceback")] {
        let mut run = Run::new();
        run.steps(20, 1, &training()).line(OOM);
        run.steps(seconds, 1, &training());
        run.line(TRACEBACK).line("KeyError: 'lr'");
        assert_eq!(cause(&failed(&run, 1)).0, expected, "{seconds}");
    }
    // Without progress nothing is gone on from.
    let mut run = Run::new();
    run.steps(20, 1, &training()).line(OOM).go(300, &training());
    run.line(TRACEBACK).line("KeyError: 'lr'");
    assert_eq!(cause(&failed(&run, 1)).0, "oom");
}

#[test]
fn a_rank_that_is_gone_before_others_complain_is_meant() {
    let lost = "[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:1] Connection closed by peer";
    let gone = |rank| Event::Process {
        pid: 100 + rank,
        ppid: None,
        name: None,
        rank: Some(rank),
        change: ProcessChange::Exited,
        on: None,
        code: None,
        signal: None,
    };
    let mut run = Run::new();
    run.steps(20, 1, &training()).event(gone(1));
    run.go(1, &quiet()).line(lost).event(gone(0));
    let verdict = failed(&run, 1);
    assert_eq!((cause(&verdict).0, verdict.rank), ("rank-lost", Some(1)));
    // Who is gone long after is not; nor is anybody in a run that only one rank failed.
    let mut run = Run::new();
    run.steps(20, 1, &training()).line(lost);
    run.go(10, &quiet()).event(gone(1));
    assert_eq!(failed(&run, 1).rank, None);
    let mut run = Run::new();
    run.steps(20, 1, &training()).event(gone(1));
    run.line(TRACEBACK).line("KeyError: 'lr'");
    let verdict = failed(&run, 1);
    assert_eq!((cause(&verdict).0, verdict.rank), ("traceback", None));
}

#[test]
fn an_exception_comes_before_the_crash_that_it_ends_in() {
    let crash = "Fatal Python error: Segmentation fault";
    let mut run = Run::new();
    run.line(TRACEBACK).line("AttributeError: no 'long'");
    run.line(crash);
    assert_eq!(
        cause(&killed(&run, 11)),
        ("traceback", "AttributeError: no 'long'")
    );
    let mut run = Run::new();
    run.line(TRACEBACK).line("KeyError: 'handled'");
    run.steps(100, 1, &training()).line(crash);
    assert_eq!(cause(&killed(&run, 11)), ("segfault", crash));
}

#[test]
fn a_worker_that_the_kernel_killed_died_of_its_memory() {
    let line = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.";
    let mut run = Run::new();
    run.steps(5, 1, &training()).line(line);
    assert_eq!(cause(&failed(&run, 1)).0, "loader-killed");
    // The count is looked at a moment later.
    run.go(1, &quiet()).event(Event::Host { oom_kill: 1 });
    assert_eq!(cause(&failed(&run, 1)), ("host-oom", line));
    // This one died of its own, and the kernel's next victim is another.
    let mut run = Run::new();
    run.steps(5, 1, &training()).line(line);
    run.go(8, &quiet()).event(Event::Host { oom_kill: 1 });
    assert_eq!(cause(&failed(&run, 1)).0, "loader-killed");
}

#[test]
fn ranks_that_ended_between_two_looks_have_no_order() {
    use ProcessChange::{Exited, Started};
    let lost = "[rank2]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer";
    let ranks = || {
        let mut run = Run::new();
        for rank in 0..4 {
            run.rank(rank, Started);
        }
        run.steps(5, 1, &training());
        run
    };
    let mut run = ranks();
    run.rank(1, Exited).line(lost).go(1, &quiet());
    run.rank(2, Exited);
    assert_eq!(failed(&run, 1).rank, Some(1));
    let mut run = ranks();
    run.rank(0, Exited).rank(1, Exited).line(lost);
    assert_eq!(failed(&run, 1).rank, None);
}

#[test]
fn who_killed_it_is_said_as_far_as_it_is_known() {
    let mut run = Run::new();
    let mut full = training();
    full.job.rss_mib = Reading::Value(31_000.0);
    full.host.mem_limit_mib = Reading::Value(32_768.0);
    run.steps(5, 1, &full);
    let verdict = killed(&run, 9);
    let advice = verdict.advice.unwrap();
    assert_eq!(verdict.cause, None);
    assert!(advice.contains("held 30.3 GiB of 32.0 GiB"), "{advice}");
    run.event(Event::Host { oom_kill: 1 });
    assert_eq!(cause(&killed(&run, 9)).0, "host-oom");
    let mut run = Run::new();
    run.steps(5, 1, &training());
    let advice = killed(&run, 9).advice.unwrap();
    assert!(advice.contains("Somebody's SIGKILL"), "{advice}");
    let advice = failed(&run, 137).advice.unwrap();
    assert!(advice.contains("Somebody's SIGKILL"), "{advice}");
    let limit = run.judge.verdict(Outcome::TimedOut, Exit::default());
    assert!(limit.advice.unwrap().contains("--time-limit"));
}

#[test]
fn who_asked_it_to_end_is_said() {
    for (name, from, sender, words) in [
        ("INT", "terminal", None, "at the terminal (Ctrl-C)"),
        ("HUP", "terminal", None, "terminal was closed"),
        ("TERM", "812", Some("slurmstepd"), "Slurm"),
        ("TERM", "group", Some("slurmstepd"), "Slurm"),
        ("TERM", "0", None, "outside this container"),
        ("TERM", "1", Some("systemd"), "systemd"),
        ("TERM", "4711", Some("bash"), "bash (PID 4711) sent SIGTERM"),
        ("TERM", "group", None, "whole job"),
        ("TERM", "4711", None, "PID 4711, which is gone"),
    ] {
        let mut run = Run::new();
        let signal = |name: &str, from: &str, sender: Option<&str>| Event::Signal {
            name: name.to_owned(),
            from: from.to_owned(),
            forwarded: true,
            sender: sender.map(str::to_owned),
        };
        run.steps(5, 1, &training());
        run.event(signal("CONT", "7", Some("fish")));
        run.event(signal(name, from, sender));
        run.event(signal("TERM", "9", Some("later")));
        let verdict = run.judge.verdict(Outcome::Cancelled, Exit::default());
        let advice = verdict.advice.unwrap();
        assert!(advice.contains(words), "{advice}");
        assert_eq!(verdict.cause, None);
    }
}

/// Something that is printed, or so many seconds of progress.
fn happenings() -> impl Strategy<Value = Vec<Result<String, u32>>> {
    let labels = prop_oneof![Just(""), Just("[rank0]: "), Just("[rank1]: "), Just("2: ")];
    let texts = prop_oneof![
        Just(OOM),
        Just(TRACEBACK),
        Just("KeyError: 'lr'"),
        Just("Exception ignored in: <f>"),
        Just("During handling of the above exception, another exception occurred:"),
        Just("Fatal Python error: Segmentation fault"),
        Just("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=A"),
        Just("RuntimeError: gloo Connection closed by peer"),
        Just("api.py:1002] failed (exitcode: -9) local_rank: 1 (pid: 27931) of binary"),
        Just("Root Cause (first observed failure):"),
        Just("  rank      : 1 (local_rank: 1)"),
        Just("  exitcode  : -11 (pid: 27587) "),
        Just("[Errno 28] No space left on device"),
        Just("Loss is nan, stopping training"),
        Just("NVRM: Xid (PCI:0000:3b:00): 79, pid=1"),
        Just("SignalException: Process 7 got signal: 15"),
    ];
    let line = (labels, texts).prop_map(|(label, text)| Ok(format!("{label}{text}")));
    let line = prop_oneof![8 => line, 1 => "\\PC{0,40}".prop_map(Ok)];
    prop::collection::vec(
        prop_oneof![4 => line, 1 => (1_u32..80).prop_map(Err)],
        0..14,
    )
}

fn ended(happenings: &[Result<String, u32>], begins: u32, exit: Exit) -> Vec<Verdict> {
    let mut run = Run::new();
    run.go(begins, &training());
    for happening in happenings {
        match happening {
            Ok(text) => run.line(text),
            Err(seconds) => run.steps(*seconds, 1, &training()),
        };
    }
    let outcomes = [
        Outcome::Ok,
        Outcome::Failed,
        Outcome::Killed,
        Outcome::Cancelled,
        Outcome::TimedOut,
        Outcome::Lost,
    ];
    outcomes
        .map(|outcome| run.judge.verdict(outcome, exit))
        .into()
}

proptest! {
    /// What a verdict quotes was printed, what it names it explains, and when all of it began
    /// makes no difference.
    #[test]
    fn whatever_was_printed(happenings in happenings(), code in 0_i32..256, by_signal in any::<bool>()) {
        let (code, signal) = if by_signal { (None, Some(code % 64)) } else { (Some(code), None) };
        let exit = Exit { code, signal };
        let verdicts = ended(&happenings, 1, exit);
        for verdict in &verdicts {
            let printed = |line: &String| happenings.contains(&Ok(line.clone()));
            prop_assert!(verdict.line.as_ref().is_none_or(printed), "{verdict:?}");
            prop_assert!(verdict.cause.is_none() || verdict.advice.is_some(), "{verdict:?}");
            prop_assert!(verdict.rank.is_none() || verdict.cause.is_some() || verdict.line.is_some());
        }
        prop_assert_eq!(verdicts, ended(&happenings, 40, exit));
    }
}
