//! What one line says.
//!
//! Owns the type that the grammar gives and the tracker takes. Must not know how it was read.

use std::borrow::Cow;

use crate::model::Phase;

/// Progress as one line shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading {
    pub source: Cow<'static, str>,
    pub phase: Phase,
    /// The line calls itself training.
    pub says_train: bool,
    /// Somebody says what these numbers are: they need no judgement.
    pub is_told: bool,
    pub rank: Option<u32>,
    pub epoch: Option<EpochShown>,
    pub step: Option<StepShown>,
    pub percent: Option<f64>,
    pub loss: Option<f64>,
    pub metrics: Vec<(String, f64)>,
    pub eta_s: Option<f64>,
    /// Steps a second.
    pub rate: Option<f64>,
    /// The line belongs to a block that is drawn again and again.
    pub redrawn: bool,
    /// It stood there already: it can fill what is missing, and is no news.
    pub repeated: bool,
}

/// An epoch as displayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EpochShown {
    pub value: f64,
    pub total: Option<f64>,
    /// The display counts finished epochs, not the one that runs.
    pub done: bool,
    /// Written with a fraction: the step beside it counts on through all epochs.
    pub fractional: bool,
}

/// A step as displayed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StepShown {
    pub n: u64,
    pub total: Option<u64>,
    /// What the display calls it; empty where it has no name.
    pub name: String,
    /// Drawn as a bar.
    pub bar: bool,
    /// It counts through all epochs by its name.
    pub whole_run: bool,
}
