//! Alerts as texts for people: a short title, and a body that says what, since when, where it
//! stood, why, and what to do.
//!
//! Owns order and layout. Pure; must not know which channel shows it. What comes from the job
//! is cleaned: no control character but the newlines made here.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::model::units::seconds_text;
use crate::model::{Exit, GpuInfo, Outcome};

use super::alert::{About, Alert, Brief, End, Finding, Progress, RankNote, RunFacts, State};
use super::cut::{Budget, cut};
use super::words::{Tongue, Words, fill};

/// The longest title, in characters.
const TITLE: usize = 120;
/// The longest of any one thing in a body (a command, an advice), in characters.
const PART: usize = 600;
/// The most numbers of evidence that are shown.
const NUMBERS: usize = 12;

/// One line: `stalled: train on gpu-01`.
pub fn title(alert: &Alert, run: &RunFacts, tongue: Tongue) -> String {
    let words = tongue.words();
    let subject = match &alert.about {
        About::Started => words.started.to_owned(),
        About::Finished(end) => ending(end, words),
        About::Test => words.test.to_owned(),
        About::Finding(finding) => {
            let name = match alert.of_ranks.rank {
                Some(rank) => fill(words.of_rank, &[&finding.name, &rank.to_string()]),
                None => finding.name.clone(),
            };
            let name = match alert.state {
                State::Raised => name,
                State::Reminded => fill(words.still, &[&name]),
                State::Cleared => fill(words.over, &[&name]),
            };
            match alert.more {
                0 => name,
                more => fill(words.and_more, &[&name, &more.to_string()]),
            }
        }
    };
    let place = match &run.host {
        Some(host) => fill(words.on, &[&run.name, host]),
        None => run.name.clone(),
    };
    cut(&clean(&format!("{subject}: {place}")), Budget::Chars(TITLE))
}

/// Some lines, without a newline at the end.
pub fn body(alert: &Alert, run: &RunFacts, tongue: Tongue) -> String {
    let words = tongue.words();
    let mut lines = Vec::new();
    let mut say = |pattern: &str, values: &[&str]| {
        let values: Vec<String> = values.iter().map(|v| part(v)).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        lines.push(fill(pattern, &values));
    };
    match &alert.about {
        About::Started => {}
        About::Test => say("{}", &[words.test_body]),
        About::Finished(end) => {
            say("{}", &[&ending(end, words)]);
            say(words.took, &[&seconds_text(alert.elapsed_s)]);
            if let Some(cause) = cause(end, words) {
                say(words.cause, &[&cause]);
            }
            if let Some(line) = &end.verdict.line {
                say(words.line, &[line]);
            }
        }
        About::Finding(finding) => {
            say("{}", &[&headline(alert, finding, words)]);
            if let Some(cause) = &finding.cause {
                say(words.cause, &[cause]);
            }
        }
    }
    if !alert.of_ranks.ranks.is_empty() {
        say(words.ranks, &[&ranks(&alert.of_ranks.ranks, words)]);
    }
    if let Some(progress) = progress(&alert.progress, words) {
        say(words.progress, &[&progress]);
    }
    if let About::Finding(finding) = &alert.about
        && !finding.evidence.is_empty()
    {
        say(words.evidence, &[&numbers(finding)]);
    }
    if !alert.stacks.is_empty() {
        say(words.stacks, &[]);
        for line in &alert.stacks {
            say("  {}", &[line]);
        }
    }
    if let Some(advice) = advice(alert) {
        say(words.advice, &[advice]);
    }
    if alert.more > 0 {
        say(words.also, &[&others(alert, words)]);
    }
    if alert.times > 1 && alert.state == State::Raised {
        say(words.times, &[&alert.times.to_string()]);
    }
    say(words.run, &[&place(run)]);
    if !run.argv.is_empty() {
        say(words.command, &[&run.argv.join(" ")]);
    }
    say(words.time, &[&alert.time]);
    lines.join("\n")
}

/// `rank-lost (rank 1)`
fn cause(end: &End, words: &Words) -> Option<String> {
    let cause = end.verdict.cause.clone()?;
    let rank = end.verdict.rank.map(|rank| rank.to_string());
    Some(match rank {
        Some(rank) => fill(words.of_rank, &[&cause, &rank]),
        None => cause,
    })
}

/// `1 stalled (asleep), 0 stalled (spin), 2 failed (exit code 7)`
fn ranks(notes: &[RankNote], words: &Words) -> String {
    let one = |note: &RankNote| {
        let what = match (&note.finding, note.exit) {
            (Some(finding), _) => finding.clone(),
            (None, Some(exit)) => {
                how(exit, words).unwrap_or_else(|| words.outcome(Outcome::Ok).to_owned())
            }
            (None, None) => words.outcome(Outcome::Lost).to_owned(),
        };
        match &note.cause {
            Some(cause) => format!("{} {what} ({cause})", note.rank),
            None => format!("{} {what}", note.rank),
        }
    };
    let shown: Vec<String> = notes.iter().take(NUMBERS).map(one).collect();
    let shown = shown.join(", ");
    match notes.len().saturating_sub(NUMBERS) {
        0 => shown,
        more => fill(words.and_more, &[&shown, &more.to_string()]),
    }
}

