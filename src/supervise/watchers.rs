//! The threads beside the byte path: digest, sampler, scribe; and how they end.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::launch::relay;
use crate::model::{Event, JobIds, RunRecord, RunState};
use crate::observe::{git_state, identity};
use crate::plan::{argv, env, job};
use crate::report::Leftover;

use super::beside::Beside;
use super::clock::RunClock;
use super::digest::Digest;
use super::follow::Follower;
use super::prepare::{PROGRESS_FILE, Prepared};
use super::progress::Progress;
use super::ring::Ring;
use super::sampler::{Sampler, Setup};
use super::scribe::{Desk, Entry, Final, LastWords, Scribe};
use super::state::End;

/// How long the end waits for the last of the output to be read.
const DIGEST_PATIENCE: Duration = Duration::from_millis(500);
/// How long git may take to tell whether the work tree is clean.
const GIT_PATIENCE: Duration = Duration::from_secs(2);

/// A run as its watchers see it.
pub struct Watching {
    /// The run's clock.
    pub clock: RunClock,
    /// The main process.
    pub child: u32,
    /// What was relayed.
    pub ring: Arc<Ring>,
    /// The relays.
    pub relays: Vec<Arc<relay::Progress>>,
    /// The process beside us.
    pub beside: Option<Arc<Beside>>,
}

/// The watchers, seen from the supervisor.
pub struct Watchers {
    clock: RunClock,
    desk: Desk,
    finish: Arc<EventFd>,
    done: Arc<EventFd>,
    end: Arc<Mutex<Option<(End, Instant)>>>,
    words: LastWords,
    dir: Option<PathBuf>,
    own: Arc<Mutex<Vec<u32>>>,
}

