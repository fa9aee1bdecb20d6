//! Healthy jobs that look sick now and then, end to end: real training on a simulated driver, of
//! which nobody is alarmed.
//!
//! They run side by side, so that each is on a busy machine, too. Each is judged again at its end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use serde_json::{Value, json};

use support::fake_driver::python_path;
use support::{FakeDriver, Sandbox, for_each, provided, script, wait_longer};

/// A minute and a half alone; the machine is shared by all of them.
const PATIENCE: Duration = Duration::from_secs(500);

/// A job: which Python, its script and arguments, and what is to be said of it.
struct Healthy {
    python: &'static str,
    argv: &'static [&'static str],
    gpus: usize,
}

const TORCH: &str = "GPUWATCH_TEST_TORCH_PYTHON";
const KERAS: &str = "GPUWATCH_TEST_TF_PYTHON";

const fn job(python: &'static str, argv: &'static [&'static str]) -> Healthy {
    Healthy {
        python,
        argv,
        gpus: 1,
    }
}

/// `torchrun` with two ranks.
const TORCHRUN: &[&str] = &[
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--local-addr=127.0.0.1",
    "--nproc-per-node=2",
    "rank_evaluates.py",
];

/// Those that take longest are the first of each half.
fn jobs() -> Vec<Healthy> {
    vec![
        Healthy {
            gpus: 2,
            ..job(TORCH, TORCHRUN)
        },
        job(TORCH, &["torch_train.py", "evaluation"]),
        job(KERAS, &["keras_fit.py", "62"]),
        job(TORCH, &["lightning_fit.py"]),
        job(TORCH, &["torch_train.py", "workers"]),
        job(TORCH, &["torch_train.py", "checkpoints"]),
        job(TORCH, &["torch_train.py", "compiles"]),
        job(TORCH, &["torch_train.py", "sparse"]),
        job(TORCH, &["torch_train.py", "epochs"]),
        job(TORCH, &["torch_train.py", "rl"]),
        job(TORCH, &["xgboost_train.py"]),
    ]
}

#[test]
fn nobody_is_alarmed_by_them() {
    let jobs = jobs();
    let ready = |job: &Healthy| provided(job.python).is_some();
    if !jobs.iter().all(ready) {
        return;
    }
    // Most of them sleep for most of the time: more at once than there are processors for.
    let (some, others) = jobs.split_at(jobs.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| for_each(some, check));
        for_each(others, check);
    });
}

fn check(job: &Healthy) {
    let said = trained(job);
    assert!(said.is_ok(), "{:?}: {}", job.argv, said.unwrap_err());
}

/// What was wrong with it.
fn trained(job: &Healthy) -> Result<(), String> {
    let sandbox = Sandbox::new();
    // What they draw follows from what their jobs use.
    let driver = FakeDriver::new(&json!({"gpus": vec![json!({}); job.gpus]}));
    let python = provided(job.python).unwrap();
    let mut argv = vec![python];
    argv.extend(job.argv.iter().map(|word| {
        if std::path::Path::new(word)
            .extension()
            .is_some_and(|e| e == "py")
        {
            script(&format!("healthy/{word}"))
        } else {
            (*word).to_owned()
        }
    }));
    let live = sandbox
        .watched(&[], &argv)
        .with(&driver)
        .env("PYTHONPATH", python_path())
        .env("OMP_NUM_THREADS", "1")
        .env("TF_NUM_INTRAOP_THREADS", "1")
        .start();
    wait_longer(PATIENCE, &format!("{argv:?} has ended"), || {
        sandbox
            .so_far("events.jsonl")
            .contains("\"kind\":\"exited\"")
    });
    let ended = live.end();
    if ended.code() != Some(0) {
        return Err(format!("it failed: {}{}", ended.out(), ended.err()));
    }
    let record = sandbox.record();
    let findings = record.events_of("finding");
    let alarm = findings.iter().find(|f| f["severity"] != "note");
    if let Some(alarm) = alarm {
        return Err(format!("{alarm:#}"));
    }
    let run = record.json();
    let names: Vec<&str> = findings.iter().filter_map(|f| f["name"].as_str()).collect();
    eprintln!(
        "{:?}: {:.0} s, notes {names:?}",
        job.argv, run["summary"]["duration_s"]
    );
    if run["verdict"]["outcome"] != "ok" || run["verdict"]["cause"] != Value::Null {
        return Err(format!("{:#}", run["verdict"]));
    }
    let rows = record.samples();
    let shown = rows
        .iter()
        .any(|r| !r["step"].is_empty() || !r["epoch"].is_empty());
    if !shown {
        return Err("no progress was read".to_owned());
    }
    Ok(())
}
