//! What judging records again gives: a finding in a sentence, how two judgements of a run differ,
//! and what was found in many.
//!
//! Owns which findings of two judgements are the same one, the counts, and their words. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::table::lined_up;
use super::text::clean;
use crate::model::units::seconds_text;
use crate::model::{FindingState, Severity};
use crate::record::FindingRecord;

/// Which of two judgements has a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Sign {
    /// The first alone.
    #[serde(rename = "-")]
    Before,
    /// The second alone.
    #[serde(rename = "+")]
    After,
    /// Both, but not alike.
    #[serde(rename = "~")]
    Changed,
}

impl Sign {
    fn text(self) -> &'static str {
        match self {
            Self::Before => "-",
            Self::After => "+",
            Self::Changed => "~",
        }
    }
}

/// A finding that two judgements of a run don't share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference<'a> {
    /// Which of them has it.
    pub change: Sign,
    /// Its name.
    pub name: &'a str,
    /// As the first one has it.
    pub before: Option<&'a FindingRecord>,
    /// As the second one has it.
    pub after: Option<&'a FindingRecord>,
}

/// A finding of the one, of the other, or the same of both.
type Pair<'a> = (Option<&'a FindingRecord>, Option<&'a FindingRecord>);

/// Findings of one name are the same where the times overlap in which their conditions held,
/// whenever they were raised.
fn pairs<'a>(before: &'a [FindingRecord], after: &'a [FindingRecord]) -> Vec<Pair<'a>> {
    let names: BTreeSet<&str> = before
        .iter()
        .chain(after)
        .map(|f| f.name.as_str())
        .collect();
    let mut pairs = Vec::new();
    for name in names {
        let of = |list: &'a [FindingRecord]| list.iter().filter(move |f| f.name == name);
        let (mut left, mut right) = (of(before).peekable(), of(after).peekable());
        loop {
            let pair = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(a), Some(b)) if ended(a) < began(b) => (left.next(), None),
                (Some(a), Some(b)) if ended(b) < began(a) => (None, right.next()),
                _ => (left.next(), right.next()),
            };
            pairs.push(pair);
        }
    }
    pairs
}

fn began(finding: &FindingRecord) -> f64 {
    finding.since_s.min(finding.raised_s)
}

fn ended(finding: &FindingRecord) -> f64 {
    finding.cleared_s.unwrap_or(f64::INFINITY)
}

/// What of two judgements of a run isn't alike, in the order of time. Numbers of the evidence
/// aren't compared.
pub fn differences<'a>(
    before: &'a [FindingRecord],
    after: &'a [FindingRecord],
) -> Vec<Difference<'a>> {
    let differs = |(before, after): Pair<'a>| {
        let change = match (before, after) {
            (Some(a), Some(b)) if changes(a, b).is_empty() => return None,
            (Some(_), Some(_)) => Sign::Changed,
            (Some(_), None) => Sign::Before,
            (None, _) => Sign::After,
        };
        Some(Difference {
            change,
            name: &before.or(after)?.name,
            before,
            after,
        })
    };
    let mut all: Vec<_> = pairs(before, after)
        .into_iter()
        .filter_map(differs)
        .collect();
    let raised = |d: &Difference<'_>| {
        let both = [d.before, d.after].into_iter().flatten();
        both.map(|f| f.raised_s).fold(f64::INFINITY, f64::min)
    };
    all.sort_by(|a, b| raised(a).total_cmp(&raised(b)));
    all
}

