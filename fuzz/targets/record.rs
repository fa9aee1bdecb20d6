//! Records that somebody else, a torn disk or another version wrote: `samples.csv`,
//! `events.jsonl`, `run.json` and the index. What is read can be written and read again.
//! The input's first byte says which.
#![no_main]

use std::path::PathBuf;

use gpuwatch::judge::{Input, JobFacts, Judge};
use gpuwatch::model::{GpuInfo, JudgeSettings, Logged, RunRecord};
use gpuwatch::record::findings::FindingFold;
use gpuwatch::record::index::IndexEntry;
use gpuwatch::record::summary::SummaryBuilder;
use gpuwatch::record::{SampleReader, rounded};
use libfuzzer_sys::fuzz_target;

fn samples(text: &[u8]) {
    let gpus = [GpuInfo {
        index: 3,
        uuid: Some("MIG-1".to_owned()),
        ..GpuInfo::default()
    }];
    let reader = SampleReader::new(text, PathBuf::from("samples.csv"), &gpus);
    let mut summary = SummaryBuilder::default();
    let mut judge = Judge::new(JudgeSettings::default(), Vec::new(), JobFacts::default());
    for sample in reader.expect("memory can be read") {
        let sample = sample.expect("memory can be read");
        assert!(sample.stamp.elapsed_s.is_finite());
        assert_eq!(sample.gpus.len(), sample.job_mem_mib.len());
        let once = rounded(&sample);
        assert_eq!(format!("{once:?}"), format!("{:?}", rounded(&once)));
        summary.absorb(&sample);
        judge.step(Input::Sample(&sample));
    }
    let numbers = summary.finish(None, &Default::default());
    serde_json::to_vec(&numbers).expect("it can be written");
}

fn events(text: &[u8]) {
    let mut findings = FindingFold::default();
    let mut judge = Judge::new(JudgeSettings::default(), Vec::new(), JobFacts::default());
    for line in text.split(|b| *b == b'\n') {
        let Ok(logged) = serde_json::from_slice::<Logged>(line) else {
            continue;
        };
        let written = serde_json::to_vec(&logged).expect("what was read can be written");
        let again: Logged = serde_json::from_slice(&written).expect("and read");
        assert_eq!(format!("{again:?}"), format!("{logged:?}"));
        findings.absorb(&logged);
        if !logged.event.is_judged() {
            judge.step(Input::Event(&logged));
        }
    }
    findings.into_list();
}

fn run(text: &[u8]) {
    if let Ok(record) = serde_json::from_slice::<RunRecord>(text) {
        let written = serde_json::to_vec(&record).expect("what was read can be written");
        serde_json::from_slice::<RunRecord>(&written).expect("and read");
    }
    if let Ok(entry) = serde_json::from_slice::<IndexEntry>(text) {
        let (_, id) = entry.order();
        assert_eq!(id, entry.id);
    }
}

fuzz_target!(|data: &[u8]| {
    match data {
        [0, text @ ..] => samples(text),
        [1, text @ ..] => events(text),
        [_, text @ ..] => run(text),
        [] => {}
    }
});
