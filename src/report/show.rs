//! One run for a person: what `gpuwatch show` prints.
//!
//! Owns the layout: a label, then what is known. Pure.

use serde_json::{Map, Value};

use super::summary::{finding_words, readings};
use super::text::{clean, command, exit, list, pad, progress, spent, standing, when};
use crate::model::units::{mib_text, seconds_text};
use crate::model::{GpuInfo, RunRecord};
use crate::record::FindingRecord;

/// Columns of a label.
const LABEL: usize = 11;

/// Labelled lines under construction; a label that repeats is written once.
#[derive(Default)]
struct Sheet {
    out: String,
    last: String,
}

impl Sheet {
    fn line(&mut self, label: &str, text: &str) {
        let shown = if self.last == label { "" } else { label };
        let line = format!("{}{}", pad(shown, LABEL), clean(text));
        self.out.push_str(line.trim_end());
        self.out.push('\n');
        label.clone_into(&mut self.last);
    }

    fn maybe(&mut self, label: &str, text: Option<String>) {
        if let Some(text) = text {
            self.line(label, &text);
        }
    }
}

/// One run as text; `dir` is where its record is.
pub fn show(record: &RunRecord, findings: &[FindingRecord], dir: &str) -> String {
    let mut sheet = Sheet::default();
    sheet.line("run", &record.id);
    sheet.maybe(
        "tags",
        (!record.tags.is_empty()).then(|| record.tags.join(", ")),
    );
    sheet.line("command", &command(&record.argv));
    sheet.maybe("in", place(record));
    sheet.maybe("by", who(record));
    sheet.line("started", &when(&record.started));
    let lasted = record.summary.duration_s.map(seconds_text);
    let ended = record.ended.as_deref().map(when);
    sheet.maybe("ended", ended);
    sheet.maybe("duration", lasted);
    let word = standing(record.state, record.verdict.outcome);
    let how = exit(record.exit).map_or_else(|| word.to_owned(), |exit| format!("{word} ({exit})"));
    sheet.line("outcome", &how);
    let verdict = &record.verdict;
    sheet.maybe("cause", verdict.cause.clone());
    sheet.maybe("rank", verdict.rank.map(|rank| rank.to_string()));
    sheet.maybe("advice", verdict.advice.clone());
    sheet.maybe("line", verdict.line.clone());
    for line in &verdict.around {
        sheet.line("output", line);
    }
    for gate in &record.gates {
        let passed = || format!("gate passed: {}", gate.when);
        sheet.line("gates", &super::gates::words(gate).unwrap_or_else(passed));
    }
    sheet.maybe("progress", progress(&record.summary));
    sheet.maybe("time", record.summary.time.as_ref().and_then(spent));
    for gpu in &record.gpus {
        sheet.line("gpu", &gpu_words(gpu));
    }
    sheet.maybe("driver", driver(record));
    sheet.maybe("readings", readings(&record.summary));
    sheet.maybe(
        "shared",
        record.attribution.clone().filter(|text| text != "exact"),
    );
    for (name, setting) in &record.env {
        sheet.line(
            "set",
            &format!("{name}={} ({})", setting.value, setting.why),
        );
    }
    for finding in findings {
        sheet.line("finding", &finding_words(finding));
        sheet.maybe(
            "finding",
            evidence(&finding.evidence).map(|text| format!("  {text}")),
        );
        sheet.maybe(
            "finding",
            finding.advice.as_ref().map(|text| format!("  {text}")),
        );
    }
    sheet.line("record", dir);
    sheet.out
}

fn place(record: &RunRecord) -> Option<String> {
    let git = record.git.as_ref().and_then(|git| {
        let changed = if git.dirty == Some(true) {
            ", changed"
        } else {
            ""
        };
        Some(format!(" (git {}{changed})", git.commit.as_ref()?))
    });
    Some(format!(
        "{}{}",
        record.cwd.as_ref()?,
        git.unwrap_or_default()
    ))
}

fn who(record: &RunRecord) -> Option<String> {
    let host = record.host.as_ref().map(|host| format!("on {host}"));
    let pid = record.pid.map(|pid| format!("PID {pid}"));
    let job = record.job.id.as_ref().map(|id| format!("job {id}"));
    let rank = record.job.rank.map(|rank| match record.job.world {
        Some(world) => format!("rank {rank} of {world}"),
        None => format!("rank {rank}"),
    });
    list([record.user.clone(), host, pid, job, rank])
}

fn driver(record: &RunRecord) -> Option<String> {
    let cuda = record.cuda.as_ref().map(|cuda| format!("CUDA {cuda}"));
    list([record.driver.clone(), cuda, record.framework.clone()])
}

fn gpu_words(gpu: &GpuInfo) -> String {
    let memory = gpu.memory_mib.map(|mib| mib_text(mib as f64));
    let limit = gpu.power_limit_w.map(|watts| format!("{watts} W"));
    let (name, bus) = (gpu.name.clone(), gpu.pci_bus.clone());
    let what = match gpu.instance {
        // Its name is its UUID.
        Some(_) => list([name, memory, Some(format!("on GPU {}", gpu.index)), bus]),
        None => list([name, memory, limit, gpu.uuid.clone(), bus]),
    };
    let label = gpu.label();
    match what {
        Some(what) => format!("{label}: {what}"),
        None => label,
    }
}

/// `step 60, epoch 1, age_s 5.1`
fn evidence(numbers: &Map<String, Value>) -> Option<String> {
    let shown: Vec<String> = numbers
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name} {text}"),
            other => format!("{name} {other}"),
        })
        .collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_as_text() {
        let text = include_str!("../../tests/example-run/show.json");
        let document: Value = serde_json::from_str(text).unwrap();
        let findings: Vec<FindingRecord> =
            serde_json::from_value(document["findings"].clone()).unwrap();
        let record: RunRecord = serde_json::from_value(document).unwrap();
        let shown = show(&record, &findings, "/runs/x");
        assert_eq!(
            shown,
            "run        20261130-091502-train-7f3a
tags       resnet
command    python train.py --epochs 2
in         /home/li/resnet (git 9b1c4de, changed)
by         li, on node01, PID 41822
started    2026-11-30 09:15:02 +08:00
ended      2026-11-30 09:15:33 +08:00
duration   31.4 s
outcome    ok (exit code 0)
progress   epoch 2/2, step 200/200, 100 %
gpu        2: NVIDIA A100-SXM4-80GB, 80.0 GiB, 400 W, GPU-5c1e0f7a-0000-4000-8000-000000000002
driver     580.95.05, CUDA 13.0, pytorch
readings   use 48.2 % (p95 97 %), memory peak 18.0 GiB, power 192.5 W, energy 6.0 kJ
set        CUDA_DEVICE_ORDER=PCI_BUS_ID (CUDA_VISIBLE_DEVICES holds NVML's indices)
           CUDA_VISIBLE_DEVICES=2 (chosen: free)
           TF_FORCE_GPU_ALLOW_GROWTH=true (profile default)
finding    stalled (asleep) from 13.0 s, cleared at 24.0 s
             step 60, epoch 1, age_s 5.1, gpu_util_pct 0, power_w 70.4, blocked_on futex
             Every process sleeps on a lock: look at the stacks; a DataLoader worker that died or a lock held across fork is the usual cause.
record     /runs/x
"
        );
    }

    #[test]
    fn a_run_of_which_nothing_is_known_is_short() {
        let shown = show(&RunRecord::default(), &[], "/runs\n/x");
        assert_eq!(
            shown,
            "run\ncommand\nstarted\noutcome    running\nrecord     /runs?/x\n"
        );
    }
}
