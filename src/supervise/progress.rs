//! Where training stands, shared between whoever reads it and whoever samples it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::model::{Mark, ProgressState};

/// What the output shows, and what the command says itself.
#[derive(Default)]
struct Known {
    shown: ProgressState,
    told: ProgressState,
}

/// The shared state.
#[derive(Clone, Default)]
pub struct Progress(Arc<Mutex<Known>>);

impl Progress {
    /// The output shows this.
    pub fn shown(&self, state: ProgressState) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).shown = state;
    }

    /// The command said this in its progress file; it counts for more than what is shown, key
    /// by key.
    pub fn told(&self, mark: &Mark) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.told.clone();
        known.told = over(&of_mark(mark), &before);
    }

    /// Where training stands.
    pub fn now(&self) -> ProgressState {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        over(&known.told, &known.shown)
    }
}

fn of_mark(mark: &Mark) -> ProgressState {
    ProgressState {
        epoch: mark.epoch,
        epochs: mark.epochs,
        step: mark.step,
        steps: mark.steps,
        percent: mark.percent,
        loss: mark.loss,
        rate: mark.rate,
        overall_pct: mark.overall_pct,
        eta_s: mark.overall_eta_s.or(mark.eta_s),
    }
}

fn over(first: &ProgressState, second: &ProgressState) -> ProgressState {
    ProgressState {
        epoch: first.epoch.or(second.epoch),
        epochs: first.epochs.or(second.epochs),
        step: first.step.or(second.step),
        steps: first.steps.or(second.steps),
        percent: first.percent.or(second.percent),
        loss: first.loss.or(second.loss),
        rate: first.rate.or(second.rate),
        overall_pct: first.overall_pct.or(second.overall_pct),
        eta_s: first.eta_s.or(second.eta_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_counts_for_more_than_what_is_shown() {
        let progress = Progress::default();
        progress.shown(ProgressState {
            epoch: Some(1.0),
            step: Some(3),
            ..ProgressState::default()
        });
        progress.told(&Mark {
            epoch: Some(2.0),
            ..Mark::default()
        });
        progress.told(&Mark {
            steps: Some(9),
            ..Mark::default()
        });
        let now = progress.now();
        assert_eq!(
            (now.epoch, now.step, now.steps),
            (Some(2.0), Some(3), Some(9))
        );
    }
}
