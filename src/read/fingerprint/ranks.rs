//! Which rank a line speaks of.
//!
//! Owns the labels that launchers put before the lines of a rank, the words in which they tell
//! how a rank ended, and how far a rank came in its collective operations. Numbers are global
//! ranks, but for launchers that know only those of their machine, where they are the same
//! unless there are several machines.

use nix::sys::signal::Signal;

/// The rank that a label at the line's beginning names, and the line without its labels.
///
/// `[rank3]: `, `[rank3] `, `[rank: 3] `, `[3]:`, `[default3]:` (torchrun), `[1]<stderr>:`
/// (horovodrun), `[1,3]<stderr>:` (Open MPI), `3: ` (srun), `(actor pid=7) ` (Ray: without a
/// rank).
pub fn label(text: &str) -> (Option<u32>, &str) {
    let mut rank = None;
    let mut rest = text;
    // Two at most: the launcher's, and PyTorch's own, which counts over all machines.
    for _ in 0..2 {
        let Some((found, after)) = one_label(rest) else {
            break;
        };
        rank = found.or(rank);
        rest = after;
    }
    (rank, rest)
}

fn one_label(text: &str) -> Option<(Option<u32>, &str)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, after) = rest.split_once(']').filter(|(i, _)| i.len() < 80)?;
        return in_brackets(inside, after);
    }
    if let Some(rest) = text.strip_prefix('(') {
        let (inside, after) = rest.split_once(") ").filter(|(i, _)| i.len() < 80)?;
        return inside.contains(" pid=").then_some((None, after));
    }
    let (number, after) = text.split_once(": ")?;
    let number = number.trim_start();
    let is_short = !number.is_empty() && number.len() <= 5;
    let rank = number.parse().ok().filter(|_| is_short)?;
    Some((Some(rank), after))
}

fn in_brackets<'a>(inside: &str, after: &'a str) -> Option<(Option<u32>, &'a str)> {
    if let Some(after) = ["<stderr>:", "<stdout>:"]
        .iter()
        .find_map(|stream| after.strip_prefix(stream))
    {
        let rank = inside.rsplit([',', '@']).next()?;
        // One blank is the launcher's; more are the line's own.
        let own = after.strip_prefix(' ').filter(|own| !own.starts_with(' '));
        return Some((Some(rank.parse().ok()?), own.unwrap_or(after)));
    }
    let named = inside.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let is_rank = inside[..inside.len() - named.len()].eq_ignore_ascii_case("rank");
    let number = if is_rank {
        named.trim_start_matches([':', ' '])
    } else {
        named
    };
    let rank = number.parse().ok()?;
    // Without the word or a colon it may be any list's number.
    let after = match after.strip_prefix(':') {
        Some(after) => after.strip_prefix(' ').unwrap_or(after),
        None if is_rank => after.strip_prefix(' ').unwrap_or(after),
        None => return None,
    };
    Some((Some(rank), after))
}

/// The rank whose line this is: by its label, else as NCCL's watchdog signs: `[Rank 2] `,
/// `(default_pg) Rank 2] `.
pub fn speaker(text: &str) -> Option<u32> {
    let signed = || {
        let at = text.find("Rank ")?;
        let (number, rest) = number_at(&text[at + 5..])?;
        rest.starts_with(']').then_some(number)
    };
    label(text).0.or_else(signed)
}

/// How a rank ended, as who started it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Which one, where that is said.
    pub rank: Option<u32>,
    /// Its exit code; negative: the signal that it died of.
    pub code: Option<i32>,
}

/// What a line says of a rank's end.
pub fn ended(text: &str) -> Ended {
    let code = after(text, "(exitcode: ")
        .or_else(|| after(text, "exitcode  : "))
        .or_else(|| after(text, "terminated with code "))
        .or_else(|| after(text, "return code = "))
        .or_else(|| after(text, "terminated with exit code "))
        .or_else(|| after(text, "Exited with exit code "))
        .or_else(|| after(text, "exited on signal ").map(|n| -n))
        .or_else(|| by_name(text));
    let rank = after(text, "local_rank: ")
        .or_else(|| after(text, "process rank "))
        .or_else(|| after(text, "[rank: "))
        .or_else(|| after(text, "rocess "))
        .or_else(|| after(text, ": task "))
        .or_else(|| after(text, ": tasks "));
    Ended {
        rank: rank.and_then(|n| u32::try_from(n).ok()),
        code: code.and_then(|n| i32::try_from(n).ok()),
    }
}

