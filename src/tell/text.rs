//! Alerts as texts for people: a short title, and a body that says what, since when, where it
//! stood, why, and what to do.
//!
//! Owns order and layout. Pure; must not know which channel shows it. What comes from the job
//! is cleaned: no control character but the newlines made here.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::model::units::seconds_text;
use crate::model::{Exit, GpuInfo, Outcome};

use super::alert::{About, Alert, Brief, End, Finding, Progress, RankNote, RunFacts, State};
use super::cut::{Budget, cut};
use super::words::{Tongue, Words, fill};

/// The longest title, in characters.
pub const TITLE: usize = 120;
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
                Some(rank) => fill(
                    words.of_rank,
                    &[&words.named(&finding.name), &rank.to_string()],
                ),
                None => words.named(&finding.name),
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

/// One line of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it says, as templates name it.
    pub name: &'static str,
    /// The whole line.
    pub text: String,
}

/// Some lines, without a newline at the end.
pub fn body(alert: &Alert, run: &RunFacts, tongue: Tongue) -> String {
    let lines = lines(alert, run, tongue).into_iter();
    lines.map(|line| line.text).collect::<Vec<_>>().join("\n")
}

/// The lines by name; those of one name are joined.
pub fn by_name(lines: &[Line]) -> BTreeMap<&'static str, String> {
    let mut named: BTreeMap<&str, String> = BTreeMap::new();
    for line in lines {
        let text = named.entry(line.name).or_default();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line.text);
    }
    named
}

/// The lines of a body: what, why, where it stood, what to do, which run.
pub fn lines(alert: &Alert, run: &RunFacts, tongue: Tongue) -> Vec<Line> {
    let words = tongue.words();
    let mut lines = what(alert, words);
    let mut say = |name, pattern: &str, values: &[&str]| lines.push(line(name, pattern, values));
    if !alert.of_ranks.ranks.is_empty() {
        say(
            "ranks",
            words.ranks,
            &[&ranks(&alert.of_ranks.ranks, words)],
        );
    }
    if let Some(progress) = progress(&alert.progress, words) {
        say("progress", words.progress, &[&progress]);
    }
    if let About::Finding(finding) = &alert.about
        && !finding.evidence.is_empty()
    {
        say("evidence", words.evidence, &[&numbers(finding)]);
    }
    if !alert.stacks.is_empty() {
        say("stacks", words.stacks, &[]);
        for line in &alert.stacks {
            say("stacks", "  {}", &[line]);
        }
    }
    if let Some(advice) = advice(alert, words) {
        say("advice", words.advice, &[advice]);
    }
    if alert.more > 0 {
        say("also", words.also, &[&others(alert, words)]);
    }
    if alert.times > 1 && alert.state == State::Raised {
        say("times", words.times, &[&alert.times.to_string()]);
    }
    say("run", words.run, &[&place(run)]);
    if !run.argv.is_empty() {
        say("command", words.command, &[&run.argv.join(" ")]);
    }
    say("time", words.time, &[&alert.time]);
    lines
}

/// What happened, and why.
fn what(alert: &Alert, words: &Words) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut say = |name, pattern: &str, values: &[&str]| lines.push(line(name, pattern, values));
    match &alert.about {
        About::Started => {}
        About::Test => say("headline", "{}", &[words.test_body]),
        About::Finished(end) => {
            say("headline", "{}", &[&ending(end, words)]);
            say("took", words.took, &[&seconds_text(alert.elapsed_s)]);
            if let Some(cause) = cause(end, words) {
                say("cause", words.cause, &[&cause]);
            }
            if let Some(line) = &end.verdict.line {
                say("line", words.line, &[line]);
            }
        }
        About::Finding(finding) => {
            say("headline", "{}", &[&headline(alert, finding, words)]);
            if let Some(cause) = &finding.cause {
                say("cause", words.cause, &[cause]);
            }
        }
    }
    lines
}

fn line(name: &'static str, pattern: &str, values: &[&str]) -> Line {
    let values: Vec<String> = values.iter().map(|v| part(v)).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    Line {
        name,
        text: fill(pattern, &values),
    }
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

fn advice<'a>(alert: &'a Alert, words: &Words) -> Option<&'a str> {
    match &alert.about {
        About::Finding(finding) if alert.state != State::Cleared => {
            let own = finding.advice.as_deref()?;
            Some(
                words
                    .advise(&finding.name, finding.cause.as_deref())
                    .unwrap_or(own),
            )
        }
        About::Finished(end) => end.verdict.advice.as_deref(),
        _ => None,
    }
}

fn headline(alert: &Alert, finding: &Finding, words: &Words) -> String {
    let age = seconds_text((alert.elapsed_s - finding.since_s).max(0.0));
    match alert.state {
        State::Cleared => fill(words.lasted, &[&words.named(&finding.name), &age]),
        State::Raised | State::Reminded => fill(
            words.holds,
            &[
                words.severity(alert.severity),
                &words.named(&finding.name),
                &age,
            ],
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
    let id = Some(run.id.clone()).filter(|id| !id.is_empty());
    let parts = [id, who, run.job.text(), gpus];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn part(text: &str) -> String {
    cut(&clean(text), Budget::Chars(PART))
}

/// One line in which nothing drives a terminal, ends a line or turns the writing around.
pub fn clean(text: &str) -> String {
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
mod tests {
    use super::super::samples::{failed, run, stalled};
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
            "已恢复：stalled（训练停滞）: train（gpu-01）"
        );
    }

    #[test]
    fn in_chinese_a_finding_has_a_name_and_advice_of_its_own() {
        let mut asleep = stalled();
        if let About::Finding(finding) = &mut asleep.about {
            finding.cause = Some("asleep".into());
        }
        let text = body(&asleep, &run(), Tongue::Chinese);
        assert!(
            text.starts_with("严重：stalled（训练停滞），已持续 "),
            "{text}"
        );
        assert!(text.contains("\n建议：所有进程都睡在"), "{text}");
        // Without words of its own the judge's stand there.
        let text = body(&stalled(), &run(), Tongue::Chinese);
        assert!(text.contains("\n建议：look at the loader\n"), "{text}");
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
