//! A worker that the kernel kills for its memory, in a cgroup of its own.

use serde_json::Value;

use super::cgroup::Cgroup;
use super::patient::{Patient, sick};
use super::support::{Job, Live, provided, python, skipped};

/// A job in a cgroup with so much memory, one of whose workers wants more.
fn killed(patient: &Patient, group: &Cgroup, job: Job) -> (Live, Value) {
    let words = group.entered();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let live = job.under(&words).start();
    patient.wait_for_progress();
    patient.hang();
    let found = patient.found("host-oom", "raised");
    assert_eq!(found["severity"], "critical", "{found:#}");
    (live, found)
}

#[test]
fn a_loader_that_notices_fails_for_it() {
    let Some(torch) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    let Some(group) = Cgroup::new("loader", 1024) else {
        return skipped("no control group with a limit of memory can be made");
    };
    let patient = Patient::new(1);
    let job = patient.watched(&[], &[&torch, &sick("killed.py"), "loader", "2048"]);
    let (live, found) = killed(&patient, &group, job);
    assert_eq!(found["evidence"]["mem_limit_mib"], 1024, "{found:#}");
    let advice = found["advice"].as_str().unwrap();
    assert!(advice.contains("fewer DataLoader workers"), "{found:#}");
    let ended = live.end();
    assert_eq!(ended.code(), Some(1), "{}", ended.err());
    let verdict = patient.verdict();
    assert_eq!(verdict["outcome"], "failed", "{verdict:#}");
    assert_eq!(verdict["cause"], "host-oom", "{verdict:#}");
    assert_eq!(patient.alarms(), ["host-oom critical raised"]);
}

#[test]
fn a_pool_that_does_not_is_stalled_because_of_it() {
    let Some(group) = Cgroup::new("pool", 256) else {
        return skipped("no control group with a limit of memory can be made");
    };
    let patient = Patient::new(1);
    let options = ["--stall-after", "5s", "--leftovers", "kill"];
    let job = patient.watched(&options, &[python(), &sick("killed.py"), "pool", "512"]);
    let (live, _) = killed(&patient, &group, job);
    let stalled = patient.found("stalled", "raised");
    assert_eq!(stalled["because"], "host-oom", "{stalled:#}");
    assert_eq!(stalled["severity"], "note", "one story: {stalled:#}");
    let verdict = patient.cancel(live);
    assert_eq!(verdict["cause"], "host-oom", "{verdict:#}");
    assert_eq!(patient.alarms(), ["host-oom critical raised"]);
}
