//! Two ranks that `torchrun` started, and one of them stops.

use serde_json::Value;

use super::patient::{LIMIT, Patient, sick};
use super::support::{Live, content, kill, provided};

/// `torchrun` with two ranks, watched as one job.
fn start(patient: &Patient, torch: &str, options: &[&str], how: &str) -> Live {
    let script = sick("ranks.py");
    let argv = [
        torch,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--local-addr=127.0.0.1",
        "--nproc-per-node=2",
        &script,
        how,
    ];
    let live = patient.watched(options, &argv).start();
    patient.wait_for_progress();
    live
}

fn falls_sick(options: &[&str], how: &str, check: impl Fn(&Patient)) {
    let Some(torch) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    let patient = Patient::new(2);
    let live = start(&patient, &torch, options, how);
    patient.fall_sick("hung-0");
    check(&patient);
    let verdict = patient.cancel(live);
    assert_eq!(verdict["cause"], "stalled", "{verdict:#}");
    assert_eq!(patient.alarms(), ["stalled critical raised"]);
}

pub fn one_sleeps() {
    falls_sick(&LIMIT, "sleeps", |patient| {
        patient.stalled("asleep", 14.0..=60.0);
    });
}

pub fn one_is_stopped() {
    falls_sick(&LIMIT, "stopped", |patient| {
        let pid = pid_of(patient, 1);
        kill(pid, libc::SIGSTOP);
        patient.stalled("asleep", 14.0..=60.0);
        kill(pid, libc::SIGCONT);
    });
}

/// Who waits for a rank that has ended is told after a minute, and which rank it is.
pub fn one_is_gone() {
    falls_sick(&[], "gone", |patient| {
        let found = patient.stalled("lost-rank", 57.0..=90.0);
        let lost: &Value = &found["evidence"]["lost_rank"];
        assert_eq!(*lost, 1, "{found:#}");
        let pid = pid_of(patient, 1);
        assert_eq!(found["evidence"]["lost_pid"], pid, "{found:#}");
    });
}

fn pid_of(patient: &Patient, rank: u32) -> i32 {
    let told = content(&patient.sandbox.path(&format!("pid-{rank}")));
    told.parse().unwrap()
}
