//! What a run is asked to be, and how it ends for whoever called us.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::plan::resolve::Resolved;

pub use super::runner::Runner;

/// What was typed, with every default filled in but the one that depends on the driver.
#[derive(Debug)]
pub struct Request {
    /// The command and its arguments; not empty.
    pub argv: Vec<OsString>,
    /// The user's own variables for the child.
    pub env: Vec<(String, OsString)>,
    /// Set nothing but those.
    pub no_env: bool,
    /// What the profiles and flags settle: GPUs, environment, interval, judge, rules, whom to tell.
    pub settings: Resolved,
    /// The run's name, if given.
    pub name: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Directory of the records, if given.
    pub dir: Option<PathBuf>,
    /// Whether to write a record.
    pub record: bool,
    /// Say nothing.
    pub quiet: bool,
    /// The pipeline's runner, if it is to be told.
    pub runner: Option<Runner>,
}

/// How we leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this exit code.
    Code(u8),
    /// By dying of this signal.
    Signal(i32),
}

/// Nothing was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The exit code; None: our own failure.
    pub code: Option<u8>,
    /// What, where, what to do: one line.
    pub text: String,
}

impl Refused {
    /// A failure of ours before the start.
    pub fn own(text: impl Into<String>) -> Self {
        Self {
            code: None,
            text: text.into(),
        }
    }
}
