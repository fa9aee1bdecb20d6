//! Profiles: YAML text in, typed settings out.
//!
//! Owns the keys, their types and defaults, what is said about mistakes, and how layers lie on
//! each other. Pure: texts and their names are arguments. A text is parsed to a [`Layer`]
//! (`yaml`, `check`), layers are merged (`layer::merge`), and the whole is read (`read`).

mod builtin;
mod channel;
mod check;
mod error;
mod keys;
pub mod layer;
mod node;
mod patrol;
mod pattern;
mod read;
mod rule;
mod schema;
mod show;
mod values;
mod yaml;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub use builtin::{BUILT_IN, DEFAULT, built_in, embedded_default};
pub use channel::channel_for;
pub use error::ProfileError;
pub use layer::Layer;
pub use node::{Node, Place};
pub use read::profile;
pub use schema::schema;
pub use show::shown;
pub use yaml::{MAX_BYTES, TOO_LARGE};

use crate::model::{
    ActSettings, EndSettings, Gate, GpuChoice, JudgeSettings, Listen, MemLimit, PatrolSettings,
    Pattern, Rule, TellSettings,
};

/// A profile with every value filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Variables for the command.
    pub env: Env,
    /// Which GPUs.
    pub gpus: Gpus,
    /// Time between two samples.
    pub interval: Duration,
    /// More progress.
    pub progress: Progress,
    /// The findings.
    pub judge: JudgeSettings,
    /// The user's own findings.
    pub rules: Vec<Rule>,
    /// Whom to tell.
    pub tell: TellSettings,
    /// What to do.
    pub act: ActSettings,
    /// What others can scrape.
    pub metrics: Metrics,
    /// What is kept.
    pub record: Record,
    /// How the run may end.
    pub end: End,
    /// What a patrol is told.
    pub patrol: PatrolSettings,
}

/// `env`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env {
    /// In the order written, strongest layer first.
    pub set: Vec<Variable>,
    /// The one that the command uses, and the profile that says so.
    pub framework: Option<(String, String)>,
    /// More by framework.
    pub frameworks: BTreeMap<String, Vec<Variable>>,
}

/// A variable and the profile that names it.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value; it may be a secret.
    pub value: String,
    /// A name, or a file.
    pub source: String,
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=*** ({})", self.name, self.source)
    }
}

/// `gpus`
#[derive(Clone, Debug, PartialEq)]
pub struct Gpus {
    /// Which are given to the run.
    pub choose: GpuChoice,
    /// A GPU with less free memory isn't free, MiB.
    pub min_free_mib: f64,
    /// How long to wait for one.
    pub wait: Duration,
    /// How much of its memory the command is told to use.
    pub mem_limit: Option<MemLimit>,
}

impl Default for Gpus {
    fn default() -> Self {
        Self {
            choose: GpuChoice::Free,
            min_free_mib: 0.0,
            wait: Duration::ZERO,
            mem_limit: None,
        }
    }
}

/// `progress`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Lines that show progress.
    pub patterns: Vec<Pattern>,
    /// Files that are read like the output.
    pub follow: Vec<PathBuf>,
}

/// `metrics`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// The directory of a textfile collector.
    pub textfile: Option<PathBuf>,
    /// Where they are served.
    pub listen: Option<Listen>,
}

/// `record`
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where.
    pub dir: Option<PathBuf>,
    /// Whether the output is kept.
    pub output: bool,
    /// Days that old runs stay.
    pub keep_days: u64,
    /// How many runs stay.
    pub keep_runs: u64,
    /// How much stays, MiB.
    pub keep_mib: f64,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            dir: None,
            output: true,
            keep_days: 90,
            keep_runs: 10_000,
            keep_mib: 20.0 * 1024.0,
        }
    }
}

/// `end`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct End {
    /// How it may end, and whether another start follows.
    pub settings: EndSettings,
    /// A run that succeeded fails all the same.
    pub fail_if: Vec<Gate>,
}

#[cfg(test)]
mod odd_tests;
#[cfg(test)]
mod tests;