/// What is not alike of a finding, each as `raised at 1m 00s -> 2m 00s`.
fn changes(before: &FindingRecord, after: &FindingRecord) -> Vec<String> {
    let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let cleared = |s: Option<f64>| s.map_or_else(|| "never".to_owned(), at);
    let parts = [
        ("raised", at(before.raised_s), at(after.raised_s)),
        (
            "cleared",
            cleared(before.cleared_s),
            cleared(after.cleared_s),
        ),
        ("cause", word(&before.cause), word(&after.cause)),
        (
            "severity",
            severity(before.severity).to_owned(),
            severity(after.severity).to_owned(),
        ),
        ("because", word(&before.because), word(&after.because)),
    ];
    let changed = parts
        .into_iter()
        .filter(|(_, before, after)| before != after);
    changed
        .map(|(what, before, after)| format!("{what} {before} -> {after}"))
        .collect()
}

fn at(elapsed_s: f64) -> String {
    format!("at {}", seconds_text(elapsed_s))
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

/// `stalled (spin), critical, because oom`.
fn about(finding: &FindingRecord) -> String {
    let mut said = finding.name.clone();
    if let Some(cause) = &finding.cause {
        // Writing into memory can't fail.
        let _ = write!(said, " ({cause})");
    }
    let _ = write!(said, ", {}", severity(finding.severity));
    if let Some(because) = &finding.because {
        let _ = write!(said, ", because {because}");
    }
    said
}

/// One change of a finding at one moment of a run:
/// `train-7f3a  12m 05s  raised  stalled (spin), critical, since 11m 00s: step 50`.
pub fn moment(run: &str, elapsed_s: f64, finding: &FindingRecord) -> String {
    let state = match finding.state {
        FindingState::Raised => "raised",
        FindingState::Updated => "updated",
        FindingState::Cleared => "cleared",
    };
    let mut said = format!(
        "{run}  {}  {state}  {}, since {}",
        seconds_text(elapsed_s),
        about(finding),
        seconds_text(finding.since_s),
    );
    for (i, (name, value)) in finding.evidence.iter().enumerate() {
        let _ = write!(said, "{}{name} {value}", if i == 0 { ": " } else { ", " });
    }
    clean(&said)
}

/// A difference: `train-7f3a  ~  stalled (spin), critical: raised at 2m 05s -> at 5m 00s`.
pub fn difference(run: &str, difference: &Difference<'_>) -> String {
    let one = |finding: &FindingRecord| {
        let cleared = finding.cleared_s.map(|s| format!(", cleared {}", at(s)));
        format!(
            "{}: raised {}, since {}{}",
            about(finding),
            at(finding.raised_s),
            seconds_text(finding.since_s),
            cleared.unwrap_or_default()
        )
    };
    let said = match (difference.before, difference.after) {
        (Some(before), Some(after)) => {
            format!("{}: {}", about(before), changes(before, after).join(", "))
        }
        (before, after) => before.or(after).map(one).unwrap_or_default(),
    };
    clean(&format!("{run}  {}  {said}", difference.change.text()))
}

/// What was found in many runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    runs: usize,
    quiet: usize,
    /// By profile.
    judged: BTreeMap<String, usize>,
    found: BTreeMap<String, Found>,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    severity: Severity,
    runs: usize,
    times: usize,
}

impl Tally {
    /// One more run, judged by this profile.
    pub fn add(&mut self, profile: &str, findings: &[FindingRecord]) {
        self.runs += 1;
        self.quiet += usize::from(findings.is_empty());
        *self.judged.entry(profile.to_owned()).or_default() += 1;
        let mut names = BTreeSet::new();
        for finding in findings {
            let found = self.found.entry(finding.name.clone()).or_insert(Found {
                severity: finding.severity,
                runs: 0,
                times: 0,
            });
            found.severity = found.severity.max(finding.severity);
            found.times += 1;
            found.runs += usize::from(names.insert(&finding.name));
        }
    }

