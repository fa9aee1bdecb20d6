//! How a run ends.

use serde::{Deserialize, Serialize};

/// How the child ended: exactly one of the two is set once it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code, 0 to 255.
    pub code: Option<i32>,
    /// The number of the signal that it died of.
    pub signal: Option<i32>,
}

impl Exit {
    /// The child ended by itself and reported success.
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It runs, or its supervisor died without writing an end (the lock tells which).
    #[default]
    Running,
    /// It ended.
    Finished,
    /// Somebody sent INT, TERM, HUP or QUIT, and the child didn't answer with success.
    Cancelled,
    /// Its supervisor is gone and never wrote an end.
    Lost,
}

/// What the end means, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Exit code 0.
    Ok,
    /// Another exit code.
    Failed,
    /// Death by a signal that nobody sent through us.
    Killed,
    /// INT, TERM, HUP or QUIT came first.
    Cancelled,
    /// `--time-limit` ended it.
    TimedOut,
    /// A profile's `act` (or `--on-stall`) ended it because of a finding.
    Stopped,
    /// The supervisor died.
    Lost,
}

/// The run's verdict: what happened, the first cause, and what to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Null while the run lasts.
    pub outcome: Option<Outcome>,
    /// A finding's name or one of the causes that DESIGN names; null when none is known.
    pub cause: Option<String>,
    /// One or two sentences that a person can act on.
    pub advice: Option<String>,
    /// The line of output that tells the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The rank that it began with, where there are several and one of them is known to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// That line and a few before and after it; without one, the last lines of a run that
    /// failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<String>,
}