impl Watchers {
    /// Starts them. A thread that can't be had costs what it would have done, never the run.
    pub fn start(prepared: Prepared, watching: Watching) -> std::io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let (desk, tray) = Desk::new();
        let watchers = Self {
            clock: watching.clock.clone(),
            desk: desk.clone(),
            finish: Arc::new(EventFd::from_value_and_flags(0, flags)?),
            done: Arc::new(EventFd::from_value_and_flags(0, flags)?),
            end: Arc::default(),
            words: LastWords::default(),
            dir: prepared.dir.as_ref().map(|dir| dir.path().to_owned()),
            own: Arc::default(),
        };
        watchers.log(Event::Started {
            pid: watching.child,
        });
        let progress = Progress::default();
        let read = watchers.start_digest(&watching, progress.clone())?;
        let record = first_record(&prepared, &watching);
        watchers.start_git(&prepared, &record)?;
        let setup = watchers.setup(&prepared, watching, progress.clone());
        watchers.start_sampler(setup, read, progress)?;
        let at_home = prepared.request.dir.is_none();
        let words = Arc::clone(&watchers.words);
        let scribe = Scribe::new(prepared.dir, at_home, record, prepared.notes, words);
        let done = Arc::clone(&watchers.done);
        spawn("scribe", move || {
            scribe.run(&tray);
            // Can only fail if the counter is full, and then it is readable anyway.
            let _ = done.write(1);
        })?;
        Ok(watchers)
    }

    fn setup(&self, prepared: &Prepared, watching: Watching, progress: Progress) -> Setup {
        let placement = &prepared.placement;
        Setup {
            clock: watching.clock,
            supervisor: std::process::id(),
            child: watching.child,
            beside: watching.beside,
            watch: placement.watch.clone(),
            heard: placement.heard.clone(),
            said_unwatched: !placement.said.is_empty() && placement.chosen.is_none(),
            interval: prepared.request.interval,
            relays: watching.relays,
            progress,
            follower: self
                .dir
                .as_ref()
                .and_then(|dir| std::fs::File::open(dir.join(PROGRESS_FILE)).ok())
                .map(Follower::new),
            desk: self.desk.clone(),
            finish: Arc::clone(&self.finish),
        }
    }

    fn start_digest(
        &self,
        watching: &Watching,
        progress: Progress,
    ) -> std::io::Result<Receiver<()>> {
        let digest = Digest {
            clock: watching.clock.clone(),
            ring: Arc::clone(&watching.ring),
            relays: watching.relays.clone(),
            progress,
            desk: self.desk.clone(),
        };
        let (ended, read) = channel();
        spawn("digest", move || {
            digest.run();
            // Nobody waits any more if the run has ended without us.
            let _ = ended.send(());
        })?;
        Ok(read)
    }

    fn start_sampler(
        &self,
        setup: Setup,
        read: Receiver<()>,
        progress: Progress,
    ) -> std::io::Result<()> {
        let (clock, desk, end) = (self.clock.clone(), self.desk.clone(), Arc::clone(&self.end));
        spawn("sampler", move || {
            let sampler = Sampler::new(setup);
            let leftovers: Vec<Leftover> = sampler.run(|| {
                // What is late is late: the streams are at their end.
                let _ = read.recv_timeout(DIGEST_PATIENCE);
            });
            let end = end.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((end, at)) = end {
                let ended = clock.at(at);
                let progress = progress.now();
                desk.put(Entry::Final(Box::new(Final {
                    end,
                    ended,
                    progress,
                    leftovers,
                })));
            }
        })
    }

    /// Asks git, which may be slow, whether the work tree is clean.
    fn start_git(&self, prepared: &Prepared, record: &RunRecord) -> std::io::Result<()> {
        let root = record.project.clone().filter(|_| prepared.dir.is_some());
        let Some(root) = root.filter(|_| record.git.is_some()) else {
            return Ok(());
        };
        let (desk, own) = (self.desk.clone(), Arc::clone(&self.own));
        spawn("git", move || {
            let mut started = |pid| own.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
            let state = git_state(root.as_ref(), GIT_PATIENCE, &mut started);
            desk.put(Entry::Git(state));
        })
    }

    /// Readable when the record is complete.
    pub fn done_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }

    /// Children of ours that are no part of the job and are waited for by whoever started them.
    pub fn own_children(&self) -> Vec<u32> {
        self.own
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Notes an event.
    pub fn log(&self, event: Event) {
        self.desk.event(self.clock.now(), event);
    }

    /// Somebody asked the run to end.
    pub fn cancelling(&self) {
        self.desk.put(Entry::Cancelling);
    }

    /// The child has ended at this instant.
    pub fn finish(&self, end: End, at: Instant) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some((end, at));
        // As above.
        let _ = self.finish.write(1);
    }

    /// What to say at the end.
    pub fn last_words(&self) -> String {
        let words = self
            .words
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        words.unwrap_or_else(|| match &self.dir {
            Some(dir) => format!(
                "gpuwatch: the record in {} is incomplete: writing it takes too long\n",
                crate::report::text::clean(&dir.to_string_lossy())
            ),
            None => String::new(),
        })
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map(drop)
}

/// The record as it is known at the start.
fn first_record(prepared: &Prepared, watching: &Watching) -> RunRecord {
    let cwd = identity::cwd();
    let project = cwd.as_deref().map(identity::project);
    let git = cwd
        .as_deref()
        .and_then(identity::work_tree)
        .map(|root| crate::model::GitState {
            commit: identity::commit(&root),
            dirty: None,
        });
    let text = |path: PathBuf| argv::escape(path.as_os_str());
    RunRecord {
        schema: 1,
        id: prepared.id.clone(),
        name: prepared.name.clone(),
        tags: prepared.request.tags.clone(),
        argv: argv::recorded(&prepared.request.argv),
        cwd: cwd.map(text),
        project: project.map(text),
        user: Some(identity::user()),
        host: identity::host(),
        git,
        env: env::recorded(&prepared.env),
        profile: Some("default".to_owned()),
        job: job_ids(),
        pid: Some(watching.child),
        started: watching.clock.started(),
        state: RunState::Running,
        ..RunRecord::default()
    }
}

fn job_ids() -> JobIds {
    job::job_ids(&|name| std::env::var(name).ok())
}
