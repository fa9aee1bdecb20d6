//! A training script that hangs in the middle of an epoch.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::support::http_server::{Answer, Server};
use super::support::{Job, provided};
use super::training::{Training, alarms, alert, end, kinds};

/// With py-spy on PATH, and whether it is there.
fn with_pyspy(job: Job) -> (Job, bool) {
    let Some(python) = provided("GPUWATCH_TEST_PYSPY_PYTHON") else {
        return (job, false);
    };
    let folder = Path::new(&python).parent().unwrap();
    assert!(folder.join("py-spy").exists(), "{}", folder.display());
    let path = std::env::var_os("PATH").unwrap();
    let all = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    (job.env("PATH", std::env::join_paths(all).unwrap()), true)
}

fn stalls(how: &'static str, function: &str) {
    let server = Server::start(&[Answer::status(204)]);
    let training = Training::new(how);
    let url = server.url("/x");
    let job = training.job(&["--stall-after", "5s", "--notify", &url], 0);
    let (job, pyspy) = with_pyspy(job);
    let live = job.start();
    let (since, step) = training.hang();

    let raised = alert(&server, "job.stalled", "raised");
    let late = raised.at.saturating_duration_since(since);
    let data = raised.json()["data"].clone();
    assert!(late <= Duration::from_secs(8), "{late:?} after the hang");
    assert_eq!(data["cause"], how, "{data}");
    assert_eq!(data["severity"], "critical");
    assert_eq!(data["progress"]["step"], step, "{data}");
    let age = data["progress"]["age_s"].as_f64().unwrap();
    assert!((4.5..8.5).contains(&age), "{data}");
    assert_eq!(data["evidence"]["step"], step, "{data}");
    assert!(data["evidence"]["age_s"].as_f64().unwrap() >= 5.0, "{data}");
    let stacks = data["stacks"].to_string();
    assert_ne!(
        data["stacks"],
        json!([]),
        "what the job waits for, at least"
    );
    if pyspy {
        assert!(stacks.contains(function), "{stacks}");
    }

    training.go_on();
    alert(&server, "job.stalled", "cleared");
    training.say("end");
    end(live, 0);
    assert_eq!(
        kinds(&server),
        [
            "job.stalled raised",
            "job.stalled cleared",
            "run.finished -"
        ]
    );
    assert_eq!(
        alarms(&training.sandbox),
        ["stalled critical raised", "stalled critical cleared"]
    );
    let folder = training.sandbox.record().folder.join("evidence");
    let evidence = super::support::files_below(&folder);
    assert_eq!(evidence.len(), 1, "{evidence:?}");
}

#[test]
fn a_sleeping_loader_is_told_once_with_the_function_and_cleared() {
    stalls("asleep", "next_batch (train.py:");
}

#[test]
fn a_spinning_gpu_is_told_once_with_the_function_and_cleared() {
    stalls("spin", "wait_for_kernel (train.py:");
}
