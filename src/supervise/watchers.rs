//! The threads beside the byte path.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::launch::relay::Progress;
use crate::launch::sentinel::Sentinel;
use crate::launch::streams::Streams;
use crate::model::Event;

use super::clock::RunClock;
use super::prepare::Prepared;
use super::ring::Ring;
use super::state::End;

/// What there is to watch.
pub struct Watching {
    /// The run's clock.
    pub clock: RunClock,
    /// The main process.
    pub child: u32,
    /// What was relayed.
    pub ring: Arc<Ring>,
    /// What the streams look like.
    pub layouts: (),
    /// The relays.
    pub relays: Vec<Arc<Progress>>,
    /// Whether stdout goes through a pipe.
    pub stdout_piped: bool,
}

impl Watching {
    /// The streams' layouts.
    pub fn layouts(_streams: &Streams) {}
}

/// The watchers.
pub struct Watchers {
    done: EventFd,
}

impl Watchers {
    /// Starts them.
    pub fn start(_prepared: Prepared, watching: Watching, _sentinel: Option<&Sentinel>) -> Self {
        std::thread::spawn(move || while !watching.ring.take().over {});
        Self {
            done: EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC).unwrap(),
        }
    }
    /// Done.
    pub fn done_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
    /// Consume.
    pub fn consume(&self, sentinel: Option<&Sentinel>, signal: i32) {
        let _ = sentinel.map(|s| s.consume(signal));
    }
    /// Release.
    pub fn release(&self, sentinel: Option<&Sentinel>, fd: i32) {
        let _ = sentinel.map(|s| s.release(fd));
    }
    /// Log.
    pub fn log(&self, _event: Event) {}
    /// Cancelling.
    pub fn cancelling(&self) {}
    /// Finish.
    pub fn finish(&self, _end: End) {
        let _ = self.done.write(1);
    }
    /// Last words.
    pub fn last_words(&self) -> String {
        String::new()
    }
    /// Dismiss.
    pub fn dismiss(&self, sentinel: &Sentinel) {
        let _ = sentinel.quit();
    }
}
