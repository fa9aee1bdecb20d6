//! Records judged again: as they were judged, and by other settings.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{FakeDriver, Sandbox, fake_driver, python, replayed};

/// So many copies are judged at once.
const COPIES: usize = 100;

/// Three steps, and then nothing: 1 s after that, with a finding on the record, it ends.
const HANG: &str = "
import fake_gpu, os, sys, time
fake_gpu.hold(0, 4096)
for step in range(1, 4):
    print(f'Epoch 1/2 - step {step}/50 - loss: 0.{9 - step}', flush=True)
    time.sleep(0.3)
while 'stalled' not in open(os.path.join(os.environ['GPUWATCH_RUN_DIR'], 'events.jsonl')).read():
    time.sleep(0.1)
";

/// The record of a run that hangs.
fn hang(sandbox: &Sandbox) -> PathBuf {
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let options = ["-q", "--stall-after", "2s", "--interval", "200ms"];
    sandbox
        .watched(&options, &[python(), "-c", HANG])
        .with(&driver)
        .env("PYTHONPATH", fake_driver::python_path())
        .run()
        .assert_ok();
    let record = sandbox.record();
    let findings = record.events_of("finding");
    assert!(
        findings.iter().any(|f| f["name"] == "stalled"),
        "{findings:?}"
    );
    record.folder
}

/// A copy of a record under another name.
fn copy(from: &Path, to: &Path, id: &str) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
    let run = fs::read_to_string(to.join("run.json")).unwrap();
    let mut run: Value = serde_json::from_str(&run).unwrap();
    run["id"] = id.into();
    fs::write(to.join("run.json"), run.to_string()).unwrap();
}

#[test]
fn a_doctored_record_is_noticed() {
    let sandbox = Sandbox::new();
    let record = hang(&sandbox);
    // Not below the sandbox, which would notice it as well.
    let elsewhere = tempfile::tempdir().unwrap();
    let doctored = elsewhere.path().join("doctored");
    copy(&record, &doctored, "doctored");
    assert_eq!(replayed::differences(elsewhere.path()), Ok(()));

    let events = fs::read_to_string(record.join("events.jsonl")).unwrap();
    let (before, after) = events.split_once("\"name\":\"stalled\"").unwrap();
    for lie in [
        "\"name\":\"idle-holding\"",
        "\"name\":\"stalled\",\"moved\":1",
    ] {
        fs::write(
            doctored.join("events.jsonl"),
            format!("{before}{lie}{after}"),
        )
        .unwrap();
        let said = replayed::differences(elsewhere.path());
        // A part that no finding has isn't compared.
        assert_eq!(said.is_err(), !lie.contains("moved"), "{said:?}");
        if let Err(said) = said {
            assert!(
                said.contains("- elapsed_s") && said.contains("+ elapsed_s"),
                "{said}"
            );
            assert!(said.contains("name \"idle-holding\""), "{said}");
        }
    }
    let silenced: Vec<&str> = events
        .lines()
        .filter(|line| !line.contains("\"kind\":\"finding\""))
        .collect();
    fs::write(doctored.join("events.jsonl"), silenced.join("\n") + "\n").unwrap();
    let said = replayed::differences(elsewhere.path()).unwrap_err();
    assert!(
        said.contains("+ elapsed_s") && !said.contains("- elapsed_s"),
        "{said}"
    );
}

#[test]
fn a_hundred_runs_are_judged_by_another_profile() {
    let sandbox = Sandbox::new();
    let record = hang(&sandbox);
    let copies = sandbox.path("copies");
    let ids: BTreeSet<String> = (0..COPIES).map(|i| format!("copy-{i:03}")).collect();
    for id in &ids {
        copy(&record, &copies.join(id), id);
    }
    let profile = |name: &str, text: &str| {
        let path = sandbox.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let sooner = profile("sooner.yaml", "judge: {stalled: {after: 1s}}\n");
    let later = profile("later.yaml", "judge: {stalled: {after: 1h}}\n");
    let copies = copies.to_str().unwrap();
    let judged = |options: &[&str]| {
        let words = [&["replay", "--json", copies], options].concat();
        let ended = sandbox.gpuwatch(&words).run();
        let said = ended.assert_ok().out();
        let lines = said.lines().map(|l| serde_json::from_str(l).unwrap());
        lines
            .filter(|f: &Value| f["name"] == "stalled" && f["state"] == "raised")
            .collect::<Vec<Value>>()
    };
    let runs = |found: &[Value]| -> BTreeSet<String> {
        let runs = found.iter().map(|f| f["run"].as_str().unwrap().to_owned());
        runs.collect()
    };
    // To the millisecond, as both are written.
    let age = |f: &Value| {
        let age = f["elapsed_s"].as_f64().unwrap() - f["since_s"].as_f64().unwrap();
        (age * 1000.0).round() / 1000.0
    };

    let recorded = judged(&[]);
    assert_eq!((recorded.len(), runs(&recorded)), (COPIES, ids.clone()));
    let sooner = judged(&["--profile", &sooner]);
    assert_eq!((sooner.len(), runs(&sooner)), (COPIES, ids));
    for (then, now) in recorded.iter().zip(&sooner) {
        assert_eq!(then["since_s"], now["since_s"]);
        assert!((2.0..3.0).contains(&age(then)), "{then}");
        assert!((1.0..2.0).contains(&age(now)), "{now}");
    }
    assert_eq!(judged(&["--profile", &later]), [] as [Value; 0]);

    let wrong = profile("wrong.yaml", "judge: {stalled: {afer: 1s}}\n");
    let ended = sandbox
        .gpuwatch(&["replay", copies, "--profile", &wrong])
        .run();
    assert_eq!((ended.code(), ended.out().as_str()), (Some(1), ""));
    assert!(ended.err().contains("afer"), "{}", ended.err());
}
