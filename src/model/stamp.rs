//! Wall time and run time travel together; only the edges make a stamp.

use serde::{Deserialize, Serialize};

/// One instant of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stamp {
    /// RFC 3339 with milliseconds and the local offset, for people.
    pub time: String,
    /// Seconds since the run's start on the monotonic clock (time in suspend is
    /// left out), rounded to milliseconds: what durations are computed from.
    pub elapsed_s: f64,
}
