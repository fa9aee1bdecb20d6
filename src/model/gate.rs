//! A gate: a condition over a whole run under which a run that succeeded fails all the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Condition;

/// One entry of `fail_if`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As written.
    pub text: String,
    /// What it means.
    pub condition: Condition,
}

/// What became of a gate at the run's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateVerdict {
    /// The condition as written.
    pub when: String,
    /// Whether it holds, and so fails the run; null where a reading that it needs is missing.
    pub holds: Option<bool>,
    /// The values that it compares, in their base units (%, MiB, s, W; a finding is 1 or 0);
    /// null where one is missing.
    pub found: BTreeMap<String, Option<f64>>,
}
