//! Why a message did not arrive, and what follows from it.

use std::time::Duration;

/// What may be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Trying again later makes sense; not before this long, if the other side said so.
    Later(Option<Duration>),
    /// It would fail again.
    Never,
    /// The place doesn't exist any more: nothing more is sent to it in this run.
    Closed,
}

/// A message that did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why, in words that hold no secret.
    pub why: String,
    /// What follows.
    pub next: Next,
}

impl Failure {
    /// It may arrive later.
    pub fn later(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            next: Next::Later(None),
        }
    }

    /// It would fail again.
    pub fn never(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            next: Next::Never,
        }
    }

    /// The place is gone.
    pub fn closed(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            next: Next::Closed,
        }
    }

    /// The other side wants to be left alone for this long.
    #[must_use]
    pub fn not_before(mut self, wait: Duration) -> Self {
        self.next = Next::Later(Some(wait));
        self
    }
}
