//! A run for GitHub's runner: annotations (workflow commands) and the step's summary.
//!
//! Owns the escaping that a runner needs and the limits that GitHub sets
//! (docs.github.com, "Workflow commands for GitHub Actions": ten annotations of a kind a step,
//! 1 MiB of summary a step). Foreign text never starts a workflow command. Pure.

use std::fmt::Write as _;

use super::summary::{finding_words, readings};
use super::text::{clean, clip, command, exit, progress, standing};
use super::{gates, text};
use crate::model::units::seconds_text;
use crate::model::{RunRecord, Severity};
use crate::record::FindingRecord;

/// GitHub shows ten of a kind a step, and the step may have others.
const OF_A_KIND: usize = 8;

/// An annotation is read in a narrow box.
const ANNOTATION: usize = 600;

/// So many of the last lines are shown, each so long.
const LINES: usize = 40;
const LINE: usize = 400;

/// So much of a command or a name is shown.
const CELL: usize = 600;

/// A text that stands in a line of ours in a runner's log. The runner takes `##[` for the
/// beginning of a command wherever it stands.
pub fn plain(text: &str) -> String {
    text.replace("##[", "## [")
}

/// Workflow commands, each a line: one a gate that fails the run, and one an alarm.
pub fn annotations(record: &RunRecord, findings: &[FindingRecord]) -> Vec<String> {
    let mut list: Vec<(&str, String, String)> = Vec::new();
    for gate in &record.gates {
        let level = match gate.holds {
            Some(true) => "error",
            Some(false) => continue,
            None => "warning",
        };
        let said = gates::words(gate).unwrap_or_default();
        list.push((level, "gpuwatch gate".to_owned(), said));
    }
    for finding in findings {
        let level = match finding.severity {
            Severity::Critical => "error",
            Severity::Warning => "warning",
            Severity::Note => continue,
        };
        let advice = text::around(": ", finding.advice.as_deref(), "");
        let said = finding_words(finding) + &advice;
        list.push((level, format!("gpuwatch: {}", finding.name), said));
    }
    let mut shown = Vec::new();
    for kind in ["error", "warning"] {
        let of_kind = list.iter().filter(|(level, ..)| *level == kind);
        shown.extend(of_kind.take(OF_A_KIND).map(|(level, title, said)| {
            let (title, said) = (property(title), data(&clip(&clean(said), ANNOTATION)));
            format!("::{level} title={title}::{said}")
        }));
    }
    shown
}

/// A value of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property of a workflow command.
fn property(text: &str) -> String {
    data(&clean(text)).replace(':', "%3A").replace(',', "%2C")
}

/// The step's summary, in GitHub's Markdown; `tail` is the end of the output.
pub fn step_summary(record: &RunRecord, findings: &[FindingRecord], tail: &str) -> String {
    let mut page = String::new();
    let word = standing(record.state, record.verdict.outcome);
    let failed = record.gates.iter().any(|gate| gate.holds == Some(true));
    let but = if failed && record.exit.is_success() {
        ", failed by a gate"
    } else {
        ""
    };
    let name = markdown(&clip(&record.name, CELL));
    // Writing to a string can't fail.
    // What stands there already may lack its last newline.
    let _ = writeln!(page, "\n### gpuwatch: {name}: {}{but}\n", markdown(word));
    page.push_str("| | |\n|---|---|\n");
    let mut row = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(page, "| {label} | {} |", markdown(&clip(&value, CELL)));
        }
    };
    row("command", Some(command(&record.argv)));
    row("ended", exit(record.exit));
    row("duration", record.summary.duration_s.map(seconds_text));
    row("cause", record.verdict.cause.clone());
    row("rank", record.verdict.rank.map(|rank| rank.to_string()));
    row("line", record.verdict.line.clone());
    row("advice", record.verdict.advice.clone());
    row("progress", progress(&record.summary));
    row(
        "GPUs",
        readings(&record.summary).filter(|_| !record.gpus.is_empty()),
    );
    for gate in &record.gates {
        let passed = || format!("gate passed: {}", gate.when);
        row("gate", Some(gates::words(gate).unwrap_or_else(passed)));
    }
    for finding in findings {
        let advice = text::around(": ", finding.advice.as_deref(), "");
        row("finding", Some(finding_words(finding) + &advice));
    }
    if !tail.is_empty() {
        let _ = write!(
            page,
            "\n<details><summary>last lines</summary>\n\n{}\n</details>\n",
            block(tail)
        );
    }
    page.push('\n');
    page
}

