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
use serde_json::Value;

/// What the end of these recordings means; of all others nothing is said.
const CAUSES: [(&str, &str); 12] = [
    ("fail_cuda_assert", "device-assert"),
    ("fail_dataloader_worker_killed", "loader-killed"),
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

/// These were told to end, as they print: that has no name, and is said.
const TOLD_TO_END: [&str; 2] = ["fail_ddp_hang", "fail_keyboardinterrupt"];

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
            event: Event::Line {
                stream: stream.into(),
                text,
                file: None,
            },
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
        let is_said = expected.is_some() || TOLD_TO_END.contains(&name);
        assert_eq!(verdict.advice.is_some(), is_said, "{verdict:?}");
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

/// The families of the trace benchmark.
const FAMILIES: [&str; 20] = [
    "H01", "H02", "H04", "H06", "H08", "H10", "H12", "H14", "H15", "H19", "S01", "S03", "S05",
    "S08", "S10", "S12", "S14", "S16", "S19", "S20",
];

/// A script beside the traces, with this program.
fn on_traces(script: &str, options: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let output = Command::new("python3")
        .arg(folder.join(script))
        .args(["--gpuwatch", env!("CARGO_BIN_EXE_gpuwatch")])
        .args(options)
        .output()
        .expect("python3");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complaints}");
    said
}

fn scored(options: &[&str]) -> Value {
    serde_json::from_str(&on_traces("score.py", options)).expect("JSON")
}

/// Each family is told from those that look like it; `tests/traces/score.py` runs all seeds.
fn all_are_right(score: &Value, number: usize) {
    let families = score["families"].as_object().expect("families");
    assert_eq!(families.len(), number);
    for (name, family) in families {
        assert!(family["traces"].as_u64() >= Some(1), "{name}: {family}");
        assert_eq!(family["in_time"], family["sick"], "{name}: {family}");
        assert_eq!(family["notes"][0], family["notes"][1], "{name}: {family}");
        for wrong in ["false_alarms", "alarms_before_onsets", "wrong_names"] {
            assert_eq!(family[wrong], 0, "{name}: {family}");
        }
    }
}

#[test]
fn traces_that_look_alike_are_told_apart() {
    let score = scored(&["--seeds", "2", "--json", "--families", &FAMILIES.join(",")]);
    all_are_right(&score, FAMILIES.len());
    let delay = score["stalls"]["delay_median_s"].as_f64();
    assert!(delay <= Some(120.0) && delay > Some(0.0), "{delay:?}");
    // The usual fixed rules on the same traces: if they did as well, these would be no traces worth having.
    for rule in ["A", "B", "C", "D"] {
        let fixed = &score["rules"][rule];
        assert!(fixed["all"]["false_alarms"].as_u64() > Some(0), "{fixed}");
        assert!(fixed["stalls"]["recall"].as_f64() < Some(0.5), "{fixed}");
    }
}

#[test]
fn other_families_too() {
    let score = scored(&["--seeds", "1", "--json", "--set", "others"]);
    all_are_right(&score, 17);
}

#[test]
fn what_makes_no_difference_changes_no_finding() {
    let said = on_traces(
        "steady.py",
        &["--seeds", "1", "--families", &FAMILIES.join(",")],
    );
    assert!(said.ends_with(", 0 differ\n"), "{said}");
}
