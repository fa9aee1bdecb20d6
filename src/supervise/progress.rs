//! Where training stands, shared between whoever reads it and whoever samples it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::model::ProgressState;

/// Who can tell, the most trusted last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// What was written for TensorBoard.
    Scalars,
    /// What the output and the followed logs show.
    Shown,
    /// What the command says itself.
    Said,
}

/// What each of them tells.
#[derive(Clone, Debug, Default)]
struct Known {
    scalars: ProgressState,
    shown: ProgressState,
    said: ProgressState,
    /// The remaining time as it was last told, and when it became so.
    eta: Option<(Option<f64>, Instant)>,
}

/// Of the remaining time so much passes without a word: who shows nothing for longer may hang,
/// and is not about to end.
const PASSES: f64 = 0.5;

impl Known {
    fn of(&mut self, voice: Voice) -> &mut ProgressState {
        match voice {
            Voice::Scalars => &mut self.scalars,
            Voice::Shown => &mut self.shown,
            Voice::Said => &mut self.said,
        }
    }

    /// What the command says counts for more than what is shown, key by key; what it wrote for
    /// others to plot fills what neither tells.
    fn together(&self) -> ProgressState {
        over(&self.said, &filled(&self.shown, &self.scalars))
    }

    /// The same at this moment: remaining time passes between two words.
    fn at(&self, now: Instant) -> ProgressState {
        let mut state = self.together();
        if let (Some(eta), Some((_, told))) = (state.eta_s, self.eta) {
            let passed = now.saturating_duration_since(told).as_secs_f64();
            let left = eta - passed.min(PASSES * eta);
            state.eta_s = Some((left * 1000.0).round() / 1000.0);
        }
        state
    }
}

/// The shared state.
#[derive(Clone, Default)]
pub struct Progress(Arc<Mutex<Known>>);

impl Progress {
    /// This voice tells this now.
    pub fn tell(&self, voice: Voice, state: ProgressState) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known.of(voice) = state;
        let eta = known.together().eta_s;
        if known.eta.is_none_or(|(before, _)| before != eta) {
            known.eta = Some((eta, Instant::now()));
        }
    }

    /// Where training stands.
    pub fn now(&self) -> ProgressState {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.at(Instant::now())
    }

    /// Whether nobody who is trusted more knows a place: each milestone is told by one alone.
    pub fn leads(&self, voice: Voice) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let more: &[&ProgressState] = match voice {
            Voice::Scalars => &[&known.shown, &known.said],
            Voice::Shown => &[&known.said],
            Voice::Said => &[],
        };
        !more.iter().any(|state| has_place(state))
    }
}

fn has_place(state: &ProgressState) -> bool {
    state.epoch.is_some() || state.step.is_some() || state.percent.is_some()
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

/// Places are filled as a whole: a step of the run beside one of the epoch would be neither's.
fn filled(shown: &ProgressState, scalars: &ProgressState) -> ProgressState {
    if !has_place(shown) {
        return over(shown, scalars);
    }
    let mut state = shown.clone();
    state.loss = state.loss.or(scalars.loss);
    if state.step.is_none() && state.steps.is_none() && state.percent.is_none() {
        state.step = scalars.step;
        state.rate = state.rate.or(scalars.rate);
    }
    state
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::Metric;

    fn place(epoch: Option<f64>, step: Option<u64>) -> ProgressState {
        ProgressState {
            epoch,
            step,
            ..ProgressState::default()
        }
    }

    #[test]
    fn what_is_said_counts_for_more_than_what_is_shown() {
        let progress = Progress::default();
        progress.tell(Voice::Shown, place(Some(1.0), Some(3)));
        assert!(progress.leads(Voice::Shown) && !progress.leads(Voice::Scalars));
        progress.tell(Voice::Said, place(Some(2.0), None));
        assert_eq!(progress.now(), place(Some(2.0), Some(3)));
        assert!(!progress.leads(Voice::Shown) && progress.leads(Voice::Said));
    }

    #[test]
    fn remaining_time_passes_up_to_a_half() {
        let mut known = Known::default();
        let told = Instant::now();
        known.shown.eta_s = Some(100.0);
        known.eta = Some((Some(100.0), told));
        let left = |s: u64| known.at(told + Duration::from_secs(s)).eta_s;
        assert_eq!(
            (left(0), left(30), left(500)),
            (Some(100.0), Some(70.0), Some(50.0))
        );
    }

    #[test]
    fn what_is_written_fills_what_nobody_shows() {
        let progress = Progress::default();
        let mut written = place(None, Some(1200));
        written.loss = Some(Metric(0.5));
        progress.tell(Voice::Scalars, written.clone());
        assert_eq!(progress.now(), written);
        progress.tell(Voice::Shown, place(Some(2.0), None));
        let both = progress.now();
        assert_eq!((both.epoch, both.step), (Some(2.0), Some(1200)));
        // A step of the epoch is shown: one of the whole run isn't put in its place.
        progress.tell(Voice::Shown, place(Some(2.0), Some(7)));
        let now = progress.now();
        assert_eq!((now.step, now.loss), (Some(7), Some(Metric(0.5))));
    }
}
