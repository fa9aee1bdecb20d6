//! Two ranks that `torchrun` started, and one of them stops.

use serde_json::Value;

use super::asked::with_pyspy;
use super::patient::{LIMIT, Patient, sick};
use super::support::http_server::{Answer, Server};
use super::support::{Live, content, kill, provided, wait_until};

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
    let job = patient.watched(options, &argv);
    let live = with_pyspy(job).unwrap().start();
    patient.wait_for_progress();
    live
}

fn falls_sick(options: &[&str], how: &str, check: impl Fn(&Patient)) {
    let torch = provided("GPUWATCH_TEST_TORCH_PYTHON");
    let pyspy = provided("GPUWATCH_TEST_PYSPY_PYTHON");
    let Some((torch, _)) = torch.zip(pyspy) else {
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

/// The alert says which rank it is, and in which function it sits.
pub fn one_sleeps() {
    let server = Server::start(&[Answer::status(204)]);
    let url = server.url("/x");
    let options = [LIMIT[0], LIMIT[1], "--notify", &url];
    falls_sick(&options, "sleeps", |patient| {
        let found = patient.stalled("asleep", 14.0..=60.0);
        let mut stacks = Value::Null;
        wait_until("it is told", || {
            let told = server.requests().into_iter().map(|r| r.json());
            let mut told = told.filter(|r| r["type"] == "job.stalled");
            stacks = told
                .next()
                .map_or(Value::Null, |r| r["data"]["stacks"].clone());
            !stacks.is_null()
        });
        let differs = format!(
            "rank 1 ({}) differs: next_batch (ranks.py:",
            pid_of(patient, 1)
        );
        let waits = format!("rank 0 ({}) python: meet (ranks.py:", pid_of(patient, 0));
        let line = |n: usize| stacks[n].as_str().unwrap_or_default();
        assert!(line(0).starts_with(&differs), "{stacks:#}");
        assert!(line(1).starts_with(&waits), "{stacks:#}");
        assert!(line(1).contains(" in all_reduce ("), "{stacks:#}");
        let collected = patient.sandbox.record().events_of("action");
        let late =
            collected[0]["elapsed_s"].as_f64().unwrap() - found["elapsed_s"].as_f64().unwrap();
        assert!(late <= 5.0, "evidence came {late} s after the finding");
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
