//! One record while a patrol writes it: a directory as any run has.
//!
//! Owns that a disk which fails costs the record alone, and how large one may become.

use std::path::Path;

use crate::model::{Event, GpuInfo, Logged, RunRecord, RunState, Sample, Stamp};
use crate::record::{
    EventWriter, FindingFold, IndexEntry, RecordError, RunDir, SampleWriter, SummaryBuilder, index,
    run_id,
};

/// Rows of samples of one record; what comes later is judged and not kept.
const MOST_ROWS: u64 = 250_000;
/// A record of so short a job, in which nothing was found, isn't kept, seconds.
const SHORT_S: f64 = 60.0;

/// A record that is open.
pub struct Recording {
    dir: RunDir,
    samples: SampleWriter,
    events: EventWriter,
    summary: SummaryBuilder,
    findings: FindingFold,
    record: RunRecord,
    rows: u64,
}

impl Recording {
    /// Makes the directory below `root`; the record gets its id.
    pub fn start(root: &Path, mut record: RunRecord) -> Result<Self, RecordError> {
        let mut salt = fastrand::u16(..);
        let dir = loop {
            let id = run_id(&record.started, &record.name, salt);
            match RunDir::create(root, &id) {
                Err(RecordError::Taken { .. }) => salt = salt.wrapping_add(1),
                other => break other?,
            }
        };
        dir.id().clone_into(&mut record.id);
        let mut recording = Self {
            samples: SampleWriter::create(dir.path())?,
            events: EventWriter::create(dir.path())?,
            summary: SummaryBuilder::default(),
            findings: FindingFold::default(),
            rows: 0,
            dir,
            record,
        };
        recording.samples.name_gpus(&recording.record.gpus);
        recording.dir.write_run(&recording.record)?;
        Ok(recording)
    }

    /// The run's id.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// It is on these GPUs, too.
    pub fn know(&mut self, gpus: &[GpuInfo]) -> Result<(), RecordError> {
        self.record.gpus = gpus.to_vec();
        self.samples.name_gpus(gpus);
        self.dir.write_run(&self.record)
    }

    /// One tick.
    pub fn sample(&mut self, sample: &Sample) -> Result<(), RecordError> {
        self.summary.absorb(sample);
        if self.rows >= MOST_ROWS {
            return Ok(());
        }
        self.rows += sample.gpus.len().max(1) as u64;
        self.samples.append(sample)?;
        if self.rows >= MOST_ROWS {
            let stamp = sample.stamp.clone();
            let what = "samples".to_owned();
            self.event(&Logged {
                stamp,
                event: Event::Dropped { what, n: 1 },
            })?;
        }
        Ok(())
    }

    /// One event.
    pub fn event(&mut self, logged: &Logged) -> Result<(), RecordError> {
        self.findings.absorb(logged);
        self.events.append(logged)
    }

    /// Nobody watches it any more. `over`: it has ended itself.
    pub fn finish(mut self, last: &Stamp, over: bool, root: &Path) -> Result<(), RecordError> {
        if over && last.elapsed_s < SHORT_S && self.findings.list().is_empty() {
            return self.dir.remove();
        }
        let record = &mut self.record;
        record.ended = Some(last.time.clone());
        record.state = RunState::Finished;
        record.summary = self.summary.finish(
            Some(last.elapsed_s),
            &crate::model::ProgressState::default(),
        );
        self.dir.write_run(&self.record)?;
        let entry = IndexEntry::new(&self.record, self.findings.names(), self.dir.path());
        index::append(root, &entry).map(drop)
    }
}
