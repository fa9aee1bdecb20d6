//! Runs in progress for a person: what `gpuwatch ps` prints.
//!
//! Owns the table's columns. Pure. Missing readings are dashes.

use unicode_width::UnicodeWidthStr;

use super::text::{clean, clip, pad, short};
use crate::model::units::{mib_text, seconds_text};
use crate::record::now::RunNow;

const HEADER: [&str; 10] = [
    "RUN", "USER", "GPUS", "ELAPSED", "PROGRESS", "ETA", "USE", "MEMORY", "OUTPUT", "FINDINGS",
];
/// The most columns of the screen that a cell takes.
const WIDEST: usize = 48;

/// A header and one line a run.
pub fn table(runs: &[RunNow]) -> String {
    let header = HEADER.map(str::to_owned);
    let rows: Vec<_> = std::iter::once(header)
        .chain(runs.iter().map(row))
        .collect();
    let widths: [usize; HEADER.len()] =
        std::array::from_fn(|i| rows.iter().map(|row| row[i].width()).max().unwrap_or(0));
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| pad(cell, width));
        out += cells.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out
}

fn row(run: &RunNow) -> [String; HEADER.len()] {
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let percent = |x: f64| format!("{} %", short(x));
    let names: Vec<&str> = run.findings.iter().map(|f| f.name.as_str()).collect();
    let joined = |list: &[&str]| (!list.is_empty()).then(|| list.join(","));
    let gpus: Vec<&str> = run.gpus.iter().map(String::as_str).collect();
    let cells = [
        run.id.clone(),
        known(run.user.clone()),
        known(joined(&gpus)),
        known(run.elapsed_s.map(seconds_text)),
        known(progress(run)),
        known(run.eta_s.map(seconds_text)),
        known(run.job_sm_pct.or(run.gpu_util_pct).map(percent)),
        known(run.job_mem_mib.map(mib_text)),
        known(
            run.output_age_s
                .map(|age| format!("{} ago", seconds_text(age))),
        ),
        known(joined(&names)),
    ];
    cells.map(|cell| clip(&clean(&cell), WIDEST))
}

/// `epoch 3/10, step 120/400, 34 %`
pub(super) fn progress(run: &RunNow) -> Option<String> {
    let summary = crate::model::Summary {
        epoch: run.epoch,
        epochs: run.epochs,
        step: run.step,
        steps: run.steps,
        overall_pct: run.overall_pct,
        ..crate::model::Summary::default()
    };
    super::text::progress(&summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_a_dash_and_foreign_text_drives_no_terminal() {
        let known = RunNow {
            id: "20261130-091502-train-7f3a".into(),
            user: Some("ann\x1b[2J".into()),
            gpus: vec!["0".into(), "3".into()],
            elapsed_s: Some(31.4),
            epoch: Some(2.0),
            epochs: Some(3.0),
            overall_pct: Some(61.25),
            eta_s: Some(20.0),
            gpu_util_pct: Some(0.0),
            job_mem_mib: Some(6144.0),
            output_age_s: Some(0.5),
            ..RunNow::default()
        };
        let bare = RunNow {
            id: "x".into(),
            ..RunNow::default()
        };
        assert_eq!(
            table(&[known, bare]),
            "RUN                         USER     GPUS  ELAPSED  PROGRESS           ETA     USE  MEMORY   OUTPUT     FINDINGS
20261130-091502-train-7f3a  ann?[2J  0,3   31.4 s   epoch 2/3, 61.3 %  20.0 s  0 %  6.0 GiB  0.5 s ago  -
x                           -        -     -        -                  -       -    -        -          -
"
        );
    }
}
