//! What a pattern is, what is advice, and how an exception looks.

use super::Kind;
use super::ranks::label;

/// One pattern.
pub struct Pattern {
    /// What it means.
    pub kind: Kind,
    /// What a line must hold: searched for in all output at once.
    pub needle: &'static str,
    /// What it must hold besides.
    all: &'static [&'static str],
    /// What it must not hold.
    none: &'static [&'static str],
    /// Whether advice may quote it.
    pub guarded: bool,
}

impl Pattern {
    /// Whether the rest of the pattern fits a line that holds the needle.
    pub fn fits(&self, text: &str) -> bool {
        self.all.iter().all(|word| text.contains(word))
            && !self.none.iter().any(|word| text.contains(word))
    }

    /// Unless the line holds any of these.
    pub const fn but(self, none: &'static [&'static str]) -> Self {
        Self { none, ..self }
    }
}

/// Words of somebody who explains, advises or asks, and doesn't report.
pub const ADVICE: &[&str] = &[
    " if ",
    "If ",
    "avoid",
    "in case",
    "prevent",
    "might",
    "may be",
    "may cause",
    "to reduce",
    "try ",
    "Try ",
    "instead of",
    "--help",
    "usage:",
    "://docs",
    "e.g.",
    "should ",
];

/// A line with this needle.
pub const fn error(kind: Kind, needle: &'static str) -> Pattern {
    Pattern {
        kind,
        needle,
        all: &[],
        none: &[],
        guarded: false,
    }
}

/// The same, unless it is advice.
pub const fn guarded(kind: Kind, needle: &'static str) -> Pattern {
    Pattern {
        guarded: true,
        ..error(kind, needle)
    }
}

/// A line with this needle and all of these.
pub const fn with(kind: Kind, needle: &'static str, all: &'static [&'static str]) -> Pattern {
    Pattern {
        all,
        ..error(kind, needle)
    }
}

/// How the names of exceptions end.
const ENDS: [&str; 11] = [
    "Error",
    "Exception",
    "Interrupt",
    "Exit",
    "Warning",
    "Failure",
    "Failed",
    "Timeout",
    "Empty",
    "StopIteration",
    "Fault",
];

/// The name of the exception that a traceback's last line tells: `package.SomeError: words`. What
/// isn't called an error has a package.
pub fn exception_name(text: &str) -> Option<&str> {
    let (_, text) = label(text);
    let name = text.split(':').next().unwrap_or_default();
    // What it was raised in: `ray.exceptions.RayTaskError(KeyError)`.
    let name = name.split_once('(').map_or(name, |(name, _)| name);
    let is_path = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
    let class = name.rsplit('.').next().unwrap_or_default();
    let is_class = class.starts_with(|c: char| c.is_ascii_uppercase());
    let is_named = ENDS.iter().any(|end| name.ends_with(end));
    let is_named = is_named || is_class && name.len() > class.len();
    (is_path && name.len() < 120 && is_named).then_some(name)
}
