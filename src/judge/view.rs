//! What every family of findings looks at.
//!
//! Owns nothing but the borrowed whole, and the exemptions that several families share.

use super::facts::JobFacts;
use super::processes::Processes;
use super::signals::Signals;
use super::story::Story;

/// The state of the run as it is known now.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// What the samples say.
    pub s: &'a Signals,
    /// What is known of the processes.
    pub p: &'a Processes,
    /// What the output said.
    pub story: &'a Story,
    /// What was known before.
    pub facts: &'a JobFacts,
}

impl View<'_> {
    /// A person works at it: a notebook waits for its next cell.
    pub fn is_interactive(&self) -> bool {
        self.p.interactive
    }

    /// A server waits for requests.
    pub fn is_serving(&self) -> bool {
        // A rank of a training listens, too: what spins waits for its peers, not for requests.
        let listens = self.p.listens() && self.s.spinning.is_none();
        (self.story.ready || listens) && !self.s.advances.begun
    }

    /// Silence means nothing: somebody else's turn, or the end.
    pub fn may_be_silent(&self) -> bool {
        self.s.frozen || self.p.main_ended_s.is_some() || self.is_interactive() || self.is_serving()
    }

    /// The framework, by what was seen, else by what was known before.
    pub fn framework(&self) -> Option<&str> {
        self.story.framework().or(self.facts.framework.as_deref())
    }
}
