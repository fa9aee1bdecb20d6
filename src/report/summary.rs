//! The last words of `gpuwatch run`, on stderr.
//!
//! Owns what is said at a run's end and in which order. Pure; must not know where it goes.

use super::text::{around, clean, clip, energy, exit, list, progress, quote, short, signal};
use crate::model::units::{mib_text, seconds_text};
use crate::model::{GpuInfo, Outcome, RunRecord, Summary};
use crate::record::FindingRecord;

/// Where the record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept<'a> {
    /// In this directory, among the runs that commands find without `--dir`.
    Here(&'a str),
    /// In this directory, which commands must be given.
    Elsewhere(&'a str),
    /// Nowhere, as was asked for (or the reason is among the problems).
    Nowhere,
}

/// A process of the job that outlived the main one.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// Its PID.
    pub pid: u32,
    /// Its command, or its short name.
    pub command: Option<String>,
    /// What it holds on the watched GPUs, MiB.
    pub gpu_mem_mib: Option<f64>,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a process that outlived the main one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It lives.
    Lives,
    /// We ended it, or it ended while we waited.
    Ended,
    /// It was to be ended, and lives, for this reason.
    Stuck(String),
}

/// A line of output is quoted in so many columns.
const LINE: usize = 200;

/// So many are named in one line.
const NAMED: usize = 10;

/// What the summary says besides the record.
#[derive(Clone, Debug)]
pub struct Notes<'a> {
    /// Where the record is.
    pub kept: Kept<'a>,
    /// The findings of the run.
    pub findings: &'a [FindingRecord],
    /// Sentences, each said once: `no GPU is watched: no driver`, `NVML stopped answering
    /// after 12 s`.
    pub problems: &'a [String],
    /// Processes left over.
    pub leftovers: &'a [Leftover],
    /// We are PID 1: they end with us.
    pub they_end_with_us: bool,
}

/// The summary: lines that each begin with `gpuwatch: ` (and the rank, where there are more) and
/// end with a newline.
pub fn summary(record: &RunRecord, notes: &Notes<'_>) -> String {
    let mut out = String::new();
    let rank = record.job.label();
    let mut say = |text: String| {
        out.push_str("gpuwatch: ");
        out.push_str(&rank);
        out.push_str(&clean(&text));
        out.push('\n');
    };
    say(ending(record));
    let cause = record.verdict.cause.as_deref();
    why(record).into_iter().for_each(&mut say);
    gpu_use(record).into_iter().for_each(&mut say);
    for finding in notes.findings {
        // The verdict's own finding has given its advice already.
        let advice = finding.advice.as_deref();
        let advice = advice.filter(|_| cause != Some(&finding.name));
        say(finding_words(finding) + &around(": ", advice, ""));
    }
    let gates = record.gates.iter().filter_map(super::gates::words);
    gates.for_each(&mut say);
    notes.problems.iter().cloned().for_each(&mut say);
    left_over(notes.leftovers, notes.they_end_with_us)
        .into_iter()
        .for_each(&mut say);
    where_kept(record, notes.kept).into_iter().for_each(say);
    out
}

/// `cause: rank-lost, of rank 1; One rank was ended by SIGKILL: ...`, and the line that told it.
fn why(record: &RunRecord) -> Vec<String> {
    let verdict = &record.verdict;
    let advice = verdict.advice.as_deref();
    let rank = verdict.rank.map(|rank| format!(", of rank {rank}"));
    let rank = rank.unwrap_or_default();
    let what = match &verdict.cause {
        Some(cause) => Some(format!("cause: {cause}{rank}{}", around("; ", advice, ""))),
        None => advice.map(str::to_owned),
    };
    let line = verdict.line.as_deref();
    let line = line.map(|line| format!("line: {}", clip(line, LINE)));
    what.into_iter().chain(line).collect()
}

/// `ok after 31.4 s: epoch 2/2, step 200/200, 100 %`
fn ending(record: &RunRecord) -> String {
    let how = match (record.verdict.outcome, record.exit.code, record.exit.signal) {
        (Some(Outcome::Ok), ..) => "ok".to_owned(),
        (Some(Outcome::Failed), Some(code), _) => format!("failed with exit code {code}"),
        (_, _, Some(number)) if record.verdict.outcome == Some(Outcome::Killed) => {
            format!("killed by {}", signal(number))
        }
        (outcome, ..) => {
            let word = super::text::standing(record.state, outcome);
            match exit(record.exit) {
                Some(code) => format!("{word} ({code})"),
                None => word.to_owned(),
            }
        }
    };
    let after = record.summary.duration_s.map(seconds_text);
    let after = after.map_or_else(String::new, |span| format!(" after {span}"));
    let reached = progress(&record.summary).map_or_else(String::new, |text| format!(": {text}"));
    format!("{how}{after}{reached}")
}

