//! The file for node_exporter's textfile collector.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::client::values;
use crate::support::{Live, Sandbox, wait_until};

fn folder(sandbox: &Sandbox) -> String {
    let folder = sandbox.arg("collector");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// What a collector would read.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.extension().is_some_and(|e| e == "prom"))
        .collect()
}

fn watched(sandbox: &Sandbox, options: &[&str], folder: &str) -> Live {
    let all = [
        &["--metrics-textfile", folder, "--interval", "100ms"],
        options,
    ]
    .concat();
    sandbox.watched(&all, &["cat"]).start()
}

/// Waits for this many files with a sample in each.
fn wait_for(folder: &str, n: usize) {
    wait_until("files with samples", || {
        let has_sample = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            !values(&text, "gpuwatch_job_last_sample_timestamp_seconds", "").is_empty()
        };
        files(folder).iter().filter(|path| has_sample(path)).count() == n
    });
}

#[test]
fn it_is_whole_whenever_it_is_read_and_gone_at_the_end() {
    let sandbox = Sandbox::new();
    let folder = folder(&sandbox);
    let live = watched(&sandbox, &["-q", "--no-record", "--name", "mine"], &folder);
    wait_for(&folder, 1);
    let path = files(&folder).remove(0);
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(
        name.starts_with("gpuwatch-20") && name.contains("-mine-"),
        "{name}"
    );
    let (mut seen, mut last) = (0, String::new());
    wait_until("it has been written twenty times", || {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o644);
        let text = fs::read_to_string(&path).unwrap();
        // Its last family is there, and nothing of the kind that a listener adds.
        assert!(
            text.ends_with('\n') && text.contains("gpuwatch_job_output_bytes_total"),
            "{text}"
        );
        assert!(!text.contains("gpuwatch_job_sample_age_seconds"), "{text}");
        if text != last {
            seen += 1;
            last = text;
        }
        seen == 20
    });
    let ended = live.end();
    assert_eq!(ended.assert_ok().err(), "");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

/// The umask is for files that are nobody else's business.
#[test]
fn everybody_may_read_it() {
    let sandbox = Sandbox::new();
    let folder = folder(&sandbox);
    let script = r#"umask 077; exec "$0" "$@""#;
    let job = sandbox.watched(&["--metrics-textfile", &folder], &["cat"]);
    let live = job.under(&["sh", "-c", script]).start();
    wait_for(&folder, 1);
    let mode = fs::metadata(&files(&folder)[0])
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o644);
    live.end().assert_ok();
}

#[test]
fn what_a_killed_run_leaves_is_swept_and_what_lives_stays() {
    let sandbox = Sandbox::new();
    let folder = folder(&sandbox);
    let killed = watched(&sandbox, &["--name", "killed"], &folder);
    wait_for(&folder, 1);
    killed.signal(9);
    drop(killed);
    let left = files(&folder);
    assert_eq!(left.len(), 1);
    let foreign = Path::new(&folder).join("gpuwatch-by-hand.prom");
    fs::write(&foreign, "by_hand 1\n").unwrap();
    let first = watched(&sandbox, &["--name", "first"], &folder);
    wait_until("it is swept", || !left[0].exists());
    wait_for(&folder, 1);
    let second = watched(&sandbox, &["--name", "second"], &folder);
    wait_for(&folder, 2);
    assert!(foreign.exists());
    first.end().assert_ok();
    wait_for(&folder, 1);
    second.end().assert_ok();
    assert_eq!(files(&folder), [foreign]);
}

#[test]
fn a_folder_that_is_not_there_is_said_once() {
    let sandbox = Sandbox::new();
    let missing = sandbox.arg("missing");
    let options = ["--metrics-textfile", &missing, "--interval", "100ms"];
    let ended = sandbox
        .watched(&options, &["sh", "-c", "sleep 1; exit 7"])
        .run();
    assert_eq!(ended.code(), Some(7));
    let said = ended.own_lines();
    let about: Vec<_> = said
        .iter()
        .filter(|line| line.contains("metrics can't be written"))
        .collect();
    // Before the start, and among the notes of the summary.
    assert_eq!(about.len(), 2, "{said:?}");
    assert!(about[0].contains(&missing), "{about:?}");
}

/// Files may not grow beyond a block: what a full disk does, without one.
#[test]
fn a_full_disk_costs_the_metrics_and_nothing_else() {
    let sandbox = Sandbox::new();
    let folder = folder(&sandbox);
    let script = r#"ulimit -f 1; exec "$0" "$@""#;
    let options = [
        "--metrics-textfile",
        &folder,
        "--no-record",
        "--interval",
        "100ms",
    ];
    let job = sandbox.watched(&options, &["sh", "-c", "sleep 1; exit 7"]);
    let ended = job
        .under(&["env", "--ignore-signal=XFSZ", "sh", "-c", script])
        .run();
    assert_eq!(ended.code(), Some(7));
    let said = ended.own_lines();
    let about = said
        .iter()
        .filter(|line| line.contains("metrics can't be written"));
    assert_eq!(about.count(), 1, "{said:?}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
