//! What is watched and judged: a judge, the order in which it is fed, and the record of both.
//!
//! Owns that the judge sees what will be read back, as `supervise::scribe` does for a run.

use std::collections::BTreeMap;
use std::path::Path;

use crate::judge::{Finding, Input, Judge};
use crate::model::{Event, FindingState, GpuInfo, Logged, Sample, Stamp};
use crate::record::{RecordError, Sequencer, rounded};

use super::recording::Recording;

/// One judge and its record.
pub struct Judged {
    judge: Judge,
    order: Sequencer,
    recording: Option<Recording>,
    open: BTreeMap<String, Finding>,
    last: Stamp,
    /// Why the record is incomplete, until somebody asks.
    problem: Option<RecordError>,
}

impl Judged {
    /// Nothing was seen yet.
    pub fn new(judge: Judge, recording: Option<Recording>) -> Self {
        Self {
            judge,
            order: Sequencer::default(),
            recording,
            open: BTreeMap::new(),
            last: Stamp::default(),
            problem: None,
        }
    }

    /// What was found and holds.
    pub fn open(&self) -> &BTreeMap<String, Finding> {
        &self.open
    }

    /// Whether it works and nothing was ever the matter.
    pub fn is_calm(&self) -> bool {
        self.judge.is_calm()
    }

    /// The record's id.
    pub fn id(&self) -> Option<&str> {
        self.recording.as_ref().map(Recording::id)
    }

    /// What went wrong with the record; said once.
    pub fn problem(&mut self) -> Option<RecordError> {
        self.problem.take()
    }

    /// It is on these GPUs.
    pub fn learn(&mut self, gpus: &[GpuInfo]) {
        self.judge.learn(gpus.to_vec());
        self.write(|recording| recording.know(gpus));
    }

    /// One look: what happened, then the numbers.
    pub fn look(&mut self, events: Vec<Event>, sample: &Sample) -> Vec<Finding> {
        let mut said = Vec::new();
        for event in events {
            let mut logged = Logged {
                stamp: sample.stamp.clone(),
                event,
            };
            self.order.event(&mut logged.stamp);
            self.last.clone_from(&logged.stamp);
            self.write(|recording| recording.event(&logged));
            let found = self.judge.step(Input::Event(&logged));
            self.hear(found, &mut said);
        }
        let mut sample = rounded(sample);
        self.order.sample(&mut sample.stamp);
        self.last.clone_from(&sample.stamp);
        self.write(|recording| recording.sample(&sample));
        let found = self.judge.step(Input::Sample(&sample));
        self.hear(found, &mut said);
        said
    }

    /// Something that isn't judged, for the record.
    pub fn note(&mut self, event: Event) {
        let mut stamp = self.order.last().clone();
        self.order.event(&mut stamp);
        self.write(|recording| recording.event(&Logged { stamp, event }));
    }

    /// Nobody watches it any more. `over`: it has ended itself.
    pub fn finish(self, over: bool, root: &Path) -> Result<(), RecordError> {
        match self.recording {
            Some(recording) => recording.finish(&self.last, over, root),
            None => Ok(()),
        }
    }

    /// The judge's word is recorded with the time of what made it speak.
    fn hear(&mut self, found: Vec<Finding>, said: &mut Vec<Finding>) {
        for finding in found {
            if finding.state == FindingState::Cleared {
                self.open.remove(&finding.name);
            } else {
                self.open.insert(finding.name.clone(), finding.clone());
            }
            let logged = Logged {
                stamp: self.last.clone(),
                event: finding.clone().into(),
            };
            self.write(|recording| recording.event(&logged));
            said.push(finding);
        }
    }

    /// Writes. The first failure ends the record, and nothing else.
    fn write(&mut self, write: impl FnOnce(&mut Recording) -> Result<(), RecordError>) {
        if let Some(recording) = &mut self.recording
            && let Err(error) = write(recording)
        {
            self.problem = Some(error);
            self.recording = None;
        }
    }
}
