//! Whether progress was made: the advance of (restart, epoch, step, percent), nothing else.
//!
//! Owns that order. Text, a loss alone, a repeated line are chatter. Must not know time limits.

use crate::model::ProgressState;

/// A position in a run, as displayed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Place {
    epoch: f64,
    step: f64,
    percent: f64,
}

impl Place {
    fn of(p: &ProgressState) -> Option<Self> {
        let shown = p.epoch.is_some() || p.step.is_some() || p.percent.is_some();
        shown.then(|| Self {
            epoch: p.epoch.unwrap_or(-1.0),
            step: p.step.map_or(-1.0, |s| s as f64),
            percent: p.percent.unwrap_or(-1.0),
        })
    }

    fn is_after(self, other: Self) -> bool {
        (self.epoch, self.step, self.percent) > (other.epoch, other.step, other.percent)
    }
}

/// What a look at the display showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing new.
    Same,
    /// The first progress of the run.
    First,
    /// An advance.
    Advance,
}

/// The displayed position over the run.
#[derive(Clone, Debug, Default)]
pub struct Advances {
    place: Option<Place>,
    /// Whether anything was done yet: `0/100` and a first epoch's heading are none.
    pub begun: bool,
    /// Whether it counts steps or epochs, as training does, and not percent alone.
    pub trains: bool,
    /// How often it advanced.
    pub count: u64,
}

/// A heading of the first epoch is printed at the start; what comes later than this was done.
const HEADING_S: f64 = 120.0;

impl Advances {
    /// Takes in the display, `own_s` into the run.
    pub fn look(&mut self, progress: &ProgressState, own_s: f64) -> Seen {
        let Some(now) = Place::of(progress) else {
            return Seen::Same;
        };
        let Some(before) = self.place.replace(now) else {
            let done = now.step >= 1.0
                || now.percent > 0.0
                || (now.epoch > 0.0 && now.step < 0.0)
                    && (now.epoch > 1.0 || progress.loss.is_some() || own_s > HEADING_S);
            return if done {
                self.advance(progress)
            } else {
                Seen::Same
            };
        };
        if now == before || !now.is_after(before) {
            // A counter that went back started anew: its next advance counts.
            return Seen::Same;
        }
        self.advance(progress)
    }

    fn advance(&mut self, progress: &ProgressState) -> Seen {
        self.count += 1;
        self.trains |= progress.step.is_some() || progress.epoch.is_some();
        if std::mem::replace(&mut self.begun, true) {
            Seen::Advance
        } else {
            Seen::First
        }
    }
}
