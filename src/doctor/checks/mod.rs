//! What the facts mean: one line a check, with what to do.
//!
//! Pure. One file a family; `versions` holds the tables.

mod driver;
mod frameworks;
mod imported;
mod machine;
mod python;
mod variables;
mod versions;
mod visible;

pub use frameworks::importable;
pub use python::NAME as INTERPRETER;

use serde::Serialize;

use super::facts::Facts;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Fine.
    Ok,
    /// Good to know; nothing is wrong.
    Note,
    /// The job may run, but not as meant.
    Warning,
    /// The job won't use the GPU, or won't run.
    Bad,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub check: &'static str,
    /// How it came out.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do; null where there is nothing to do.
    pub cure: Option<String>,
}

impl Check {
    /// Fine.
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::of(check, State::Ok, found, None)
    }

    /// Good to know.
    pub fn note(check: &'static str, found: impl Into<String>) -> Self {
        Self::of(check, State::Note, found, None)
    }

    /// Not as meant.
    pub fn warning(check: &'static str, found: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::of(check, State::Warning, found, Some(cure.into()))
    }

    /// Wrong.
    pub fn bad(check: &'static str, found: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::of(check, State::Bad, found, Some(cure.into()))
    }

    fn of(
        check: &'static str,
        state: State,
        found: impl Into<String>,
        cure: Option<String>,
    ) -> Self {
        let found = found.into();
        Self {
            check,
            state,
            found,
            cure,
        }
    }

    /// Whether there is something to do.
    pub fn is_wrong(&self) -> bool {
        self.state >= State::Warning
    }
}

/// All checks, in the order of what stands on what.
pub fn judge(facts: &Facts) -> Vec<Check> {
    [
        driver::checks(facts),
        visible::checks(facts),
        python::checks(facts),
        frameworks::checks(facts),
        variables::checks(facts),
        machine::checks(facts),
        imported::checks(facts),
    ]
    .concat()
}
