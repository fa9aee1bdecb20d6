//! What a program says of its progress itself.
//!
//! Owns how its words are put together: each key that was said holds until it is said again.

use super::reading::{EpochShown, Reading, StepShown};
use super::tracker::Tracker;
use crate::model::{Mark, Phase, ProgressState};

/// What was said so far.
#[derive(Clone, Default)]
pub struct Said {
    given: ProgressState,
    tracker: Tracker,
    /// The lowest rank that spoke: the others say the same of themselves.
    rank: Option<u32>,
}

impl Said {
    /// Takes a mark of which any key may be absent, said at `t` (seconds since the start); the
    /// whole state of training as a mark, or None where that is not what it tells of.
    pub fn absorb(&mut self, mark: &Mark, t: Option<f64>) -> Option<Mark> {
        let rank = mark.rank.unwrap_or(0);
        if mark.phase != Phase::Train || self.rank.is_some_and(|lowest| rank > lowest) {
            return None;
        }
        self.rank = Some(rank);
        let given = &mut self.given;
        given.epoch = mark.epoch.or(given.epoch);
        given.epochs = mark.epochs.or(given.epochs);
        given.step = mark.step.or(given.step);
        given.steps = mark.steps.or(given.steps);
        given.percent = mark.percent.or(given.percent);
        given.loss = mark.loss.or(given.loss);
        given.rate = mark.rate.or(given.rate);
        given.overall_pct = mark.overall_pct.or(given.overall_pct);
        given.eta_s = mark.overall_eta_s.or(mark.eta_s).or(given.eta_s);
        self.tracker.apply(self.reading(mark), t);
        Some(self.tracker.mark(Phase::Train, t, None))
    }

    fn reading(&self, mark: &Mark) -> Reading {
        Reading {
            source: "said".into(),
            says_train: true,
            is_told: true,
            rank: mark.rank,
            epoch: mark.epoch.map(|value| EpochShown {
                value,
                total: self.given.epochs,
                done: false,
                fractional: value.fract() != 0.0,
            }),
            step: mark.step.map(|n| StepShown {
                n,
                total: self.given.steps,
                name: "step".to_owned(),
                bar: false,
                whole_run: false,
            }),
            percent: mark.percent,
            loss: mark.loss.map(|loss| loss.0),
            eta_s: mark.eta_s,
            rate: mark.rate,
            ..Reading::default()
        }
    }

    /// Where training stands: what was said, and what follows from it.
    pub fn state(&self) -> ProgressState {
        let follows = self.tracker.state();
        ProgressState {
            rate: self.given.rate.or(follows.rate),
            overall_pct: self.given.overall_pct.or(follows.overall_pct),
            eta_s: self.given.eta_s.or(follows.eta_s),
            ..self.given.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_holds_until_it_is_said_again() {
        let mut said = Said::default();
        let epoch = Mark {
            epoch: Some(1.0),
            epochs: Some(4.0),
            steps: Some(10),
            ..Mark::default()
        };
        assert!(said.absorb(&epoch, Some(0.0)).is_some());
        let step = Mark {
            step: Some(5),
            ..Mark::default()
        };
        said.absorb(&step, Some(1.0));
        let state = said.state();
        assert_eq!(
            (state.epoch, state.step, state.steps),
            (Some(1.0), Some(5), Some(10))
        );
        assert_eq!(state.overall_pct, Some(12.5));
        let eval = Mark {
            phase: Phase::Eval,
            step: Some(1),
            ..Mark::default()
        };
        assert!(said.absorb(&eval, Some(2.0)).is_none());
        let other = Mark {
            rank: Some(1),
            step: Some(9),
            ..Mark::default()
        };
        assert!(said.absorb(&other, Some(2.0)).is_none());
        assert_eq!(said.state().step, Some(5));
    }
}
