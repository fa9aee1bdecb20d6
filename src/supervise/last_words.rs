//! What is said at a run's end, and whether a gate fails it: there before the last slow steps
//! of the record, and readable by whoever leaves.

use std::sync::{Arc, Mutex, PoisonError};

use crate::model::{Gate, GateVerdict};
use crate::report::gates;
use crate::report::text::clean;

use super::runner::Runner;

/// The exit code of a run that succeeded and that a gate fails.
pub const GATED: u8 = 3;

/// What is done at the end besides recording it.
#[derive(Clone, Debug, Default)]
pub struct Afterwards {
    /// Under these conditions a run that succeeded fails.
    pub gates: Vec<Gate>,
    /// What is left of the job is ended.
    pub ends_leftovers: bool,
    /// Who is told how it went.
    pub runner: Option<Runner>,
}

/// The words so far.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// The summary.
    pub summary: String,
    /// What became of the gates; None where nobody could check them.
    pub gates: Option<Gates>,
    /// What would have been sent, where nothing was.
    pub previews: String,
}

impl Words {
    /// A summary alone.
    pub fn of(summary: String) -> Self {
        Self {
            summary,
            ..Self::default()
        }
    }
}

/// What became of the gates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// Lines about those that failed or could not be checked.
    pub said: String,
    /// Whether any failed.
    pub failed: bool,
}

impl Gates {
    /// Of these verdicts.
    pub fn of(verdicts: &[GateVerdict]) -> Self {
        let lines: Vec<String> = verdicts.iter().filter_map(gates::words).collect();
        Self {
            said: lines.iter().fold(String::new(), |said, line| {
                said + "gpuwatch: " + &clean(line) + "\n"
            }),
            failed: verdicts.iter().any(|gate| gate.holds == Some(true)),
        }
    }

    /// Where whoever would have judged is gone: nothing fails, and nothing is passed in silence.
    pub fn unchecked() -> Self {
        Self {
            said: "gpuwatch: no gate was checked: nobody has judged the run\n".to_owned(),
            failed: false,
        }
    }
}

/// The words, shared by who writes them and who says them.
#[derive(Clone, Debug, Default)]
pub struct LastWords(Arc<Mutex<Option<Words>>>);

impl LastWords {
    /// These words from now on.
    pub fn set(&self, words: Words) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
    }

    /// The words, if there are any.
    pub fn take(&self) -> Option<Words> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