    /// How many runs were counted.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// For a person: each finding, in how many runs, and how often.
    pub fn text(&self) -> String {
        let mut rows = vec![["FINDING", "SEVERITY", "RUNS", "TIMES"].map(str::to_owned)];
        let mut found: Vec<_> = self.found.iter().collect();
        found.sort_by_key(|(_, found)| std::cmp::Reverse((found.runs, found.times)));
        rows.extend(found.into_iter().map(|(name, found)| {
            let (runs, times) = (found.runs.to_string(), found.times.to_string());
            [
                name.clone(),
                severity(found.severity).to_owned(),
                runs,
                times,
            ]
        }));
        if self.quiet > 0 {
            let none = ["nothing", "-", &self.quiet.to_string(), "-"];
            rows.push(none.map(str::to_owned));
        }
        let by = self.judged.iter();
        let by: Vec<String> = by.map(|(name, runs)| format!("{name} ({runs})")).collect();
        format!(
            "{} judged by the settings of {}\n{}",
            runs(self.runs),
            clean(&by.join(", ")),
            lined_up(rows, 2)
        )
    }
}

fn runs(n: usize) -> String {
    format!("{n} run{}", if n == 1 { "" } else { "s" })
}

/// How two judgements of many runs differ.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    runs: usize,
    differ: usize,
    /// In how many runs each finding is missing, new, changed and the same.
    found: BTreeMap<String, [usize; 4]>,
}

impl Changes {
    /// One more run.
    pub fn add(&mut self, before: &[FindingRecord], after: &[FindingRecord]) {
        self.runs += 1;
        let mut seen = BTreeSet::new();
        for (before, after) in pairs(before, after) {
            let column = match (before, after) {
                (Some(_), None) => 0,
                (None, _) => 1,
                (Some(a), Some(b)) if !changes(a, b).is_empty() => 2,
                _ => 3,
            };
            if let Some(finding) = before.or(after) {
                seen.insert((finding.name.clone(), column));
            }
        }
        self.differ += usize::from(seen.iter().any(|(_, column)| *column < 3));
        for (name, column) in seen {
            self.found.entry(name).or_default()[column] += 1;
        }
    }

