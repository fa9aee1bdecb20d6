//! `gpuwatch ps`: what runs on this machine, read off the records alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use serde_json::{Value, json};
use support::{FakeDriver, Sandbox, wait_until};

const TRAINS: &str = "trap 'exit 0' TERM; echo Epoch 1/4; while :; do sleep 0.05; done";

fn ps(sandbox: &Sandbox) -> Value {
    let ended = sandbox.gpuwatch(&["ps", "--json"]).run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    serde_json::from_str(&ended.out()).unwrap()
}

#[test]
fn nothing_runs() {
    let sandbox = Sandbox::new();
    assert_eq!(ps(&sandbox), json!({"schema": 1, "runs": []}));
    sandbox.watched(&[], &["true"]).run().assert_ok();
    assert_eq!(ps(&sandbox)["runs"], json!([]), "an ended run is none");
    let ended = sandbox.gpuwatch(&["ps"]).run();
    assert_eq!((ended.code(), ended.out()), (Some(0), String::new()));
}

#[test]
fn a_run_in_progress_is_shown_with_what_is_known() {
    let (sandbox, driver) = (Sandbox::new(), FakeDriver::new(&json!({"gpus": [{}]})));
    let options = ["--interval", "100ms", "--name", "tr\x1b[2Jain"];
    let job = sandbox.watched(&options, &["sh", "-c", TRAINS]);
    let live = job.with(&driver).start();
    wait_until("a sample with progress is read", || {
        let runs = &ps(&sandbox)["runs"];
        runs[0]["epoch"] == 1.0 && runs[0]["gpu_util_pct"].is_number()
    });
    let run = &ps(&sandbox)["runs"][0];
    assert_eq!(run["epochs"], 4.0);
    assert_eq!(run["gpus"], json!(["0"]));
    assert!(run["elapsed_s"].as_f64().unwrap() > 0.0);
    assert!(run["output_age_s"].as_f64().unwrap() >= 0.0);
    let table = sandbox.gpuwatch(&["ps"]).run().out();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[0].starts_with("RUN "), "{table}");
    assert!(lines[1].contains("epoch 1/4"), "{table}");
    assert!(!table.contains('\x1b'), "{table}");
    live.signal(15);
    live.end();
    assert_eq!(ps(&sandbox)["runs"], json!([]));
}

#[test]
fn what_is_unknown_is_null_and_a_killed_supervisor_is_no_run() {
    let sandbox = Sandbox::new();
    let live = sandbox
        .watched(&["--gpus", "none"], &["sh", "-c", TRAINS])
        .start();
    wait_until("it is listed", || {
        ps(&sandbox)["runs"][0]["elapsed_s"].is_number()
    });
    let run = &ps(&sandbox)["runs"][0];
    for name in ["gpu_util_pct", "job_sm_pct", "job_mem_mib"] {
        assert_eq!(run[name], Value::Null, "{name}");
    }
    live.signal(9);
    live.end();
    wait_until("its lock is gone", || ps(&sandbox)["runs"] == json!([]));
}