/// The rank in a line of torchrun's list: `  rank      : 1 (local_rank: 1)`.
pub fn listed(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("rank ")?;
    let number = rest.trim_start().strip_prefix(": ")?;
    number_at(number).map(|(rank, _)| rank)
}

/// The ranks that did not come to a `monitored_barrier`: `Ranks 1, 3 failed to pass`.
pub fn missing(text: &str) -> Vec<u32> {
    let Some((before, _)) = text.split_once(" failed to pass") else {
        return Vec::new();
    };
    let names = before.rsplit("Rank").next().unwrap_or_default();
    let names = names.trim_start_matches('s').split(',');
    names.filter_map(|name| name.trim().parse().ok()).collect()
}

/// How far a rank came in its collective operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The rank.
    pub rank: u32,
    /// The group of ranks that the numbers belong to; empty: not said.
    pub group: String,
    /// The number of the last operation that it began.
    pub last: u64,
}

/// How far the rank came that this line of NCCL's watchdog speaks of.
pub fn reached(text: &str) -> Option<Reached> {
    let rank = speaker(text)?;
    let last = ["last enqueued work: ", "ast enqueued NCCL work: "]
        .iter()
        .find_map(|words| after(text, words));
    let group = || {
        let (_, group) = text.split_once("[PG ")?;
        let (group, _) = group.split_once(" Rank ")?;
        Some(group.to_owned())
    };
    let (last, group) = match last {
        Some(last) => (last, group().unwrap_or_default()),
        None => (after(text, "(SeqNum=")?, String::new()),
    };
    let last = u64::try_from(last).ok()?;
    Some(Reached { rank, group, last })
}

/// The XID in a line of the driver's: `NVRM: Xid (PCI:0000:3b:00): 79, pid=...`.
pub fn xid(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("NVRM: Xid")?;
    let (_, rest) = rest.split_once("): ")?;
    number_at(rest).map(|(code, _)| u64::from(code))
}

/// The task that another task's death is blamed on: `/replica:0/task:3 heartbeat timeout`.
pub fn silent_task(text: &str) -> Option<u32> {
    let (before, _) = text.split_once(" heartbeat timeout")?;
    before.rsplit("task:").next()?.parse().ok()
}

fn number_at(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    Some((number.parse().ok()?, rest))
}

/// The number behind these words.
fn after(text: &str, words: &str) -> Option<i64> {
    let (_, rest) = text.split_once(words)?;
    let (sign, digits) = match rest.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, rest),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let number: i64 = digits[..end.unwrap_or(digits.len())].parse().ok()?;
    Some(sign * number)
}

