//! A training that somebody has stopped, with the workers of its `DataLoader`.

use super::patient::{Patient, pass, sick};
use super::support::{descendants, kill, provided};

pub fn a_stopped_job_is_and_nothing_else() {
    let Some(torch) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    let patient = Patient::new(1);
    let live = patient
        .watched(&["--stall-after", "15s"], &[&torch, &sick("suspended.py")])
        .start();
    patient.wait_for_progress();
    let main = patient.main();
    let mut all = descendants(main.try_into().unwrap());
    assert_eq!(all.len(), 2, "{all:?}");
    all.push(main);
    let stopped = patient.now();
    for pid in &all {
        kill(*pid, libc::SIGSTOP);
    }
    let found = patient.found("suspended", "raised");
    assert_eq!(found["severity"], "note");
    assert_eq!(found["evidence"]["procs"], 3, "{found:#}");
    let late = found["elapsed_s"].as_f64().unwrap() - stopped;
    assert!(late <= 10.0, "after {late} s: {found:#}");
    pass(&patient, 20.0);
    for pid in &all {
        kill(*pid, libc::SIGCONT);
    }
    patient.found("suspended", "cleared");
    patient.say("end");
    live.end().assert_ok();
    assert!(patient.alarms().is_empty(), "{:?}", patient.alarms());
    assert_eq!(patient.verdict()["outcome"], "ok");
}