/// `GPU 2: use 48.2 % (p95 97 %), memory peak 18.0 GiB, power 192.5 W, energy 6.0 kJ`
fn gpu_use(record: &RunRecord) -> Option<String> {
    let indices: Vec<String> = record.gpus.iter().map(GpuInfo::label).collect();
    let who = match indices.len() {
        0 => return None,
        1 if record.gpus[0].instance.is_some() => indices[0].clone(),
        1 => format!("GPU {}", indices[0]),
        _ => format!("GPUs {}", indices.join(",")),
    };
    let readings = readings(&record.summary).unwrap_or_else(|| "nothing could be read".to_owned());
    Some(format!("{who}: {readings}"))
}

/// What the GPUs did, in numbers; `None` where nothing is known.
pub(super) fn readings(summary: &Summary) -> Option<String> {
    let util = summary.gpu_util_pct_mean.map(|mean| {
        let p95 = summary
            .gpu_util_pct_p95
            .map(|p| format!(" (p95 {} %)", short(p)));
        format!("use {} %{}", short(mean), p95.unwrap_or_default())
    });
    list([
        util,
        summary
            .job_mem_mib_max
            .map(|mib| format!("memory peak {}", mib_text(mib))),
        summary
            .power_w_mean
            .map(|watts| format!("power {} W", short(watts))),
        summary
            .energy_j
            .map(|joules| format!("energy {}", energy(joules))),
    ])
}

/// `stalled (asleep) from 13.0 s, cleared at 24.0 s`
pub(super) fn finding_words(finding: &FindingRecord) -> String {
    let cause = around(" (", finding.cause.as_deref(), ")");
    let cleared = match finding.cleared_s {
        Some(at) => format!("cleared at {}", seconds_text(at)),
        None => "not cleared".to_owned(),
    };
    let since = seconds_text(finding.since_s);
    format!("{}{cause} from {since}, {cleared}", finding.name)
}

fn left_over(leftovers: &[Leftover], they_end_with_us: bool) -> Vec<String> {
    let of = |wanted: fn(&Fate) -> bool| -> Vec<&Leftover> {
        leftovers.iter().filter(|l| wanted(&l.fate)).collect()
    };
    let named = |these: &[&Leftover]| {
        let named: Vec<String> = these.iter().take(NAMED).map(|l| leftover(l)).collect();
        let more = these.len().saturating_sub(NAMED);
        let more = (more > 0).then(|| format!(" and {more} more"));
        named.join(", ") + &more.unwrap_or_default()
    };
    let live = of(|fate| *fate == Fate::Lives);
    let stuck = of(|fate| matches!(fate, Fate::Stuck(_)));
    let ended = of(|fate| *fate == Fate::Ended);
    let mut lines = Vec::new();
    if !live.is_empty() {
        let pids: Vec<String> = live.iter().map(|l| l.pid.to_string()).collect();
        let then = if they_end_with_us {
            "the kernel ends them with gpuwatch, which is PID 1".to_owned()
        } else {
            format!("end with `kill {}`", pids.join(" "))
        };
        lines.push(format!("left over: {}; {then}", named(&live)));
    }
    for one in stuck {
        if let Fate::Stuck(why) = &one.fate {
            lines.push(format!(
                "left over, can't be ended: {}: {why}",
                leftover(one)
            ));
        }
    }
    if !ended.is_empty() {
        lines.push(format!("left over, ended by now: {}", named(&ended)));
    }
    lines
}

fn leftover(process: &Leftover) -> String {
    let name = process.command.as_deref().unwrap_or("process");
    let memory = process.gpu_mem_mib.filter(|mib| *mib > 0.0);
    let holds = memory.map(|mib| format!(", {} of GPU memory", mib_text(mib)));
    format!("{name} (PID {}{})", process.pid, holds.unwrap_or_default())
}

