//! How many runs have what in common: `gpuwatch runs --count-by`.
//!
//! Owns keys, counts and the table. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use super::table::lined_up;
use super::text::{command, standing};
use crate::record::IndexEntry;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountBy {
    /// The command, with its arguments.
    Command,
    /// Whose it was.
    User,
    /// The git work tree's root, else the working directory.
    Project,
    /// How it ended, or its state while it runs.
    Outcome,
    /// The verdict's cause.
    Cause,
    /// Each finding that was raised; a run with two is counted with both.
    Finding,
}

/// So many runs have this in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// What; null where they have none, or it wasn't recorded.
    pub key: Option<String>,
    /// How many.
    pub runs: usize,
    /// The newest of them.
    pub last: String,
}

/// The counts, the most first. `runs` are newest first.
pub fn count(runs: &[IndexEntry], by: CountBy) -> Vec<Count> {
    let mut counts: BTreeMap<Option<String>, Count> = BTreeMap::new();
    for run in runs {
        for key in keys(run, by) {
            let new = || Count {
                key: key.clone(),
                runs: 0,
                last: run.id.clone(),
            };
            counts.entry(key.clone()).or_insert_with(new).runs += 1;
        }
    }
    let mut counts: Vec<Count> = counts.into_values().collect();
    // Stable: equals stay in the order of their names.
    counts.sort_by_key(|count| std::cmp::Reverse(count.runs));
    counts
}

fn keys(run: &IndexEntry, by: CountBy) -> Vec<Option<String>> {
    let one = match by {
        CountBy::Command => (!run.argv.is_empty()).then(|| command(&run.argv)),
        CountBy::User => run.user.clone(),
        CountBy::Project => run.project.clone(),
        CountBy::Outcome => Some(standing(run.state, run.outcome).to_owned()),
        CountBy::Cause => run.cause.clone(),
        CountBy::Finding if run.findings.is_empty() => None,
        CountBy::Finding => return run.findings.iter().cloned().map(Some).collect(),
    };
    vec![one]
}

/// For a person.
pub fn counts_table(counts: &[Count], by: CountBy) -> String {
    let what = match by {
        CountBy::Command => "COMMAND",
        CountBy::User => "USER",
        CountBy::Project => "PROJECT",
        CountBy::Outcome => "OUTCOME",
        CountBy::Cause => "CAUSE",
        CountBy::Finding => "FINDING",
    };
    let mut rows = vec![["RUNS", what, "LAST"].map(str::to_owned)];
    rows.extend(counts.iter().map(|count| {
        let key = count.key.clone().unwrap_or_else(|| "-".to_owned());
        [count.runs.to_string(), key, count.last.clone()]
    }));
    lined_up(rows, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_counted_with_each_of_its_findings() {
        let text = include_str!("../../tests/example-run/runs.json");
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        let one: IndexEntry = serde_json::from_value(document["runs"][0].clone()).unwrap();
        let of = |id: &str, findings: &[&str]| IndexEntry {
            id: id.into(),
            findings: findings.iter().map(|&name| name.to_owned()).collect(),
            ..one.clone()
        };
        let runs = [
            of("c", &["oom", "stalled"]),
            of("b", &["oom"]),
            of("a", &[]),
        ];
        assert_eq!(
            counts_table(&count(&runs, CountBy::Finding), CountBy::Finding),
            "RUNS  FINDING  LAST\n2     oom      c\n1     -        a\n1     stalled  c\n"
        );
        assert_eq!(
            counts_table(&count(&runs, CountBy::Outcome), CountBy::Outcome),
            "RUNS  OUTCOME  LAST\n3     ok       c\n"
        );
    }
}
