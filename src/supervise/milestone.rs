//! Milestones of progress on their way to the record.

use std::time::Instant;

use crate::model::{Event, Mark, Phase};
use crate::read::Milestones;

use super::clock::RunClock;
use super::desk::Desk;
use super::progress::{Progress, Voice};

/// Writes down what of one voice's marks is worth a line.
pub struct Herald {
    voice: Voice,
    milestones: Milestones,
    progress: Progress,
    clock: RunClock,
    desk: Desk,
}

impl Herald {
    /// For this voice.
    pub fn new(voice: Voice, progress: Progress, clock: RunClock, desk: Desk) -> Self {
        Self {
            voice,
            milestones: Milestones::default(),
            progress,
            clock,
            desk,
        }
    }

    /// These marks were read at this instant. Who is trusted less keeps silent, but up to date.
    pub fn announce(&mut self, marks: &[Mark], at: Instant) {
        let leads = self.progress.leads(self.voice);
        for mark in marks.iter().filter(|mark| mark.phase == Phase::Train) {
            if let Some(change) = self.milestones.absorb(mark)
                && leads
            {
                let event = Event::progress(change, mark);
                self.desk.event(self.clock.at(at), event);
            }
        }
    }
}
