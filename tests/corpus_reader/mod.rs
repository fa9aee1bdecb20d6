//! The corpus as tests need it: recordings, what a person reads off them, the scripts' own logs.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on should say so and stop"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpuwatch::model::Stream;
use gpuwatch::read::Layout;
use serde_json::Value;

pub mod expected;

pub use expected::Expected;

/// A step that the script logged itself.
pub struct Truth {
    pub t: f64,
    pub step: f64,
    pub steps: f64,
}

/// One recording.
pub struct Recording {
    /// `keras_fit_v1.pipe`
    pub name: String,
    pub path: PathBuf,
    pub layout: Layout,
    pub streams: Vec<(Stream, Vec<u8>)>,
    /// None where nothing is shown.
    pub expected: Option<BTreeMap<String, Expected>>,
    pub truth: Vec<Truth>,
}

/// All recordings that something is expected of: those that the reader was built with, and those
/// whose expectation was written before it saw them.
pub fn recordings() -> Vec<Recording> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut list = recordings_in(&tests.join("corpus"), 100);
    list.extend(recordings_in(&tests.join("recordings"), 75));
    list
}

fn recordings_in(dir: &Path, least: usize) -> Vec<Recording> {
    let text = std::fs::read_to_string(dir.join("expect.json")).expect("expect.json");
    let expect: Value = serde_json::from_str(&text).expect("JSON");
    let mut list = Vec::new();
    for (name, want) in expect.as_object().expect("an object") {
        for kind in ["pipe", "pty"] {
            let path = dir.join(format!("{name}.{kind}.cast"));
            if !path.exists() {
                continue;
            }
            let expected = want.get(kind).unwrap_or(want).as_object().map(|fields| {
                fields
                    .iter()
                    .map(|(field, value)| (field.clone(), Expected::of(value)))
                    .collect::<BTreeMap<_, _>>()
            });
            let steps = match expected.as_ref().map(|e| (e.get("step"), e.get("steps"))) {
                Some((Some(Expected::Number(_)), Some(Expected::Number(n)))) => Some(*n),
                _ => None,
            };
            let notes = std::fs::read_to_string(dir.join(format!("{name}.yaml"))).expect("notes");
            let truth = steps.map(|n| truth(&notes, kind, n)).unwrap_or_default();
            list.push(recording(format!("{name}.{kind}"), path, expected, truth));
        }
    }
    assert!(list.len() > least, "{} is incomplete", dir.display());
    list
}

fn recording(
    name: String,
    path: PathBuf,
    expected: Option<BTreeMap<String, Expected>>,
    truth: Vec<Truth>,
) -> Recording {
    let text = std::fs::read_to_string(&path).expect("a recording");
    let mut lines = text.lines();
    let header: Value = serde_json::from_str(lines.next().expect("a header")).expect("JSON");
    let latin = header.get("x_encoding").is_some();
    let mut streams: Vec<(Stream, Vec<u8>)> = Vec::new();
    for line in lines {
        let (_, code, data): (f64, String, String) = serde_json::from_str(line).expect("an event");
        let stream = if code == "e" {
            Stream::Err
        } else {
            Stream::Out
        };
        let bytes = if latin {
            data.chars().map(|c| c as u32 as u8).collect()
        } else {
            data.into_bytes()
        };
        match streams.last_mut() {
            Some((last, all)) if *last == stream => all.extend(bytes),
            _ => streams.push((stream, bytes)),
        }
    }
    let layout = if name.rsplit('.').next() == Some("pty") {
        Layout::Terminal {
            cols: 120,
            rows: 40,
        }
    } else {
        Layout::Plain
    };
    Recording {
        name,
        path,
        layout,
        streams,
        expected,
        truth,
    }
}

/// The `mid` entries of one run. The notes are YAML of one fixed shape, so that reading them
/// takes no YAML library.
fn truth(notes: &str, kind: &str, steps: f64) -> Vec<Truth> {
    // Short entries stand in braces on one line.
    let notes = notes
        .replace("- {", "- ")
        .replace(", ", "\n    ")
        .replace('}', "");
    let run: Vec<&str> = notes
        .lines()
        .skip_while(|l| *l != format!("  {kind}:"))
        .skip(1)
        .take_while(|l| l.starts_with("   "))
        .collect();
    let field = |lines: &[&str], name: &str| {
        lines.iter().find_map(|l| {
            let text = l.trim_start().trim_start_matches("- ");
            text.strip_prefix(&format!("{name}: ")).map(str::to_owned)
        })
    };
    let number =
        |lines: &[&str], name: &str| field(lines, name).and_then(|v| v.parse::<f64>().ok());
    let end = number(&run, "duration_s").unwrap_or(f64::MAX);
    let entries = run.iter().skip_while(|l| l.trim() != "truth:").skip(1);
    let entries: Vec<&str> = entries.copied().collect();
    let starts: Vec<usize> = (0..entries.len())
        .filter(|i| entries[*i].trim_start().starts_with("- t:"))
        .collect();
    let mut list = Vec::new();
    for (i, start) in starts.iter().enumerate() {
        let entry = &entries[*start..starts.get(i + 1).copied().unwrap_or(entries.len())];
        let mid = field(entry, "event").as_deref() == Some("mid");
        let (Some(t), Some(step), Some(total)) = (
            number(entry, "t"),
            number(entry, "step"),
            number(entry, "steps"),
        ) else {
            continue;
        };
        if mid && (total - steps).abs() < 0.5 && t <= end - 0.5 {
            list.push(Truth {
                t,
                step,
                steps: total,
            });
        }
    }
    list
}