/// A signal by its name: `SIGKILL`, or as `strsignal` and Slurm say it.
fn by_name(text: &str) -> Option<i64> {
    let named = text.split_once("signal SIG").and_then(|(_, rest)| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        let name = format!("SIG{}", &rest[..end.unwrap_or(rest.len())]);
        name.parse::<Signal>().ok()
    });
    let said = [
        (": Killed", Signal::SIGKILL),
        (": Segmentation fault", Signal::SIGSEGV),
        (": Bus error", Signal::SIGBUS),
        (": Aborted", Signal::SIGABRT),
        (": Terminated", Signal::SIGTERM),
        (": Floating point exception", Signal::SIGFPE),
    ];
    let said = || said.iter().find(|(words, _)| text.contains(words));
    let signal = named.or_else(|| said().map(|(_, signal)| *signal))?;
    Some(-i64::from(signal as i32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_are_taken_off() {
        for (text, rank, rest) in [
            ("[rank3]: ValueError: x", Some(3), "ValueError: x"),
            (
                "[rank1]:[E1130 12:10] [Rank 1] W",
                Some(1),
                "[E1130 12:10] [Rank 1] W",
            ),
            ("[default1]:[rank9]: Traceback", Some(9), "Traceback"),
            ("[rank: 1] Child process", Some(1), "Child process"),
            ("[Rank 2] step", Some(2), "step"),
            ("[3]:   File", Some(3), "  File"),
            ("[1]<stderr>:KeyError: 'a'", Some(1), "KeyError: 'a'"),
            ("[1]<stderr>:  File", Some(1), "  File"),
            ("[1,3]<stderr>:KeyError: 'a'", Some(3), "KeyError: 'a'"),
            ("[prterun-n-7@1,2]<stderr>: Key", Some(2), "Key"),
            ("3: ValueError: x", Some(3), "ValueError: x"),
            (" 3: ValueError: x", Some(3), "ValueError: x"),
            (
                "(RayTrainWorker pid=7, ip=192.0.2.2) KeyError",
                None,
                "KeyError",
            ),
            ("ValueError: 3: x", None, "ValueError: 3: x"),
            ("[INFO] step", None, "[INFO] step"),
            ("[12] step", None, "[12] step"),
            ("[2026-11-30 12:00:01] x", None, "[2026-11-30 12:00:01] x"),
            (
                "node01:12:34 [3] NCCL WARN",
                None,
                "node01:12:34 [3] NCCL WARN",
            ),
            ("", None, ""),
        ] {
            assert_eq!(label(text), (rank, rest), "{text}");
        }
    }

    #[test]
    fn launchers_say_how_a_rank_ended() {
        for (text, rank, code) in [
            (
                "api.py:1002] failed (exitcode: -9) local_rank: 1 (pid: 27931) of binary",
                Some(1),
                Some(-9),
            ),
            ("  exitcode  : 1 (pid: 27587) ", None, Some(1)),
            (
                "[rank: 2] Child process with PID 9487 terminated with code -6. Forcefully",
                Some(2),
                Some(-6),
            ),
            (
                "['python', '--local_rank=0'] exits with return code = -11",
                None,
                Some(-11),
            ),
            (
                "mpirun noticed that process rank 7 with PID 0 on node n exited on signal 9 (Killed).",
                Some(7),
                Some(-9),
            ),
            (
                "ProcessExitedException: process 1 terminated with signal SIGKILL",
                Some(1),
                Some(-9),
            ),
            (
                "ProcessExitedException: process 0 terminated with exit code 3",
                Some(0),
                Some(3),
            ),
            (
                "-- Process 1 terminated with the following error:",
                Some(1),
                None,
            ),
            (
                "srun: error: node01: task 3: Exited with exit code 1",
                Some(3),
                Some(1),
            ),
            ("srun: error: node01: tasks 0-2: Killed", Some(0), Some(-9)),
            (
                "srun: error: node01: task 2: Segmentation fault (core dumped)",
                Some(2),
                Some(-11),
            ),
        ] {
            assert_eq!(ended(text), Ended { rank, code }, "{text}");
        }
    }

    #[test]
    fn ranks_are_named_in_many_ways() {
        assert_eq!(listed("  rank      : 13 (local_rank: 5)"), Some(13));
        assert_eq!(
            missing("[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 2 ms"),
            [1, 3]
        );
        assert_eq!(
            missing("[rank0]: RuntimeError: [Rank 0]: Rank 1 failed to pass m"),
            [1]
        );
        assert_eq!(xid("NVRM: Xid (PCI:0000:3b:00): 79, pid=1"), Some(79));
        assert_eq!(
            silent_task("Task /job:jax_worker/replica:0/task:3 heartbeat timeout."),
            Some(3)
        );
    }

    #[test]
    fn a_watchdog_tells_how_far_its_rank_came() {
        let timeout = "[rank1]:[E1016 P.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9141, OpType=A";
        let at = |rank, group: &str, last| {
            let group = group.to_owned();
            Some(Reached { rank, group, last })
        };
        assert_eq!(reached(timeout), at(1, "", 9141));
        assert_eq!(reached(&timeout[9..]), at(1, "", 9141));
        let state = "[rank4]:[E] [PG 3 Rank 4] Timeout at NCCL work: 9141, last enqueued NCCL work: 9142, last completed NCCL work: 9140.";
        assert_eq!(reached(state), at(4, "3", 9142));
        let newer = "[PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 128 PG status: last enqueued work: 129, last completed work: 127";
        assert_eq!(reached(newer), at(0, "ID 0 PG GUID 0(default_pg)", 129));
        assert_eq!(reached("step 3"), None);
    }

    proptest! {
        #[test]
        fn whatever_stands_there(text in "(\\[|\\(|rank|Rank |task:|: |[0-9]{1,12}|\\PC){0,12}") {
            let (_, rest) = label(&text);
            prop_assert!(text.ends_with(rest));
            let _ = (speaker(&text), ended(&text), listed(&text), missing(&text));
            let _ = (reached(&text), xid(&text), silent_task(&text));
        }
    }
}
