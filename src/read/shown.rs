//! What a phase shows at the moment, and how its display counts.
//!
//! Owns the plain state that the tracker keeps. Must not know which line belongs to what.

use std::borrow::Cow;

use super::reading::Reading;

/// What one phase shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub source: Cow<'static, str>,
    pub rank: Option<u32>,
    pub epoch: Option<f64>,
    pub epochs: Option<f64>,
    pub step: Option<u64>,
    pub steps: Option<u64>,
    pub percent: Option<f64>,
    pub loss: Option<f64>,
    pub metrics: Vec<(String, f64)>,
    pub eta_s: Option<f64>,
    pub rate: Option<f64>,
}

impl Shown {
    pub fn any(&self) -> bool {
        self.epoch.is_some() || self.step.is_some() || self.percent.is_some()
    }

    pub fn take_rest(&mut self, r: &Reading) {
        self.source.clone_from(&r.source);
        self.rank = r.rank.or(self.rank);
        if r.loss.is_some() {
            self.loss = r.loss;
        }
        if !r.metrics.is_empty() {
            self.metrics.clone_from(&r.metrics);
        }
        if r.step.is_some() || r.eta_s.is_some() {
            self.eta_s = r.eta_s;
        }
        if r.rate.is_some() || r.step.as_ref().is_some_and(|s| s.bar) {
            self.rate = r.rate;
        }
    }

    /// At its end, or so near that the last redraw was left out.
    pub fn nearly_complete(&self) -> bool {
        match (self.step, self.steps) {
            (Some(step), Some(steps)) => step.saturating_mul(10) >= steps.saturating_mul(9),
            _ => false,
        }
    }

    /// Phases beside training keep nothing but what the last lines say.
    pub fn take_plainly(&mut self, r: &Reading) {
        if let Some(e) = r.epoch {
            self.epoch = Some(e.value);
            self.epochs = e.total.or(self.epochs);
        }
        if let Some(step) = &r.step {
            self.step = Some(step.n);
            self.steps = step.total;
        }
        self.percent = r.percent;
        self.take_rest(r);
    }
}

/// What the number of an epoch says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Counting {
    /// Which one runs.
    #[default]
    Running,
    /// How many are finished.
    Done,
    /// How many passes over the data were made, with a fraction.
    Fractional,
}

/// How the epochs of this display are meant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EpochStyle {
    pub counting: Counting,
    /// Counted from 0.
    pub zero_based: bool,
    /// Counters end at one less than their total: `epoch 4/5` is the last one.
    pub ends_short: bool,
    /// The epoch was shown with its result and no step: it is over.
    pub closed: bool,
}