    /// For a person: in how many runs each finding is only before (-), only after (+), changed (~)
    /// and the same.
    pub fn text(&self) -> String {
        let head = match self.differ {
            0 => format!("{}, no difference\n", runs(self.runs)),
            n => format!("{}, {n} of them with differences\n", runs(self.runs)),
        };
        if self.runs < 2 || self.found.is_empty() {
            return head;
        }
        let mut rows = vec![["FINDING", "-", "+", "~", "SAME"].map(str::to_owned)];
        let mut found: Vec<_> = self.found.iter().collect();
        found.sort_by_key(|(_, n)| std::cmp::Reverse(n[0] + n[1] + n[2]));
        rows.extend(found.into_iter().map(|(name, n)| {
            let [before, after, changed, same] = n.map(|n| n.to_string());
            [name.clone(), before, after, changed, same]
        }));
        head + &lined_up(rows, 1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn finding(name: &str, since_s: f64, raised_s: f64, cleared_s: Option<f64>) -> FindingRecord {
        let mut evidence = Map::new();
        evidence.insert("step".to_owned(), json!(50));
        FindingRecord {
            name: name.to_owned(),
            cause: None,
            severity: Severity::Warning,
            state: cleared_s.map_or(FindingState::Raised, |_| FindingState::Cleared),
            because: None,
            since_s,
            evidence,
            advice: None,
            raised_s,
            cleared_s,
        }
    }

    fn said(before: &[FindingRecord], after: &[FindingRecord]) -> Vec<String> {
        let all = differences(before, after);
        all.iter().map(|d| difference("r", d)).collect()
    }

    #[test]
    fn a_judgement_does_not_differ_from_itself() {
        let all = [
            finding("stalled", 10.0, 70.0, Some(90.0)),
            finding("oom", 30.0, 30.0, None),
            finding("stalled", 200.0, 260.0, None),
        ];
        assert_eq!(said(&all, &all), [] as [&str; 0]);
        assert_eq!(said(&[], &[]), [] as [&str; 0]);
    }

    #[test]
    fn each_finding_has_its_sign() {
        let before = [
            finding("stalled", 10.0, 70.0, Some(90.0)),
            finding("low-use", 20.0, 500.0, None),
            finding("stalled", 200.0, 260.0, None),
        ];
        let mut spins = finding("stalled", 200.0, 230.0, None);
        spins.cause = Some("spin".to_owned());
        spins.severity = Severity::Critical;
        let after = [spins, finding("nan", 300.0, 301.0, Some(302.0))];
        assert_eq!(
            said(&before, &after),
            [
                "r  -  stalled, warning: raised at 1m 10s, since 10.0 s, cleared at 1m 30s",
                "r  ~  stalled, warning: raised at 4m 20s -> at 3m 50s, cause none -> spin, \
                 severity warning -> critical",
                "r  +  nan, warning: raised at 5m 01s, since 5m 00s, cleared at 5m 02s",
                "r  -  low-use, warning: raised at 8m 20s, since 20.0 s",
            ]
        );
        let line = serde_json::to_value(differences(&before, &after)[1]).unwrap();
        assert_eq!(
            (&line["change"], &line["name"], &line["after"]["raised_s"]),
            (&json!("~"), &json!("stalled"), &json!(230.0))
        );
    }

    #[test]
    fn a_finding_is_the_same_by_the_time_in_which_it_held() {
        // Raised later than the other was cleared, but of one condition.
        let early = [finding("r", 10.0, 20.0, Some(40.0))];
        let late = [finding("r", 10.0, 60.0, Some(90.0))];
        assert_eq!(
            said(&early, &late),
            ["r  ~  r, warning: raised at 20.0 s -> at 1m 00s, cleared at 40.0 s -> at 1m 30s"]
        );
        // One that held on, and two with a pause.
        let long = [finding("r", 10.0, 20.0, None)];
        let short = [
            finding("r", 10.0, 20.0, Some(30.0)),
            finding("r", 50.0, 60.0, None),
        ];
        let signs = |a: &[FindingRecord], b: &[FindingRecord]| -> Vec<Sign> {
            differences(a, b).iter().map(|d| d.change).collect()
        };
        assert_eq!(signs(&long, &short), [Sign::Changed, Sign::After]);
        assert_eq!(signs(&short, &long), [Sign::Changed, Sign::Before]);
    }

    #[test]
    fn many_runs_are_counted() {
        let stall = [finding("stalled", 10.0, 70.0, Some(90.0))];
        let two = [
            finding("stalled", 10.0, 70.0, Some(90.0)),
            finding("stalled", 200.0, 260.0, None),
            finding("low-use", 20.0, 500.0, None),
        ];
        let mut tally = Tally::default();
        tally.add("default", &stall);
        tally.add("ci", &two);
        tally.add("default", &[]);
        assert_eq!(
            tally.text(),
            "3 runs judged by the settings of ci (1), default (2)\n\
             FINDING  SEVERITY  RUNS  TIMES\n\
             stalled  warning      2      3\n\
             low-use  warning      1      1\n\
             nothing  -            1      -\n"
        );
        let mut changes = Changes::default();
        changes.add(&stall, &stall);
        assert_eq!(changes.text(), "1 run, no difference\n");
        changes.add(&stall, &two);
        changes.add(&two, &[]);
        assert_eq!(
            changes.text(),
            "3 runs, 2 of them with differences\n\
             FINDING  -  +  ~  SAME\n\
             low-use  1  1  0     0\n\
             stalled  1  1  0     2\n"
        );
    }

    #[test]
    fn a_moment_is_a_sentence() {
        let mut odd = finding("stalled", 660.0, 725.0, None);
        odd.cause = Some("spin\x1b".to_owned());
        odd.because = Some("oom".to_owned());
        assert_eq!(
            moment("train", 725.0, &odd),
            "train  12m 05s  raised  stalled (spin?), warning, because oom, since 11m 00s: step 50"
        );
    }
}
