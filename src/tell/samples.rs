//! Alerts to try things with.

use serde_json::json;

use super::alert::{About, Alert, End, Finding, OfRanks, Progress, RunFacts, State};
use crate::model::{Exit, GpuInfo, JobIds, Outcome, Severity, Verdict};

/// A run.
pub fn run() -> RunFacts {
    RunFacts {
        id: "20261130-091502-train-7f3a".into(),
        name: "train".into(),
        argv: ["python", "train.py"].map(str::to_owned).into(),
        user: Some("ana".into()),
        host: Some("gpu-01".into()),
        gpus: vec![GpuInfo {
            index: 1,
            ..GpuInfo::default()
        }],
        job: JobIds::default(),
    }
}

/// A stall.
pub fn stalled() -> Alert {
    let evidence = json!({"gpu_util_pct": 0, "waits": "futex"});
    Alert {
        about: About::Finding(Finding {
            name: "stalled".into(),
            cause: Some("loader".into()),
            because: None,
            since_s: 100.0,
            evidence: evidence.as_object().cloned().unwrap_or_default(),
            advice: Some("look at the loader".into()),
        }),
        state: State::Raised,
        severity: Severity::Critical,
        time: "2026-11-30T09:15:02.000+08:00".into(),
        elapsed_s: 825.0,
        progress: Progress {
            epoch: Some(3.0),
            epochs: Some(10.0),
            step: Some(512),
            steps: Some(1000),
            age_s: Some(725.0),
            ..Progress::default()
        },
        stacks: vec!["42 python: hang (train.py:7)".into()],
        times: 1,
        others: Vec::new(),
        more: 0,
        of_ranks: OfRanks::default(),
    }
}

/// A run's failure.
pub fn failed() -> Alert {
    Alert {
        about: About::Finished(End {
            exit: Exit {
                code: Some(1),
                signal: None,
            },
            verdict: Verdict {
                outcome: Some(Outcome::Failed),
                cause: Some("oom".into()),
                line: Some("torch.OutOfMemoryError: CUDA out of memory".into()),
                rank: Some(3),
                ..Verdict::default()
            },
        }),
        severity: Severity::Warning,
        stacks: Vec::new(),
        ..stalled()
    }
}
