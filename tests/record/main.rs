//! Records seen from outside: what the commands print, what is on disk, what a crash leaves.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on must fail"
)]

mod commands;
mod disk;
mod history;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use gpuwatch::model::{GpuSample, Reading, RunRecord, RunState, Sample, Stamp};
use tempfile::TempDir;

const ID: &str = "20261130-091502-train-7f3a";
/// Set for the processes in which this file's helpers run.
const HELPER: &str = "GPUWATCH_TEST_HELPER";

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/example-run")
}

/// A place for records with the example in it, `run.json` as it is and no index.
fn root_with_example() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let run = root.path().join(ID);
    fs::create_dir(&run).unwrap();
    for name in ["run.json", "samples.csv", "events.jsonl"] {
        fs::copy(example().join(name), run.join(name)).unwrap();
    }
    root
}

/// Starts one of this file's helpers in a process of its own.
fn helper(name: &str, dir: &Path, word: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(HELPER, dir)
        .env("GPUWATCH_TEST_WORD", word)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Where a helper works, and its word; `None` in the ordinary run of the tests.
fn helped() -> Option<(PathBuf, String)> {
    let dir = PathBuf::from(std::env::var_os(HELPER)?);
    Some((dir, std::env::var("GPUWATCH_TEST_WORD").unwrap_or_default()))
}

fn sample(elapsed_s: f64) -> Sample {
    Sample {
        stamp: Stamp {
            time: format!("2026-11-30T09:15:{:06.3}+08:00", 2.0 + elapsed_s % 50.0),
            elapsed_s,
        },
        gpus: vec![GpuSample {
            index: 2,
            util_pct: Reading::Value(50.0),
            ..GpuSample::default()
        }],
        ..Sample::default()
    }
}

fn record(id: &str, state: RunState) -> RunRecord {
    let ended = (state == RunState::Finished).then(|| "2026-11-30T09:15:33.400+08:00".into());
    RunRecord {
        schema: 1,
        id: id.to_owned(),
        name: "train".to_owned(),
        started: "2026-11-30T09:15:02.000+08:00".to_owned(),
        ended,
        state,
        ..RunRecord::default()
    }
}
