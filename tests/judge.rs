//! The judge on real output and on synthetic traces.

#![allow(
    clippy::expect_used,
    reason = "a test that can't go on should say so and stop"
)]

#[allow(dead_code, reason = "other tests look at the numbers")]
mod corpus_reader;

use std::path::Path;
use std::process::Command;

use corpus_reader::{Recording, recordings};
use gpuwatch::judge::{Finding, Input, JobFacts, Judge, is_alarm};
use gpuwatch::model::{
    Event, Exit, GpuSample, JudgeSettings, Logged, Outcome, Reading, Sample, Stamp, Stream,
};
use gpuwatch::read::fingerprint::Lines;

/// What the end of these recordings means; of all others nothing is said.
const CAUSES: [(&str, &str); 13] = [
    ("fail_cuda_assert", "device-assert"),
    ("fail_dataloader_worker_killed", "loader-killed"),
    // Two ranks that were told to end; torchrun's traceback is what is left of it.
    ("fail_ddp_hang", "traceback"),
    ("fail_disk_full_import", "traceback"),
    ("fail_nccl_watchdog", "collective-timeout"),
    ("fail_numpy_mismatch", "traceback"),
    ("fail_oom_jax", "oom"),
    ("fail_oom_tf_gpu", "oom"),
    ("fail_oom_torch_cpu", "oom"),
    ("fail_oom_torch_cuda", "oom"),
    ("fail_segfault", "segfault"),
    ("fail_shm_bus_error", "shared-memory"),
    ("fail_traceback", "traceback"),
];

fn lines(recording: &Recording) -> Vec<(Stream, String)> {
    let mut lines = Lines::new();
    let mut all = Vec::new();
    for (stream, bytes) in &recording.streams {
        let found = lines.feed(*stream, bytes);
        all.extend(found.into_iter().map(|text| (*stream, text)));
    }
    for stream in [Stream::Out, Stream::Err] {
        let found = lines.feed(stream, b"\n");
        all.extend(found.into_iter().map(|text| (stream, text)));
    }
    all
}

fn stamp(elapsed_s: f64) -> Stamp {
    Stamp {
        time: String::new(),
        elapsed_s,
    }
}

/// A judge that has read the output.
fn judged(recording: &Recording) -> (Judge, Vec<Finding>) {
    let mut judge = Judge::new(JudgeSettings::default(), Vec::new(), JobFacts::default());
    let mut said = Vec::new();
    for (i, (stream, text)) in lines(recording).into_iter().enumerate() {
        let logged = Logged {
            stamp: stamp(i as f64),
            event: Event::Line { stream, text },
        };
        said.extend(judge.step(Input::Event(&logged)));
    }
    (judge, said)
}

#[test]
fn real_output_has_the_verdict_of_a_careful_reader() {
    let mut checked = 0;
    for recording in recordings() {
        let (judge, said) = judged(&recording);
        let failed = Exit {
            code: Some(1),
            signal: None,
        };
        let verdict = judge.verdict(Outcome::Failed, failed);
        let name = recording.name.split('.').next().unwrap_or_default();
        let expected = CAUSES.iter().find(|(n, _)| *n == name).map(|(_, c)| *c);
        assert_eq!(verdict.cause.as_deref(), expected, "{}", recording.name);
        assert_eq!(verdict.advice.is_some(), expected.is_some());
        let alarms: Vec<&str> = said
            .iter()
            .filter(|f| is_alarm(f.severity))
            .map(|f| f.name.as_str())
            .collect();
        let oom = expected == Some("oom");
        assert_eq!(alarms, if oom { vec!["oom"] } else { vec![] }, "{name}");
        checked += usize::from(expected.is_some());
    }
    assert!(checked > 20, "{checked} recordings of failures");
}

#[test]
fn tensorflow_says_itself_why_the_gpu_is_not_used() {
    let reasons = [
        ("fail_tf_missing_cuda.pipe", "library-missing"),
        ("keras_fit_v1.pipe", "no-driver"),
    ];
    for (name, cause) in reasons {
        let all = recordings();
        let recording = all.iter().find(|r| r.name == name).expect("a recording");
        let (mut judge, mut said) = judged(recording);
        for t in 0..200_u32 {
            let mut sample = Sample {
                stamp: stamp(1000.0 + f64::from(t)),
                gpus: vec![GpuSample::default()],
                job_mem_mib: vec![Reading::Value(0.0)],
                ..Sample::default()
            };
            sample.progress.step = Some(u64::from(t) + 1);
            said.extend(judge.step(Input::Sample(&sample)));
        }
        let unused = said.iter().find(|f| f.name == "gpu-unused");
        let found = unused.and_then(|f| f.cause.as_deref());
        assert_eq!(found, Some(cause), "{name}");
    }
}

/// A part of the trace benchmark: `tests/traces/score.py` runs all of it.
#[test]
fn traces_that_look_alike_are_told_apart() {
    let score = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/score.py");
    let output = Command::new("python3")
        .arg(score)
        .args(["--gpuwatch", env!("CARGO_BIN_EXE_gpuwatch")])
        .args(["--seeds", "2", "--check"])
        .args(["--families", "H01,H06,H14,H15,S03,S08,S08b,S14,S16"])
        .output()
        .expect("python3");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complaints}");
    assert!(said.contains("false alarms 0"), "{said}");
}
