//! Many runs for a person: what `gpuwatch runs` prints.
//!
//! Owns the table's columns. Pure.

use super::text::{clean, clip, exit, pad, short, standing, when};
use crate::model::units::seconds_text;
use crate::model::{Outcome, Summary};
use crate::record::IndexEntry;

const HEADER: [&str; 7] = [
    "RUN", "NAME", "STARTED", "DURATION", "OUTCOME", "PROGRESS", "GPU USE",
];
/// The most columns of the screen that a cell takes.
const WIDEST: usize = 60;

/// The table of runs, in the order given; a header and one line a run.
pub fn table(runs: &[IndexEntry]) -> String {
    let header = HEADER.map(str::to_owned);
    let rows: Vec<[String; 7]> = std::iter::once(header)
        .chain(runs.iter().map(row))
        .collect();
    let widths: [usize; 7] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| &row[column]);
        cells
            .map(|cell| unicode_width::UnicodeWidthStr::width(cell.as_str()))
            .max()
            .unwrap_or(0)
    });
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, w)| pad(cell, w))
            .collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

fn row(run: &IndexEntry) -> [String; 7] {
    let unknown = || "-".to_owned();
    let started = when(&run.started);
    let cells = [
        run.id.clone(),
        run.name.clone(),
        // The offset is in the record; here it would only be noise.
        started.get(..19).unwrap_or(&started).to_owned(),
        run.summary.duration_s.map_or_else(unknown, seconds_text),
        outcome(run),
        reached(&run.summary).unwrap_or_else(unknown),
        run.summary
            .gpu_util_pct_mean
            .map_or_else(unknown, |pct| format!("{} %", short(pct))),
    ];
    cells.map(|cell| clip(&clean(&cell), WIDEST))
}

fn outcome(run: &IndexEntry) -> String {
    let word = standing(run.state, run.outcome);
    let why = run.cause.clone().or_else(|| exit(run.exit));
    match why.filter(|_| run.outcome != Some(Outcome::Ok)) {
        Some(why) => format!("{word}: {why}"),
        None => word.to_owned(),
    }
}

/// The one number that says how far it came.
fn reached(summary: &Summary) -> Option<String> {
    let of = |n: String, total: Option<String>| match total {
        Some(total) => format!("{n}/{total}"),
        None => n,
    };
    let percent = summary.overall_pct.map(|pct| format!("{} %", short(pct)));
    let epoch = summary.epoch.map(|n| {
        let total = summary.epochs.map(|total| total.to_string());
        format!("epoch {}", of(n.to_string(), total))
    });
    let step = summary.step.map(|n| {
        let total = summary.steps.map(|total| total.to_string());
        format!("step {}", of(n.to_string(), total))
    });
    percent.or(epoch).or(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Exit, RunRecord, RunState, Verdict};

    #[test]
    fn runs_line_up() {
        let text = include_str!("../../tests/example-run/runs.json");
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut runs: Vec<IndexEntry> = serde_json::from_value(document["runs"].clone()).unwrap();
        let record = RunRecord {
            id: "20261130-091600-训练-0001".into(),
            name: "训练\x1b[2J".into(),
            started: "2026-11-30T09:16:00.000+08:00".into(),
            state: RunState::Finished,
            exit: Exit {
                code: None,
                signal: Some(9),
            },
            verdict: Verdict {
                outcome: Some(Outcome::Killed),
                ..Verdict::default()
            },
            summary: Summary {
                step: Some(7),
                ..Summary::default()
            },
            ..RunRecord::default()
        };
        runs.push(IndexEntry::new(
            &record,
            Vec::new(),
            std::path::Path::new("/x"),
        ));
        assert_eq!(
            table(&runs),
            "RUN                         NAME      STARTED              DURATION  OUTCOME          PROGRESS  GPU USE
20261130-091502-train-7f3a  train     2026-11-30 09:15:02  31.4 s    ok               100 %     48.2 %
20261130-091600-训练-0001   训练?[2J  2026-11-30 09:16:00  -         killed: SIGKILL  step 7    -
"
        );
    }
}
