//! Runs in progress as a screenful: what `gpuwatch top` draws.
//!
//! Owns the layout, and what gives way where the screen is small: that something doesn't fit is
//! said. Pure. Missing readings are dashes. Our own marks are ASCII, whatever the locale.

use unicode_width::UnicodeWidthStr;

use super::text::{clean, clip, short};
use crate::model::Severity;
use crate::model::units::{mib_text, seconds_text};
use crate::record::FindingRecord;
use crate::record::now::RunNow;

/// Between the parts of a line.
const GAP: &str = "  ";
/// Columns of the bar of progress at most, and of the bars of use and memory.
const WIDE_BAR: usize = 30;
const SMALL_BAR: usize = 8;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A reading, or a note.
    Plain,
    /// The head of the screen, or of a run.
    Head,
    /// A warning.
    Warning,
    /// What can't wait.
    Critical,
}

/// One line of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Clean, and no wider than the screen.
    pub text: String,
    /// How much it matters.
    pub tone: Tone,
}

/// The screen, no more than `height` lines of no more than `width` columns. `problems` are what
/// couldn't be read.
pub fn screen(runs: &[RunNow], problems: &[String], width: usize, height: usize) -> Vec<Line> {
    let head = match runs.len() {
        0 => "gpuwatch: no run is in progress here".to_owned(),
        1 => "gpuwatch: 1 run in progress".to_owned(),
        n => format!("gpuwatch: {n} runs in progress"),
    };
    let mut lines = flow(&[head, "q: quit".to_owned()], width, Tone::Head);
    lines.truncate(1);
    if let Some(first) = problems.first() {
        let others = match problems.len() - 1 {
            0 => String::new(),
            n => format!(" ({n} more)"),
        };
        lines.push(line(&format!("! {first}{others}"), width, Tone::Warning));
    }
    for (at, run) in runs.iter().enumerate() {
        let block = block(run, width);
        let later = runs.len() - at - 1;
        let room = height.saturating_sub(lines.len());
        // The last line says what is left out, and needs a place where something is.
        if 1 + block.len() + usize::from(later > 0) <= room {
            lines.push(line("", width, Tone::Plain));
            lines.extend(block);
            continue;
        }
        let mut missing = later + 1;
        let mut cut = 0;
        if at == 0 && room > 1 {
            let shown = block.len().min(room - 1);
            cut = block.len() - shown;
            lines.extend(block.into_iter().take(shown));
            missing = later;
        }
        lines.push(line(&left_out(cut, missing), width, Tone::Plain));
        break;
    }
    lines.truncate(height);
    lines
}

fn left_out(lines: usize, runs: usize) -> String {
    let some = |n: usize, what: &str| match n {
        0 => None,
        1 => Some(format!("1 more {what}")),
        n => Some(format!("{n} more {what}s")),
    };
    let parts = [some(lines, "line"), some(runs, "run")];
    let said = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    format!("... {said}")
}

/// One run: its head, its progress, its readings, and the findings that hold.
fn block(run: &RunNow, width: usize) -> Vec<Line> {
    let dash = || "-".to_owned();
    let gpus = match run.gpus.as_slice() {
        [] => "GPU -".to_owned(),
        gpus => format!("GPU {}", gpus.join(",")),
    };
    let head = [
        run.name.clone(),
        run.user.clone().unwrap_or_else(dash),
        gpus,
        run.elapsed_s.map_or_else(dash, seconds_text),
        run.id.clone(),
    ];
    let mut lines = flow(&head, width, Tone::Head);

    let done = run.overall_pct.map(|pct| pct / 100.0);
    let eta = run.eta_s.map_or_else(dash, seconds_text);
    let progress = [
        bar(done, WIDE_BAR.min(width / 3)),
        super::ps::progress(run).unwrap_or_else(dash),
        format!("ETA {eta}"),
    ];
    lines.extend(flow(&progress, width, Tone::Plain));

    let used = run.job_sm_pct.or(run.gpu_util_pct);
    let percent = used.map_or_else(dash, |pct| format!("{} %", short(pct)));
    let part = run.job_mem_mib.zip(run.gpu_mem_mib).map(|(n, of)| n / of);
    let memory = match (run.job_mem_mib, run.gpu_mem_mib) {
        (Some(n), Some(of)) => format!("{} of {}", mib_text(n), mib_text(of)),
        (n, _) => n.map_or_else(dash, mib_text),
    };
    let age = run.output_age_s.map(seconds_text);
    let small = SMALL_BAR.min(width / 8);
    let readings = [
        format!("use {} {percent}", bar(used.map(|x| x / 100.0), small)),
        format!("memory {} {memory}", bar(part, small)),
        age.map_or_else(|| "output -".into(), |age| format!("output {age} ago")),
    ];
    lines.extend(flow(&readings, width, Tone::Plain));
    lines.extend(run.findings.iter().map(|finding| said(finding, width)));
    lines
}

fn said(finding: &FindingRecord, width: usize) -> Line {
    let (mark, tone) = match finding.severity {
        Severity::Note => ("-", Tone::Plain),
        Severity::Warning => ("!", Tone::Warning),
        Severity::Critical => ("!!", Tone::Critical),
    };
    let advice = super::text::around(": ", finding.advice.as_deref(), "");
    line(&format!("{mark} {}{advice}", finding.name), width, tone)
}

/// `[######....]`, or dashes where nothing is known, which isn't 0.
fn bar(part: Option<f64>, columns: usize) -> String {
    let Some(part) = part.filter(|part| part.is_finite()) else {
        return format!("[{}]", "-".repeat(columns));
    };
    // Full only where it is: no rounding up.
    let full = (part.clamp(0.0, 1.0) * columns as f64).floor() as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(columns - full))
}

