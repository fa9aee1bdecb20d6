//! Before the start: what the child will get, and where its record goes.

use std::ffi::OsString;

use crate::launch::sentinel::Sentinel;
use crate::launch::streams::Streams;
use crate::sys::signals::SignalFd;

use super::request::{Ending, Refused, Request};

/// Everything that a start needs.
pub struct Prepared {
    /// What was asked for.
    pub request: Request,
    /// What to say in the summary.
    pub notes: Vec<String>,
}

/// Why nothing was started.
pub enum Unstarted {
    /// It can't be done.
    Refused(Refused),
    /// Somebody ended us first.
    Signal(i32),
}

/// Prepares a run.
pub fn prepare(
    request: Request,
    _streams: &Streams,
    _sentinel: Option<&Sentinel>,
    _arrivals: &SignalFd,
    notes: Vec<String>,
) -> Result<Prepared, Unstarted> {
    Ok(Prepared { request, notes })
}

/// Shows what would be done.
pub fn dry_run(_request: &Request) -> Result<Ending, Refused> {
    Ok(Ending::Code(0))
}

impl Prepared {
    /// The changes of the child's environment.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        self.request.env.clone()
    }

    /// The one line before the start.
    pub fn announce(&self) {}

    /// Forgets the record.
    pub fn discard(self) {}
}