fn advice(alert: &Alert) -> Option<&str> {
    match &alert.about {
        About::Finding(finding) if alert.state != State::Cleared => finding.advice.as_deref(),
        About::Finished(end) => end.verdict.advice.as_deref(),
        _ => None,
    }
}

fn headline(alert: &Alert, finding: &Finding, words: &Words) -> String {
    let age = seconds_text((alert.elapsed_s - finding.since_s).max(0.0));
    match alert.state {
        State::Cleared => fill(words.lasted, &[&finding.name, &age]),
        State::Raised | State::Reminded => fill(
            words.holds,
            &[words.severity(alert.severity), &finding.name, &age],
        ),
    }
}

/// `failed (exit code 1)`
fn ending(end: &End, words: &Words) -> String {
    let outcome = end.verdict.outcome;
    let outcome = outcome.map_or("", |outcome| words.outcome(outcome));
    match how(end.exit, words) {
        Some(how) => format!("{outcome} ({how})").trim_start().to_owned(),
        None => outcome.to_owned(),
    }
}

/// `exit code 1`, `SIGKILL`; nothing for success.
fn how(exit: Exit, words: &Words) -> Option<String> {
    match exit {
        Exit {
            signal: Some(number),
            ..
        } => Some(
            Signal::try_from(number)
                .map_or_else(|_| format!("signal {number}"), |s| s.as_str().to_owned()),
        ),
        Exit {
            code: Some(code), ..
        } if code != 0 => Some(fill(words.exit_code, &[&code.to_string()])),
        _ => None,
    }
}

/// `epoch 3/10, step 512/1000, 51.2 %, 12m 05s left, 10.0 s ago`
fn progress(progress: &Progress, words: &Words) -> Option<String> {
    let of = |pattern: &str, n: Option<String>, total: Option<String>| {
        let n = n?;
        let text = total.map_or(n.clone(), |total| format!("{n}/{total}"));
        Some(fill(pattern, &[&text]))
    };
    let whole = |n: Option<u64>| n.map(|n| n.to_string());
    let float = |x: Option<f64>| x.map(|x| x.to_string());
    let seconds = |pattern, s: Option<f64>| s.map(|s| fill(pattern, &[&seconds_text(s)]));
    let parts: Vec<String> = [
        of(words.epoch, float(progress.epoch), float(progress.epochs)),
        of(words.step, whole(progress.step), whole(progress.steps)),
        progress.overall_pct.map(|pct| format!("{pct:.1} %")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        return None;
    }
    let times = [
        seconds(words.left, progress.eta_s),
        seconds(words.ago, progress.age_s),
    ];
    let all: Vec<String> = parts
        .into_iter()
        .chain(times.into_iter().flatten())
        .collect();
    Some(all.join(", "))
}

fn numbers(finding: &Finding) -> String {
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let all: Vec<String> = finding
        .evidence
        .iter()
        .take(NUMBERS)
        .map(|(name, value)| format!("{name} {}", shown(value)))
        .collect();
    all.join(", ")
}

fn others(alert: &Alert, words: &Words) -> String {
    let named: Vec<String> = alert.others.iter().map(|o| brief(o, words)).collect();
    let rest = (alert.more as usize).saturating_sub(named.len());
    let named = named.join(", ");
    match rest {
        0 => named,
        rest => fill(words.and_more, &[&named, &rest.to_string()]),
    }
}

fn brief(other: &Brief, words: &Words) -> String {
    match other.state {
        State::Raised => other.name.clone(),
        State::Reminded => fill(words.still, &[&other.name]),
        State::Cleared => fill(words.over, &[&other.name]),
    }
}

/// `20261130-091502-train-7f3a, ana@gpu-01, GPU 0, 1`
fn place(run: &RunFacts) -> String {
    let who = match (&run.user, &run.host) {
        (Some(user), Some(host)) => Some(format!("{user}@{host}")),
        (one, other) => one.clone().or_else(|| other.clone()),
    };
    let gpus: Vec<String> = run.gpus.iter().map(GpuInfo::label).collect();
    let gpus = (!gpus.is_empty()).then(|| format!("GPU {}", gpus.join(", ")));
    let parts = [Some(run.id.clone()), who, run.job.text(), gpus];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn part(text: &str) -> String {
    cut(&clean(text), Budget::Chars(PART))
}

/// One line in which nothing drives a terminal, ends a line or turns the writing around.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            '\u{2028}'
            | '\u{2029}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{061c}'
            | '\u{feff}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => '?',
            c if c.is_control() => '?',
            c => c,
        })
        .collect()
}

