//! The thread that looks at files beside the output (`--follow`), so that a file system that
//! hangs holds up nothing else. What it finds goes to who reads the output.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;

use crate::model::{Event, SourceState};
use crate::observe::{Before, Followed};
use crate::report::text::clean;
use crate::sys::defect::{caught, sentence};

use super::clock::RunClock;
use super::desk::{Desk, Entry};
use super::ring::{Aside, Ring};
use super::threads;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// The start waits no longer for a file system.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is there before the command starts. A file system that doesn't answer in time isn't
/// waited for: then what is there at the first look counts as older than the run.
pub fn before(paths: &[PathBuf]) -> Before {
    if paths.is_empty() {
        return Before::default();
    }
    let (tell, told) = channel();
    let paths = paths.to_vec();
    let started = threads::spawn("before", move || {
        // Nobody waits for it any more if it comes too late.
        let _ = tell.send(Before::of(&paths));
    });
    let seen = started.is_ok().then(|| told.recv_timeout(PATIENCE).ok());
    seen.flatten().unwrap_or_else(Before::unknown)
}

/// What it needs.
pub struct Follow {
    /// What to follow.
    pub paths: Vec<PathBuf>,
    /// What was there before.
    pub before: Before,
    /// Who reads.
    pub ring: Arc<Ring>,
    /// Readable when the end has come.
    pub finish: Arc<EventFd>,
    /// The run's clock.
    pub clock: RunClock,
    /// The record.
    pub desk: Desk,
}

struct OnePath {
    followed: Followed,
    /// It can't be read, which was said.
    failed: bool,
}

impl Follow {
    /// Looks until the run has ended, and once more.
    pub fn run(self) {
        if let Err(why) = caught(|| self.look_on()) {
            let text = sentence("followed files are no longer read", &why);
            self.desk.put(Entry::Problem(text));
        }
        self.ring.no_more_asides();
    }

    fn look_on(&self) {
        let mut paths: Vec<OnePath> = self
            .paths
            .iter()
            .map(|path| OnePath {
                followed: Followed::new(path.clone(), self.before.clone()),
                failed: false,
            })
            .collect();
        loop {
            let is_over = self.wait();
            for (number, path) in paths.iter_mut().enumerate() {
                if is_over {
                    path.followed.search_again();
                }
                self.look(number, path);
            }
            if is_over {
                return paths.iter().for_each(|path| self.miss(path));
            }
        }
    }

    /// Until the next look; whether it is the last one.
    fn wait(&self) -> bool {
        let mut end = [PollFd::new(self.finish.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(EVERY).unwrap_or(PollTimeout::MAX);
        poll(&mut end, limit).is_ok_and(|ready| ready > 0)
    }

    fn look(&self, number: usize, path: &mut OnePath) {
        // Whoever reads is behind: what is left stays in the file.
        let room = self.ring.room_aside();
        match path.followed.look(room) {
            Ok(found) => {
                if std::mem::take(&mut path.failed) {
                    self.source(path, SourceState::Ok, None);
                }
                for found in found {
                    self.ring.aside(Aside::new(number, found));
                }
            }
            Err(error) if !path.failed => {
                path.failed = true;
                let name = clean(&path.followed.path().to_string_lossy());
                self.source(path, SourceState::Failed, Some(error.to_string()));
                let text = format!("'{name}' can't be followed: {error}");
                self.desk.put(Entry::Problem(text));
            }
            Err(_) => {}
        }
    }

    fn source(&self, path: &OnePath, state: SourceState, why: Option<String>) {
        let name = format!("follow {}", path.followed.path().to_string_lossy());
        let event = Event::Source { name, state, why };
        self.desk.event(self.clock.now(), event);
    }

    /// A path that was never there may be a wrong one.
    fn miss(&self, path: &OnePath) {
        if !path.followed.was_there() && !path.failed {
            let name = clean(&path.followed.path().to_string_lossy());
            let text = format!(
                "nothing was read from '{name}': neither a new line nor an event file came there; \
                 check --follow"
            );
            self.desk.put(Entry::Problem(text));
        }
    }
}
