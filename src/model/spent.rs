//! What the time of a run was spent on.

use serde::{Deserialize, Serialize};

/// Seconds by what the job did; they add up to the time that was watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeSpent {
    /// Imports, loading, compiling, before the first progress.
    pub starting_s: f64,
    /// Downloading, tokenising, filling buffers, before training.
    pub preparing_s: f64,
    /// Training, and whatever lasts no longer than a step usually does.
    pub training_s: f64,
    /// Within training, while `data-starved` held: the share in which the GPUs did nothing.
    pub waiting_for_data_s: f64,
    /// Between steps for unusually long, at work.
    pub evaluating_s: f64,
    /// Between steps for unusually long, writing.
    pub checkpointing_s: f64,
    /// Since the last progress or activity, where that became `stalled`.
    pub stalled_s: f64,
    /// Stopped, or waiting for a person.
    pub waiting_s: f64,
    /// Nothing of this: at rest between steps, after the main process's end, or unknown.
    pub other_s: f64,
}

impl TimeSpent {
    /// Each part with its name, in the order of a run.
    pub fn parts(&self) -> [(&'static str, f64); 9] {
        [
            ("starting", self.starting_s),
            ("preparing", self.preparing_s),
            ("training", self.training_s),
            ("waiting for data", self.waiting_for_data_s),
            ("evaluating", self.evaluating_s),
            ("checkpointing", self.checkpointing_s),
            ("stalled", self.stalled_s),
            ("waiting", self.waiting_s),
            ("other", self.other_s),
        ]
    }

    /// All of it, seconds.
    pub fn total_s(&self) -> f64 {
        self.parts().iter().map(|(_, s)| s).sum()
    }
}
