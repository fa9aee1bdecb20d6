//! What a program says of its progress itself.
//!
//! Owns how its words are put together: each key that was said holds until it is said again.

use super::reading::{EpochShown, Reading, StepShown};
use super::tracker::Tracker;
use crate::model::{Mark, Phase, ProgressState};

/// More epochs than this aren't trained.
const MOST: f64 = 1e9;

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
        if !is_sound(mark) {
            return None;
        }
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

/// Whether these numbers can be: one that can't makes the others of its line doubtful.
pub fn is_sound(mark: &Mark) -> bool {
    let within = |value: Option<f64>, low: f64, high: f64| {
        value.is_none_or(|v| v.is_finite() && v >= low && v <= high)
    };
    let ordered = |n: Option<f64>, total: Option<f64>| n.zip(total).is_none_or(|(n, all)| n <= all);
    let count = |n: Option<u64>| n.map(|n| n as f64);
    within(mark.epoch, 0.0, MOST)
        && within(mark.epochs, f64::MIN_POSITIVE, MOST)
        && within(mark.percent, 0.0, 100.0)
        && within(mark.overall_pct, 0.0, 100.0)
        && within(mark.rate, 0.0, f64::MAX)
        && within(mark.eta_s, 0.0, f64::MAX)
        && within(mark.overall_eta_s, 0.0, f64::MAX)
        && ordered(count(mark.step), count(mark.steps))
        && ordered(mark.epoch, mark.epochs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_cannot_be_are_not_believed() {
        let line = |text: &str| serde_json::from_str::<Mark>(text).unwrap();
        let mut said = Said::default();
        for wrong in [
            r#"{"epoch": -3, "epochs": -4}"#,
            r#"{"epoch": 3, "percent": 250}"#,
            r#"{"percent": -5}"#,
            r#"{"rate": -3, "step": 1}"#,
            r#"{"step": 500, "steps": 100}"#,
            r#"{"epoch": 1e23}"#,
            r#"{"epoch": 5, "epochs": 4}"#,
        ] {
            assert!(said.absorb(&line(wrong), Some(0.0)).is_none(), "{wrong}");
        }
        assert!(
            said.absorb(&line(r#"{"epoch": 1, "epochs": 4}"#), Some(1.0))
                .is_some()
        );
        assert_eq!(said.state().overall_pct, Some(0.0));
    }

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