/// Text that Markdown and HTML take for nothing but text, on one line.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        if c.is_ascii_punctuation() {
            let _ = write!(out, "&#{};", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// The last lines in a fence that nothing in them can close.
fn block(tail: &str) -> String {
    let lines: Vec<String> = tail
        .lines()
        .map(|line| {
            clip(
                &clean(line.rsplit('\r').find(|l| !l.is_empty()).unwrap_or("")),
                LINE,
            )
        })
        .collect();
    let lines = &lines[lines.len().saturating_sub(LINES)..];
    let runs = lines.iter().flat_map(|line| line.split(|c| c != '`'));
    let longest = runs.map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{FindingState, GateVerdict};

    fn finding(name: &str, severity: Severity, advice: &str) -> FindingRecord {
        FindingRecord {
            name: name.to_owned(),
            cause: None,
            severity,
            state: FindingState::Raised,
            because: None,
            since_s: 3.0,
            evidence: serde_json::Map::new(),
            advice: Some(advice.to_owned()),
            raised_s: 3.0,
            cleared_s: None,
        }
    }

    #[test]
    fn alarms_and_gates_are_annotations_and_notes_are_not() {
        let record = RunRecord {
            gates: vec![GateVerdict {
                when: "duration < 5s".to_owned(),
                holds: Some(true),
                found: [("duration".to_owned(), Some(2.0))].into(),
            }],
            ..RunRecord::default()
        };
        let findings = [
            finding("low-use", Severity::Note, "x"),
            finding("a:b,c", Severity::Warning, "100 %\n::error::x"),
        ];
        assert_eq!(
            annotations(&record, &findings),
            [
                "::error title=gpuwatch gate::gate failed: duration < 5s (duration was 2.0 s)",
                "::warning title=gpuwatch%3A a%3Ab%2Cc::a:b,c from 3.0 s, not cleared: 100 %25?::error::x",
            ]
        );
        let many = vec![finding("oom", Severity::Critical, "x"); 100];
        assert_eq!(annotations(&RunRecord::default(), &many).len(), OF_A_KIND);
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        let page = block("a\n````\nb</details>\n");
        assert_eq!(page, "`````text\na\n````\nb</details>\n`````\n");
        assert!(block(&"x\n".repeat(1000)).lines().count() == LINES + 2);
    }

    proptest! {
        /// Each annotation is one line, whatever is in it.
        #[test]
        fn nothing_foreign_begins_a_line(name in "\\PC*", advice in ".*", text in ".*") {
            let record = RunRecord { name: name.clone(), argv: vec![text.clone()], ..RunRecord::default() };
            let findings = [finding(&name, Severity::Critical, &advice)];
            for line in annotations(&record, &findings) {
                prop_assert!(line.starts_with("::error title=") && !line.contains(['\n', '\r']));
                prop_assert_eq!(line.matches("::").count() >= 2, true);
            }
            let page = step_summary(&record, &findings, "");
            for line in page.lines().skip(2).filter(|l| !l.is_empty()) {
                prop_assert!(line.starts_with('|'), "{}", line);
                prop_assert!(!line.contains(['<', '`', '*', '[']), "{}", line);
                prop_assert_eq!(line.matches('|').count(), 3, "{}", line);
            }
        }

        /// Whatever stands in the block stays in it.
        #[test]
        fn no_line_closes_the_block(tail in "[`~\n a<>/]*") {
            let page = block(&tail);
            let fence = page.lines().next().unwrap().trim_end_matches("text").to_owned();
            let closing = page.lines().filter(|l| l.trim().len() >= fence.len() && l.trim().chars().all(|c| c == '`'));
            prop_assert_eq!(closing.count(), 1);
        }
    }
}