/// The parts one after the other, on as many lines as they need.
fn flow(parts: &[String], width: usize, tone: Tone) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for part in parts {
        let part = line(part, width, tone);
        match lines.last_mut() {
            Some(last) if last.text.width() + GAP.len() + part.text.width() <= width => {
                last.text += GAP;
                last.text += &part.text;
            }
            // What goes on is set in, if there is room.
            Some(_) if GAP.len() + part.text.width() <= width => lines.push(Line {
                text: format!("{GAP}{}", part.text),
                tone,
            }),
            _ => lines.push(part),
        }
    }
    lines
}

fn line(text: &str, width: usize, tone: Tone) -> Line {
    // Marks that take no column could go on for ever.
    let some: String = text.chars().take(4 * width).collect();
    let mut text = clip(&clean(&some), width);
    while text.width() > width {
        text.pop();
    }
    Line { text, tone }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;
    use crate::model::FindingState;

    fn known() -> RunNow {
        RunNow {
            id: "20261130-091502-train-7f3a".into(),
            name: "train".into(),
            user: Some("ann".into()),
            gpus: vec!["0".into(), "3".into()],
            elapsed_s: Some(725.0),
            epoch: Some(1.0),
            epochs: Some(4.0),
            overall_pct: Some(20.0),
            eta_s: Some(2900.0),
            gpu_util_pct: Some(0.0),
            job_mem_mib: Some(6144.0),
            gpu_mem_mib: Some(24576.0),
            output_age_s: Some(0.5),
            findings: vec![finding("idle", Some("look at the loader"))],
            ..RunNow::default()
        }
    }

    fn finding(name: &str, advice: Option<&str>) -> FindingRecord {
        FindingRecord {
            name: name.into(),
            cause: None,
            severity: Severity::Warning,
            state: FindingState::Raised,
            because: None,
            since_s: 1.0,
            evidence: Map::new(),
            advice: advice.map(str::to_owned),
            raised_s: 2.0,
            cleared_s: None,
        }
    }

    fn text(runs: &[RunNow], width: usize, height: usize) -> String {
        let lines = screen(runs, &[], width, height);
        let texts: Vec<String> = lines.into_iter().map(|line| line.text).collect();
        texts.join("\n")
    }

    #[test]
    fn a_run_at_80_columns_and_at_40() {
        assert_eq!(
            text(&[known()], 80, 24),
            "\
gpuwatch: 1 run in progress  q: quit

train  ann  GPU 0,3  12m 05s  20261130-091502-train-7f3a
[#####.....................]  epoch 1/4, 20 %  ETA 48m 20s
use [........] 0 %  memory [##......] 6.0 GiB of 24.0 GiB  output 0.5 s ago
! idle: look at the loader"
        );
        assert_eq!(
            text(&[known()], 40, 24),
            "\
gpuwatch: 1 run in progress  q: quit

train  ann  GPU 0,3  12m 05s
  20261130-091502-train-7f3a
[##...........]  epoch 1/4, 20 %
  ETA 48m 20s
use [.....] 0 %
  memory [#....] 6.0 GiB of 24.0 GiB
  output 0.5 s ago
! idle: look at the loader"
        );
    }

    #[test]
    fn what_is_missing_is_a_dash() {
        let bare = RunNow {
            name: "x".into(),
            id: "i".into(),
            ..RunNow::default()
        };
        assert_eq!(
            text(&[bare], 80, 24).lines().skip(2).collect::<Vec<_>>(),
            [
                "x  -  GPU -  -  i",
                "[--------------------------]  -  ETA -",
                "use [--------] -  memory [--------] -  output -",
            ]
        );
        assert!(text(&[], 80, 24).contains("no run is in progress"));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let runs = [known(), known(), known()];
        let of = |height| text(&runs, 80, height);
        assert_eq!(of(16).lines().count(), 16, "all three");
        assert!(of(15).ends_with("... 1 more run"), "{}", of(15));
        assert!(of(8).ends_with("... 2 more runs"), "{}", of(8));
        assert!(
            of(4).ends_with("... 2 more lines, 2 more runs"),
            "{}",
            of(4)
        );
        assert!(of(2).ends_with("... 3 more runs"), "{}", of(2));
        assert_eq!(of(1), "gpuwatch: 3 runs in progress  q: quit");
        let unread = ["cannot read 'a'".to_owned(), "cannot read 'b'".to_owned()];
        let lines = screen(&runs, &unread, 80, 24);
        assert_eq!(lines[1].text, "! cannot read 'a' (1 more)");
        assert_eq!(lines[1].tone, Tone::Warning);
    }

    proptest! {
        #[test]
        fn a_screen_is_no_larger_than_the_terminal(
            foreign in prop::collection::vec(".*|[a\u{301}训\u{fe0f}\u{1f469}\u{200d}\x1b\r\n]*", 4),
            numbers in prop::collection::vec(prop::option::of(any::<f64>()), 4),
            count in 0_usize..4, width in 0_usize..100, height in 0_usize..30,
        ) {
            let run = RunNow {
                name: foreign[0].clone(),
                user: Some(foreign[1].clone()),
                gpus: vec![foreign[2].clone()],
                findings: vec![finding(&foreign[2], Some(&foreign[3]))],
                overall_pct: numbers[0],
                job_sm_pct: numbers[1],
                job_mem_mib: numbers[2],
                gpu_mem_mib: numbers[3],
                ..known()
            };
            let lines = screen(&vec![run; count], &foreign[3..], width, height);
            prop_assert!(lines.len() <= height);
            for line in lines {
                prop_assert!(line.text.width() <= width, "{:?}", line.text);
                prop_assert!(!line.text.contains(char::is_control), "{:?}", line.text);
            }
        }
    }
}
