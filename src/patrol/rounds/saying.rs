//! What becomes of the judge's word: who is told, and what is printed.

use std::io::Write;
use std::sync::Arc;

use super::super::present::{self, Line, Present, PresentFinding, PresentJob};
use super::{MACHINE, Patrol};
use crate::judge::Finding;
use crate::model::{FindingState, GpuInfo, GpuSample, Severity, Stamp};

impl Patrol {
    /// The judge's word on a job, or on the machine.
    pub(super) fn say(&mut self, job: Option<usize>, finding: &Finding, stamp: &Stamp) {
        let job = job.and_then(|i| self.jobs.get(i));
        let (main, begun_s, facts) = match job {
            Some(job) => (job.group.main, job.begun_s, Arc::clone(&job.facts)),
            None => (
                MACHINE,
                self.machine_begun_s,
                Arc::clone(&self.machine_facts),
            ),
        };
        let known = finding.severity > Severity::Note
            && match finding.state {
                FindingState::Cleared => self.told.cleared(main, &finding.name),
                FindingState::Raised | FindingState::Updated => {
                    self.told.raised(main, &finding.name)
                }
            };
        if let (Some(tellers), false) = (&mut self.tellers, known) {
            tellers.tell(job, &facts, begun_s, finding);
        }
        let shown = job.map(PresentJob::from);
        self.print(finding, shown.as_ref(), begun_s, stamp);
    }

    /// One line on stdout: all findings as JSON, alarms for people.
    pub(super) fn print(
        &mut self,
        finding: &Finding,
        job: Option<&PresentJob>,
        begun_s: f64,
        at: &Stamp,
    ) {
        let alarm = finding.severity > Severity::Note;
        if self.tellers.is_none() || !(alarm || self.request.json) {
            return;
        }
        let shown = PresentFinding::from(finding);
        let line = Line {
            time: &at.time,
            state: finding.state,
            held_s: at.elapsed_s - begun_s - finding.since_s,
            finding: &shown,
            job,
        };
        let text = if self.request.json {
            serde_json::to_string(&line).unwrap_or_default()
        } else {
            line.text()
        };
        let mut out = std::io::stdout().lock();
        self.unheard |= writeln!(out, "{text}").and_then(|()| out.flush()).is_err();
    }

    pub(super) fn picture(&self, stamp: &Stamp, gpus: &[GpuSample]) -> Present {
        let read = |device: &GpuInfo| gpus.iter().find(|gpu| gpu.is_of(device));
        let machine = self.machine.iter().flat_map(|m| m.open().values());
        Present {
            time: stamp.time.clone(),
            gpus: self
                .devices
                .iter()
                .map(|device| present::gpu(device, read(device)))
                .collect(),
            jobs: self.jobs.iter().map(PresentJob::from).collect(),
            findings: machine.map(PresentFinding::from).collect(),
        }
    }
}
