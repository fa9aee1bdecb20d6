//! A helper that dies in the middle of a run.

use serde_json::json;

use crate::support::fake_driver::FakeDriver;
use crate::support::{Sandbox, kill, wait_until};

/// A command that goes on until the file `end` exists.
const STEADY: &str = "echo up; while [ ! -e end ]; do sleep 0.05; done; echo over; exit 5";

#[test]
fn a_helper_that_dies_gets_a_successor() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{"util": 30}]}));
    let live = sandbox
        .watched(&["--interval", "100ms"], &["sh", "-c", STEADY])
        .with(&driver)
        .start();
    live.wait_for_out("up");
    let used = || {
        let mut rows = sandbox.samples_so_far();
        rows.retain(|row| !row["gpu_util_pct"].is_empty());
        rows.len()
    };
    wait_until("it is sampled", || used() >= 3);
    kill(helper_of(live.pid()), libc::SIGKILL);
    let states = || {
        let states = sandbox.record().events_of("source");
        states
            .iter()
            .filter(|e| e["name"] == "nvml")
            .map(|e| e["state"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    wait_until("its end and its successor are told", || {
        states() == ["failed", "ok"]
    });
    let before = sandbox.samples_so_far().len();
    wait_until("the GPU is sampled again", || {
        let rows = sandbox.samples_so_far();
        rows[before..]
            .iter()
            .filter(|r| r["gpu_util_pct"] == "30")
            .count()
            > 3
    });
    std::fs::write(sandbox.path("end"), "").unwrap();
    let ended = live.end();
    assert_eq!((ended.code(), ended.out()), (Some(5), "up\nover\n".into()));
    let record = sandbox.record();
    let mut phases: Vec<_> = record
        .samples()
        .iter()
        .map(|r| r["gpu_util_pct"].clone())
        .collect();
    phases.dedup();
    assert_eq!(phases, ["30", "", "30"]);
    let strangers = record.events_of("process");
    assert!(
        strangers.iter().all(|e| e["name"] != "nvml-sentinel"),
        "no part of the job: {strangers:?}"
    );
    assert!(
        !ended.err().contains("nvml-sentinel"),
        "and not left over: {}",
        ended.err()
    );
}

fn helper_of(gpuwatch: i32) -> i32 {
    let children = format!("/proc/{gpuwatch}/task/{gpuwatch}/children");
    let children = std::fs::read_to_string(children).unwrap();
    let named = |pid: &&str| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim_end() == "nvml-sentinel")
    };
    let found = children.split_whitespace().find(named);
    found.unwrap().parse().unwrap()
}
