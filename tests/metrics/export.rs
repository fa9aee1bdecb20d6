//! `gpuwatch export`: a record for other programs.

use std::fs;

use serde_json::{Value, json};

use crate::support::{FakeDriver, Sandbox, in_package, wait_until};

const EXAMPLE: &str = "tests/example-run";

fn exported(sandbox: &Sandbox, run: &str, format: &str) -> String {
    let ended = sandbox.gpuwatch(&["export", run, "--format", format]).run();
    assert_eq!(ended.assert_ok().err(), "");
    ended.out()
}

#[test]
fn samples_are_written_as_they_were_taken() {
    let sandbox = Sandbox::new();
    let run = in_package(EXAMPLE);
    let recorded = fs::read_to_string(format!("{run}/samples.csv")).unwrap();
    assert_eq!(exported(&sandbox, &run, "csv"), recorded);
    let by_default = sandbox.gpuwatch(&["export", &run]).run();
    assert_eq!(by_default.assert_ok().out(), recorded);
}

#[test]
fn lines_hold_everything_in_the_order_in_which_it_happened() {
    let sandbox = Sandbox::new();
    let run = in_package(EXAMPLE);
    let text = exported(&sandbox, &run, "jsonl");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let times: Vec<f64> = lines
        .iter()
        .map(|line| line["elapsed_s"].as_f64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    let (samples, events): (Vec<Value>, Vec<Value>) =
        lines.into_iter().partition(|line| line["kind"] == "sample");
    let recorded = fs::read_to_string(format!("{run}/events.jsonl")).unwrap();
    let recorded: Vec<Value> = recorded
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events, recorded);
    let mut reader = csv::Reader::from_path(format!("{run}/samples.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.unwrap()).collect();
    assert_eq!(samples.len(), rows.len());
    for (sample, row) in samples.iter().zip(&rows) {
        assert_eq!(sample["time"], row[0]);
        assert_eq!(sample.as_object().unwrap().len(), row.len() + 1);
    }
    assert!(
        samples[0]["job_mem_mib"].is_null() && samples[0]["gpu"] == 2,
        "{}",
        samples[0]
    );
}

/// What is read back of a run is what was there to scrape while it ran.
#[test]
fn metrics_of_the_record_are_those_that_were_scraped() {
    let driver = FakeDriver::new(&json!({"gpus": [{"util": 40}, {"memory_mib": null}]}));
    let sandbox = Sandbox::new();
    let folder = sandbox.arg("collector");
    fs::create_dir(&folder).unwrap();
    let options = [
        "--metrics-textfile",
        &folder,
        "--idle-below",
        "50",
        "--idle-for",
        "1s",
    ];
    let script = "import sys\nfor i in range(1, 4): print(f'Epoch {i}/9 step {i}/100 loss: 0.{i}', flush=True)\nsys.stdin.read()";
    let live = sandbox
        .watched(&options, &["python3", "-c", script])
        .with(&driver)
        .start();
    let scraped = || {
        let mut entries = fs::read_dir(&folder).unwrap().filter_map(Result::ok);
        let path = entries
            .find(|e| e.path().extension().is_some_and(|e| e == "prom"))?
            .path();
        fs::read_to_string(path).ok()
    };
    let mut text = String::new();
    wait_until("the record is what was scraped", || {
        let before = scraped().filter(|text| text.contains("gpuwatch_job_step{"));
        let Some(before) = before else { return false };
        text = exported(&sandbox, "last", "prometheus");
        text == before
    });
    assert!(text.contains("gpuwatch_gpu_utilization_ratio{"), "{text}");
    live.end().assert_ok();
}

#[test]
fn what_is_not_there_is_said_in_one_line() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("empty")).unwrap();
    fs::copy(
        in_package("tests/example-run/run.json"),
        sandbox.path("empty/run.json"),
    )
    .unwrap();
    for (run, said) in [("nobody", "no run 'nobody'"), ("./empty", "samples.csv")] {
        for format in ["csv", "jsonl", "prometheus"] {
            let ended = sandbox.gpuwatch(&["export", run, "--format", format]).run();
            assert_eq!(
                (ended.code(), ended.out().as_str()),
                (Some(1), ""),
                "{run} {format}"
            );
            let lines = ended.own_lines();
            assert!(
                lines.iter().any(|line| line.contains(said)),
                "{run} {format}: {lines:?}"
            );
        }
    }
    let ended = sandbox
        .gpuwatch(&["export", "last", "--format", "xml"])
        .run();
    assert_eq!(ended.code(), Some(2));
}
