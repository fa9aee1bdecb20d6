//! A user's own form of progress lines, `progress.patterns[]` of a profile.

use super::Phase;

/// Its expression compiles and names one of [`Pattern::GROUPS`] at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Its name: the source of what is read by it.
    pub name: String,
    /// A regular expression with named groups, in the syntax of the regex crate.
    pub regex: String,
    /// What the program does then.
    pub phase: Phase,
}

impl Pattern {
    /// What a group may be called: the keys of a mark that it gives.
    pub const GROUPS: [&str; 7] = [
        "epoch", "epochs", "step", "steps", "percent", "loss", "rate",
    ];
    /// What a compiled pattern may take, in bytes.
    pub const MOST_BYTES: usize = 1 << 20;
}