#[cfg(test)]
pub(super) mod samples {
    //! Alerts to try things with.

    use serde_json::json;

    use super::*;
    use crate::model::{JobIds, Severity, Verdict};
    use crate::tell::alert::OfRanks;

    /// A run.
    pub fn run() -> RunFacts {
        RunFacts {
            id: "20261130-091502-train-7f3a".into(),
            name: "train".into(),
            argv: ["python", "train.py"].map(str::to_owned).into(),
            user: Some("ana".into()),
            host: Some("gpu-01".into()),
            gpus: vec![GpuInfo {
                index: 1,
                ..GpuInfo::default()
            }],
            job: JobIds::default(),
        }
    }

    /// A stall.
    pub fn stalled() -> Alert {
        let evidence = json!({"gpu_util_pct": 0, "waits": "futex"});
        Alert {
            about: About::Finding(Finding {
                name: "stalled".into(),
                cause: Some("loader".into()),
                because: None,
                since_s: 100.0,
                evidence: evidence.as_object().cloned().unwrap_or_default(),
                advice: Some("look at the loader".into()),
            }),
            state: State::Raised,
            severity: Severity::Critical,
            time: "2026-11-30T09:15:02.000+08:00".into(),
            elapsed_s: 825.0,
            progress: Progress {
                epoch: Some(3.0),
                epochs: Some(10.0),
                step: Some(512),
                steps: Some(1000),
                age_s: Some(725.0),
                ..Progress::default()
            },
            stacks: vec!["42 python: hang (train.py:7)".into()],
            times: 1,
            others: Vec::new(),
            more: 0,
            of_ranks: OfRanks::default(),
        }
    }

    /// A run's failure.
    pub fn failed() -> Alert {
        Alert {
            about: About::Finished(End {
                exit: Exit {
                    code: Some(1),
                    signal: None,
                },
                verdict: Verdict {
                    outcome: Some(Outcome::Failed),
                    cause: Some("oom".into()),
                    line: Some("torch.OutOfMemoryError: CUDA out of memory".into()),
                    rank: Some(3),
                    ..Verdict::default()
                },
            }),
            severity: Severity::Warning,
            stacks: Vec::new(),
            ..stalled()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{failed, run, stalled};
    use super::*;

    #[test]
    fn a_stall_says_what_where_and_what_to_do() {
        assert_eq!(
            title(&stalled(), &run(), Tongue::English),
            "stalled: train on gpu-01"
        );
        assert_eq!(
            body(&stalled(), &run(), Tongue::English),
            "\
critical: stalled for 12m 05s
cause: loader
last progress: epoch 3/10, step 512/1000, 12m 05s ago
evidence: gpu_util_pct 0, waits futex
where it stands:
  42 python: hang (train.py:7)
what to do: look at the loader
run: 20261130-091502-train-7f3a, ana@gpu-01, GPU 1
command: python train.py
time: 2026-11-30T09:15:02.000+08:00"
        );
        let over = Alert {
            state: State::Cleared,
            stacks: Vec::new(),
            ..stalled()
        };
        assert_eq!(
            title(&over, &run(), Tongue::English),
            "over: stalled: train on gpu-01"
        );
        assert!(
            body(&over, &run(), Tongue::English)
                .starts_with("stalled is over; it lasted 12m 05s\n")
        );
        assert_eq!(
            title(&over, &run(), Tongue::Chinese),
            "已恢复：stalled: train（gpu-01）"
        );
    }

    #[test]
    fn an_end_says_how_and_a_storm_says_how_many() {
        assert_eq!(
            title(&failed(), &run(), Tongue::English),
            "failed (exit code 1): train on gpu-01"
        );
        let storm = Alert {
            others: vec![Brief {
                name: "low-use".into(),
                state: State::Cleared,
                severity: crate::model::Severity::Warning,
            }],
            more: 45,
            ..stalled()
        };
        assert_eq!(
            title(&storm, &run(), Tongue::English),
            "stalled and 45 more: train on gpu-01"
        );
        assert!(
            body(&storm, &run(), Tongue::English).contains("\nalso: over: low-use and 44 more\n")
        );
    }

    #[test]
    fn nothing_of_the_job_makes_lines_or_drives_a_terminal() {
        let mut nasty = run();
        nasty.name = "a\nb\x1b[31m\u{202e}".into();
        nasty.argv = vec!["x".repeat(1 << 20), "\r\nFrom: me".into()];
        for tongue in [Tongue::English, Tongue::Chinese] {
            let title = title(&stalled(), &nasty, tongue);
            assert!(title.contains("a b?[31m?"), "{title}");
            let body = body(&stalled(), &nasty, tongue);
            assert_eq!(body.lines().count(), 10);
            assert!(body.len() < 3000 && !body.contains(['\r', '\x1b']));
        }
    }
}
