//! The thread that has files beside the output (`--follow`) looked at, and hands what is found
//! to who reads the output.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;

use crate::model::{Event, SourceState};
use crate::observe::{FilesReply, FilesRequest, FoundAt};
use crate::report::text::clean;
use crate::sys::defect::{caught, sentence};

use super::clock::RunClock;
use super::desk::{Desk, Entry};
use super::files::{Files, LAST};
use super::ring::{Aside, Ring};

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// So much is looked for however far who reads is behind: nothing found means nothing there.
const LEAST_ROOM: usize = 4096;

/// What it needs.
pub struct Follow {
    /// What is followed.
    pub paths: Vec<PathBuf>,
    /// Who looks.
    pub files: Files,
    /// Who reads.
    pub ring: Arc<Ring>,
    /// Readable when the end has come.
    pub finish: Arc<EventFd>,
    /// The run's clock.
    pub clock: RunClock,
    /// The record.
    pub desk: Desk,
}

/// What is known of one path.
#[derive(Clone, Copy, Default)]
struct Known {
    was_there: bool,
    /// It can't be read, which was said.
    failed: bool,
}

impl Follow {
    /// Has them looked at until the run has ended, and once more.
    pub fn run(mut self) {
        if let Err(why) = caught(|| self.look_on()) {
            let text = sentence("followed files are no longer read", &why);
            self.desk.put(Entry::Problem(text));
        }
        self.ring.no_more_asides();
    }

    fn look_on(&mut self) {
        let mut known = vec![Known::default(); self.paths.len()];
        let mut until = None;
        loop {
            let is_last = self.wait();
            if is_last {
                until.get_or_insert(Instant::now() + LAST);
            }
            // Whoever reads may be behind: what is left stays in the files.
            let room = self.ring.room_aside() / self.paths.len().max(1);
            let request = FilesRequest {
                room: room.max(LEAST_ROOM),
                is_last,
            };
            let found = match self.files.look(request, &self.finish) {
                Ok(Some(reply)) => self.take(reply, &mut known),
                Ok(None) => return self.leave("the file system is slow"),
                Err(error) => {
                    let text = format!("followed files are no longer read: {error}");
                    return self.desk.put(Entry::Problem(text));
                }
            };
            let Some(until) = until else { continue };
            if !found {
                let all = self.paths.iter().zip(&known);
                return all.for_each(|(path, known)| self.miss(path, *known));
            }
            if Instant::now() > until {
                return self.leave("they hold more than there was time for");
            }
        }
    }

    fn leave(&self, why: &str) {
        let text = format!("followed files are not read to their end: {why}");
        self.desk.put(Entry::Problem(text));
    }

    /// Until the next look; whether it is the last one.
    fn wait(&self) -> bool {
        let mut end = [PollFd::new(self.finish.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(EVERY).unwrap_or(PollTimeout::MAX);
        poll(&mut end, limit).is_ok_and(|ready| ready > 0)
    }

    /// Whether anything was found.
    fn take(&self, reply: FilesReply, known: &mut [Known]) -> bool {
        let mut any = false;
        for (number, (at, known)) in reply.0.into_iter().zip(known).enumerate() {
            known.was_there |= at.was_there;
            self.tell(&self.paths[number], &at, known);
            for found in at.found {
                any = true;
                self.ring.aside(Aside::new(number, found));
            }
        }
        any
    }

    /// Whether it can be read, where that has changed.
    fn tell(&self, path: &Path, at: &FoundAt, known: &mut Known) {
        if known.failed == at.error.is_some() {
            return;
        }
        known.failed = at.error.is_some();
        let name = path.to_string_lossy();
        let state = if known.failed {
            SourceState::Failed
        } else {
            SourceState::Ok
        };
        let event = Event::Source {
            name: format!("follow {name}"),
            state,
            why: at.error.clone(),
        };
        self.desk.event(self.clock.now(), event);
        if let Some(error) = &at.error {
            let text = format!("'{}' can't be followed: {error}", clean(&name));
            self.desk.put(Entry::Problem(text));
        }
    }

    /// A path at which never anything was may be a wrong one.
    fn miss(&self, path: &Path, known: Known) {
        if !known.was_there && !known.failed {
            let text = format!(
                "nothing was read from '{}': neither a log nor an event file came there; \
                 check --follow",
                clean(&path.to_string_lossy())
            );
            self.desk.put(Entry::Problem(text));
        }
    }
}
