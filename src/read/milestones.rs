//! What of progress is worth a line of its own: the first, an epoch's end, a restart.
//!
//! Owns the comparison of one mark with the one before. Must not know where marks come from.

use crate::model::{Mark, Phase, ProgressChange};

/// Watches the marks of a run, in their order.
#[derive(Clone, Debug, Default)]
pub struct Milestones {
    before: Option<Position>,
    /// The epoch whose end was already told.
    ended: Option<f64>,
    rank: u32,
}

#[derive(Clone, Copy, Debug)]
struct Position {
    epoch: Option<f64>,
    step: Option<u64>,
    steps: Option<u64>,
}

impl Position {
    fn complete(self) -> bool {
        self.step.is_some() && self.step == self.steps
    }
}

impl Milestones {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next mark; what it announces, if anything.
    ///
    /// Only training counts, and of several ranks the lowest one.
    pub fn absorb(&mut self, mark: &Mark) -> Option<ProgressChange> {
        let shows = mark.epoch.is_some() || mark.step.is_some() || mark.percent.is_some();
        if mark.phase != Phase::Train || !shows {
            return None;
        }
        let rank = mark.rank.unwrap_or(0);
        if self.before.is_none() || rank < self.rank {
            let first = self.before.is_none();
            *self = Self {
                before: Some(position(mark)),
                ended: None,
                rank,
            };
            self.note_end(mark);
            return first.then_some(ProgressChange::First);
        }
        if rank > self.rank {
            return None;
        }
        self.compare(mark)
    }

    fn compare(&mut self, mark: &Mark) -> Option<ProgressChange> {
        let before = self.before?;
        let mut now = position(mark);
        let (was, is) = (before.epoch.map(f64::floor), now.epoch.map(f64::floor));
        if is == was && now.step.is_none() {
            now.step = before.step;
            now.steps = before.steps;
        }
        self.before = Some(now);
        if let (Some(was), Some(is)) = (was, is) {
            if is < was {
                self.ended = None;
                return Some(ProgressChange::Reset);
            }
            if is > was {
                let told = self.ended == Some(was);
                self.note_end(mark);
                return (!told).then_some(ProgressChange::EpochEnd);
            }
        }
        // Behind a complete epoch the counter may start before the new epoch is named.
        let begins = before.complete() && is.is_some() && now.steps == before.steps;
        let fell = matches!((before.step, now.step), (Some(was), Some(is)) if is < was) && !begins;
        if fell {
            self.ended = None;
            return Some(ProgressChange::Reset);
        }
        let ends = now.complete() && !before.complete() && is.is_some() && self.ended != is;
        if ends {
            self.ended = is;
            return Some(ProgressChange::EpochEnd);
        }
        None
    }

    /// An epoch that is complete at first sight needs no second word.
    fn note_end(&mut self, mark: &Mark) {
        if position(mark).complete() {
            self.ended = mark.epoch.map(f64::floor);
        }
    }
}

fn position(mark: &Mark) -> Position {
    Position {
        epoch: mark.epoch,
        step: mark.step,
        steps: mark.steps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(epoch: f64, step: u64, steps: u64) -> Mark {
        Mark {
            epoch: Some(epoch),
            step: Some(step),
            steps: Some(steps),
            ..Mark::default()
        }
    }

    #[test]
    fn an_epochs_end_is_told_once() {
        let mut m = Milestones::new();
        assert_eq!(m.absorb(&at(1.0, 1, 40)), Some(ProgressChange::First));
        assert_eq!(m.absorb(&at(1.0, 20, 40)), None);
        assert_eq!(m.absorb(&at(1.0, 40, 40)), Some(ProgressChange::EpochEnd));
        assert_eq!(m.absorb(&at(2.0, 0, 40)), None);
        assert_eq!(m.absorb(&at(2.0, 39, 40)), None);
        assert_eq!(m.absorb(&at(3.0, 1, 40)), Some(ProgressChange::EpochEnd));
    }

    #[test]
    fn going_back_is_a_reset() {
        let mut m = Milestones::new();
        m.absorb(&at(3.0, 10, 40));
        assert_eq!(m.absorb(&at(3.0, 9, 40)), Some(ProgressChange::Reset));
        assert_eq!(m.absorb(&at(1.0, 0, 40)), Some(ProgressChange::Reset));
        assert_eq!(m.absorb(&at(1.0, 1, 40)), None);
    }

    #[test]
    fn evaluation_and_higher_ranks_are_not_progress() {
        let mut m = Milestones::new();
        let eval = Mark {
            phase: Phase::Eval,
            ..at(1.0, 5, 10)
        };
        assert_eq!(m.absorb(&eval), None);
        let rank = |rank, step| Mark {
            rank: Some(rank),
            ..at(1.0, step, 40)
        };
        assert_eq!(m.absorb(&rank(1, 10)), Some(ProgressChange::First));
        assert_eq!(m.absorb(&rank(0, 5)), None);
        assert_eq!(m.absorb(&rank(1, 3)), None);
        assert_eq!(m.absorb(&rank(0, 40)), Some(ProgressChange::EpochEnd));
    }
}
