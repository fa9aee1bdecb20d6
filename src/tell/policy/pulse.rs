//! When a dead man's switch hears of a run: at its start, while it makes progress, at its end.
//!
//! Owns that a run which lives without progress is not heard of. Before the first progress
//! (loading, compiling) its life is enough.

use crate::model::{Severity, Stamp};

use super::super::alert::{About, Alert, OfRanks, Progress, State};
use super::Happening;

/// At most so often, seconds.
const EVERY_S: f64 = 60.0;

/// What was heard so far.
#[derive(Debug, Default)]
pub struct Pulse {
    said_s: Option<f64>,
    moved_s: Option<f64>,
}

impl Pulse {
    /// What is to be said, if anything.
    pub fn hear(&mut self, at: &Stamp, happening: &Happening) -> Option<Alert> {
        let now_s = at.elapsed_s;
        let (about, state, progress) = match happening {
            Happening::Started => (About::Started, State::Raised, Progress::default()),
            Happening::Ended(end) => (
                About::Finished(end.clone()),
                State::Raised,
                Progress::default(),
            ),
            Happening::Progress { now, moved_s } => {
                let moved = moved_s.is_none() || *moved_s != self.moved_s;
                if !moved || self.said_s.is_some_and(|s| now_s - s < EVERY_S) {
                    return None;
                }
                self.moved_s = *moved_s;
                let age_s = moved_s.map(|s| now_s - s);
                (About::Started, State::Reminded, Progress::new(now, age_s))
            }
            _ => return None,
        };
        self.said_s = Some(now_s);
        Some(Alert {
            about,
            state,
            severity: Severity::Note,
            time: at.time.clone(),
            elapsed_s: now_s,
            progress,
            stacks: Vec::new(),
            times: 1,
            others: Vec::new(),
            more: 0,
            of_ranks: OfRanks::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProgressState;

    #[test]
    fn only_progress_keeps_it_quiet() {
        let mut pulse = Pulse::default();
        let mut at = |s: f64, moved_s| {
            let stamp = Stamp {
                elapsed_s: s,
                ..Stamp::default()
            };
            let now = ProgressState::default();
            pulse
                .hear(&stamp, &Happening::Progress { now, moved_s })
                .is_some()
        };
        assert!(at(1.0, None), "it lives and has not begun to train");
        assert!(!at(30.0, None), "not so soon");
        assert!(at(62.0, None) && at(123.0, Some(120.0)));
        assert!(!at(150.0, Some(149.0)) && at(184.0, Some(183.0)));
        assert!(!at(300.0, Some(183.0)) && !at(9000.0, Some(183.0)), "stuck");
        assert!(at(9001.0, Some(9000.5)));
    }
}