fn where_kept(record: &RunRecord, kept: Kept<'_>) -> Option<String> {
    match kept {
        Kept::Here(dir) => Some(format!("record: {dir} (`gpuwatch show {}`)", record.id)),
        Kept::Elsewhere(dir) => Some(format!("record: `gpuwatch show {}`", quote(dir))),
        Kept::Nowhere => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Exit, RunState, Verdict};

    const NOTHING: Notes<'_> = Notes {
        kept: Kept::Nowhere,
        findings: &[],
        problems: &[],
        leftovers: &[],
        they_end_with_us: false,
    };

    fn example() -> (RunRecord, Vec<FindingRecord>) {
        let text = include_str!("../../tests/example-run/show.json");
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        let findings = serde_json::from_value(document["findings"].clone()).unwrap();
        (serde_json::from_value(document).unwrap(), findings)
    }

    #[test]
    fn the_example_in_a_few_lines() {
        let (record, findings) = example();
        let problems = ["NVML stopped answering after 12 s".to_owned()];
        let leftovers = [
            Leftover {
                pid: 41,
                command: Some("sleep\n".into()),
                gpu_mem_mib: None,
                fate: Fate::Lives,
            },
            Leftover {
                pid: 42,
                command: None,
                gpu_mem_mib: Some(6144.0),
                fate: Fate::Lives,
            },
        ];
        let notes = Notes {
            kept: Kept::Here("/home/li/runs/x"),
            findings: &findings,
            problems: &problems,
            leftovers: &leftovers,
            they_end_with_us: false,
        };
        assert_eq!(
            summary(&record, &notes),
            "gpuwatch: ok after 31.4 s: epoch 2/2, step 200/200, 100 %\n\
             gpuwatch: GPU 2: use 48.2 % (p95 97 %), memory peak 18.0 GiB, power 192.5 W, energy 6.0 kJ\n\
             gpuwatch: stalled (asleep) from 13.0 s, cleared at 24.0 s: Every process sleeps on a lock: look at the stacks; a DataLoader worker that died or a lock held across fork is the usual cause.\n\
             gpuwatch: NVML stopped answering after 12 s\n\
             gpuwatch: left over: sleep? (PID 41), process (PID 42, 6.0 GiB of GPU memory); end with `kill 41 42`\n\
             gpuwatch: record: /home/li/runs/x (`gpuwatch show 20261130-091502-train-7f3a`)\n"
        );
    }

    #[test]
    fn every_leftover_has_its_words() {
        let one = |pid, fate| Leftover {
            pid,
            command: Some("w.py".into()),
            gpu_mem_mib: None,
            fate,
        };
        let mixed = [
            one(1, Fate::Ended),
            one(2, Fate::Stuck("Operation not permitted".into())),
            one(3, Fate::Ended),
        ];
        assert_eq!(
            left_over(&mixed, false),
            [
                "left over, can't be ended: w.py (PID 2): Operation not permitted",
                "left over, ended by now: w.py (PID 1), w.py (PID 3)",
            ]
        );
        let many: Vec<_> = (1..=12).map(|pid| one(pid, Fate::Lives)).collect();
        let said = left_over(&many, true).join("");
        assert!(
            said.contains("w.py (PID 10) and 2 more; the kernel ends them"),
            "{said}"
        );
        assert_eq!(left_over(&[], true), [""; 0]);
    }

    #[test]
    fn every_end_has_its_words() {
        use Outcome::{Cancelled, Failed, Killed, Lost, TimedOut};
        use RunState::Finished;

        let said = |state, outcome, code, signal| {
            let record = RunRecord {
                state,
                exit: Exit { code, signal },
                verdict: Verdict {
                    outcome,
                    ..Verdict::default()
                },
                ..RunRecord::default()
            };
            summary(&record, &NOTHING)
        };
        for (text, expected) in [
            (
                said(Finished, Some(Failed), Some(3), None),
                "failed with exit code 3",
            ),
            (
                said(Finished, Some(Killed), None, Some(11)),
                "killed by SIGSEGV",
            ),
            (
                said(RunState::Cancelled, Some(Cancelled), None, Some(2)),
                "cancelled (SIGINT)",
            ),
            (
                said(Finished, Some(Cancelled), Some(0), None),
                "cancelled (exit code 0)",
            ),
            (
                said(Finished, Some(TimedOut), None, Some(15)),
                "timed out (SIGTERM)",
            ),
            (said(RunState::Lost, Some(Lost), None, None), "lost"),
        ] {
            assert_eq!(text, format!("gpuwatch: {expected}\n"));
        }
    }

    #[test]
    fn what_is_missing_is_not_said() {
        let record = RunRecord {
            gpus: vec![
                GpuInfo::default(),
                GpuInfo {
                    index: 3,
                    ..GpuInfo::default()
                },
            ],
            verdict: Verdict {
                outcome: Some(Outcome::Failed),
                cause: Some("traceback".into()),
                advice: Some("see the last lines\x1b[2J".into()),
                line: Some("KeyError: 'a'\n".into()),
                rank: Some(1),
                around: Vec::new(),
            },
            ..RunRecord::default()
        };
        let notes = Notes {
            kept: Kept::Elsewhere("/tmp/my runs/x"),
            ..NOTHING
        };
        assert_eq!(
            summary(&record, &notes),
            "gpuwatch: failed\n\
             gpuwatch: cause: traceback, of rank 1; see the last lines?[2J\n\
             gpuwatch: line: KeyError: 'a'?\n\
             gpuwatch: GPUs 0,3: nothing could be read\n\
             gpuwatch: record: `gpuwatch show '/tmp/my runs/x'`\n"
        );
    }
}
