//! Expressions of `rules` and `fail_if`: `gpu.util < 20 and not finding.gpu_unused`.
//!
//! Owns the grammar and what it says about mistakes. `not` binds closest, then `and`, then
//! `or`; a number without a unit is in the unit of the name before it. `mean(gpu.util, 10m)` is a
//! value over the last ten minutes, in rules alone. Pure.

mod parse;
mod print;
mod say;
mod token;
mod window;

use std::fmt;

pub use parse::parse;
pub use print::text;
pub use say::say;

use crate::model::names::{FINDINGS, NAMES, SUMMARY_NAMES, Unit};

/// Which values an expression may name.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Values by the moment (`rules`), or over the whole run (`fail_if`).
    pub scope: Scope,
    /// Findings besides the known ones, with underscores: the user's own rules.
    pub findings: &'a [String],
}

/// What an expression is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `rules`: this moment.
    Rules,
    /// `fail_if`: the whole run.
    Gates,
}

impl Scope {
    fn names(self) -> &'static [(&'static str, Unit, &'static str)] {
        match self {
            Self::Rules => NAMES,
            Self::Gates => SUMMARY_NAMES,
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Gates => "fail_if",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Rules => Self::Gates,
            Self::Gates => Self::Rules,
        }
    }
}

impl Names<'_> {
    fn unit(&self, name: &str) -> Option<Unit> {
        let found = self.scope.names().iter().find(|(known, ..)| *known == name);
        found.map(|(_, unit, _)| *unit)
    }

    fn is_finding(&self, name: &str) -> bool {
        FINDINGS.contains(&name) || self.findings.iter().any(|known| known == name)
    }

    /// Every name that may stand in an expression.
    fn all(&self) -> Vec<String> {
        let values = self
            .scope
            .names()
            .iter()
            .map(|(name, ..)| (*name).to_owned());
        let own = self.findings.iter().map(String::as_str);
        let findings = FINDINGS.iter().copied().chain(own);
        values
            .chain(findings.map(|name| format!("finding.{name}")))
            .collect()
    }
}

/// A mistake in an expression, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// What is wrong and what to do, without the place.
    pub what: String,
    /// The expression on one line.
    text: String,
    /// In characters: where the mistake begins, and how long it is.
    at: (usize, usize),
}

impl ExpressionError {
    /// A mistake in these bytes of it.
    pub fn new(text: &str, bytes: std::ops::Range<usize>, what: impl Into<String>) -> Self {
        let chars = |to: usize| text.char_indices().take_while(|(i, _)| *i < to).count();
        let (from, to) = (chars(bytes.start), chars(bytes.end));
        Self {
            what: what.into(),
            // One character each, so that the marks stay below what they mark.
            text: text.chars().map(visible).collect(),
            at: (from, to.saturating_sub(from).max(1)),
        }
    }

    /// The expression, and below it marks under the mistake.
    pub fn underlined(&self) -> String {
        let (from, length) = self.at;
        format!("{}\n{}{}", self.text, " ".repeat(from), "^".repeat(length))
    }
}

/// Line breaks and what would change a terminal become blanks.
fn visible(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.what, self.underlined())
    }
}

impl std::error::Error for ExpressionError {}

#[cfg(test)]
mod tests;
