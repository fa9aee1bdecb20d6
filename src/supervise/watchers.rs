//! The threads beside the byte path: digest, sampler, scribe; and how they end.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::judge::{JobFacts, Judge};
use crate::launch::relay;
use crate::model::{Event, Leftovers, OwnProcesses, Pattern, SourceState, Stream};
use crate::observe::{git_state, identity};
use crate::report::{Fate, Leftover};
use crate::sys::defect::{caught, sentence};
use crate::sys::fault;
use crate::tell::{Happening, Teller};

use super::alarm::{Alarm, start_teller};
use super::beside::Beside;
use super::clock::RunClock;
use super::desk::{Desk, Entry, Final, Tray};
use super::digest::Digest;
use super::evidence::Job;
use super::facts::Facts;
use super::last_words::{Afterwards, LastWords, Words};
use super::metrics::{self, Closing, Feed};
use super::orders::Orders;
use super::prepare::Prepared;
use super::progress::Progress;
use super::ring::Ring;
use super::sampler::{Sampler, Setup};
use super::scribe::{Scribe, TELLING};
use super::state::End;
use super::threads::{spawn, wait_for};

#[path = "watchers_again.rs"]
mod again;
#[path = "watchers_files.rs"]
mod files;

/// How long the end waits for the last of the output to be read.
const DIGEST_PATIENCE: Duration = Duration::from_millis(500);
/// How long the record may take once the child's streams are at their end.
const LAST_WORDS: Duration = Duration::from_millis(1500);
/// How long git may take to tell whether the work tree is clean.
const GIT_PATIENCE: Duration = Duration::from_secs(2);

/// A run as its watchers see it.
#[derive(Clone)]
pub struct Watching {
    /// The run's clock.
    pub clock: RunClock,
    /// The main process.
    pub child: u32,
    /// The same, as it is started again.
    pub main: Arc<AtomicU32>,
    /// What was relayed.
    pub ring: Arc<Ring>,
    /// The relays.
    pub relays: Vec<Arc<relay::Progress>>,
    /// The process beside us.
    pub beside: Option<Arc<Beside>>,
    /// What is to be done to the job.
    pub orders: Option<Arc<Orders>>,
}

/// What rings at the end of a run. Made before its start: without it nothing may be started.
#[derive(Clone)]
pub struct Bells {
    finish: Arc<EventFd>,
    done: Arc<EventFd>,
}

impl Bells {
    /// Both silent.
    pub fn new() -> std::io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self {
            finish: Arc::new(EventFd::from_value_and_flags(0, flags)?),
            done: Arc::new(EventFd::from_value_and_flags(0, flags)?),
        })
    }
}

/// What the supervisor knows of the end.
struct Last {
    end: End,
    at: Instant,
    /// What was waited for, ended, or could not be ended.
    handled: Vec<Leftover>,
}

/// The watchers, seen from the supervisor.
pub struct Watchers {
    clock: RunClock,
    desk: Desk,
    bells: Bells,
    progress: Progress,
    /// Threads without which nobody writes the end.
    samples: bool,
    writes: bool,
    end: Arc<Mutex<Option<Last>>>,
    words: LastWords,
    dir: Option<PathBuf>,
    /// The main process.
    main: Arc<AtomicU32>,
    own: Arc<Mutex<Vec<u32>>>,
    /// The process beside us, which is as little part of the job.
    beside: Option<u32>,
    hurry: Arc<AtomicBool>,
    job: Job,
    /// What ends with the run.
    pub(super) metrics: Closing,
    patience: Duration,
}

impl Watchers {
    /// Nobody: of a run that nobody hears about, or of which this is all there is to say.
    pub fn none(watching: &Watching, bells: Bells, words: Option<String>) -> Self {
        let nobody = Self::new(watching, Desk::new().0, bells, None, LAST_WORDS);
        if let Some(words) = words {
            nobody.words.set(Words::of(words));
        }
        nobody
    }

    fn new(
        watching: &Watching,
        desk: Desk,
        bells: Bells,
        dir: Option<PathBuf>,
        patience: Duration,
    ) -> Self {
        Self {
            clock: watching.clock.clone(),
            desk,
            bells,
            progress: Progress::default(),
            samples: false,
            writes: false,
            end: Arc::default(),
            words: LastWords::default(),
            dir,
            main: Arc::clone(&watching.main),
            own: Arc::default(),
            beside: watching.beside.as_ref().map(|b| b.sentinel().pid()),
            hurry: Arc::default(),
            job: Job::default(),
            metrics: Closing::default(),
            patience,
        }
    }

    /// Starts them. A thread that can't be had costs what it would have done, never the run.
    pub fn start(mut prepared: Prepared, watching: Watching, bells: Bells) -> Self {
        fault::at("watchers");
        let (desk, tray) = Desk::new();
        let dir = prepared.dir.as_ref().map(|dir| dir.path().to_owned());
        let patience = if prepared.channels.is_empty() {
            LAST_WORDS
        } else {
            LAST_WORDS + TELLING
        };
        let mut watchers = Self::new(&watching, desk.clone(), bells, dir, patience);
        watchers.log(Event::Started {
            pid: watching.child,
        });
        if let Some((name, by)) = &prepared.request.settings.framework {
            watchers.log(Event::Framework {
                name: name.clone(),
                gpu: None,
                why: by.clone(),
            });
        }
        let progress = watchers.progress.clone();
        let follow = watchers.start_follow(&mut prepared, &watching);
        let patterns = &prepared.request.settings.patterns;
        let followed = prepared.request.settings.follow.clone();
        let (read, digest) = watchers.start_digest(&watching, patterns, followed);
        let git = match prepared.dir {
            Some(_) => watchers.start_git(),
            None => Ok(()),
        };
        let facts = Facts::of(&prepared, Some(watching.child), watching.clock.started());
        let orders = watching.orders.clone();
        let setup = watchers.setup(&prepared, watching, progress.clone());
        let sampler = watchers.start_sampler(setup, read, progress);
        let outlets = std::mem::take(&mut prepared.outlets);
        let (feed, closing) = metrics::start(outlets, &watchers.desk);
        watchers.metrics = closing;
        let scribe = watchers.start_scribe(prepared, facts, tray, (feed, orders));
        (watchers.samples, watchers.writes) = (sampler.is_ok(), scribe.is_ok());
        for (what, started) in [
            ("no progress is read", digest),
            ("no other files are followed", follow),
            ("the work tree isn't looked at", git),
            ("no samples are taken", sampler),
            ("no record is written", scribe),
        ] {
            if let Err(error) = started {
                let text = format!("{what}: no thread to be had: {error}");
                watchers.desk.put(Entry::Problem(text));
            }
        }
        watchers
    }

    fn start_scribe(
        &self,
        prepared: Prepared,
        facts: Facts,
        tray: Tray,
        (feed, orders): (Feed, Option<Arc<Orders>>),
    ) -> std::io::Result<()> {
        let (words, done) = (self.words.clone(), Arc::clone(&self.bells.done));
        let at_home = prepared.request.dir.is_none();
        let settings = prepared.request.settings;
        let own = OwnProcesses::from(Arc::clone(&self.own));
        let (desk, clock, job) = (self.desk.clone(), self.clock.clone(), Arc::clone(&self.job));
        let (said, main) = (words.clone(), Arc::clone(&self.main));
        let afterwards = Afterwards {
            gates: settings.gates,
            ends_leftovers: settings.end.leftovers == Leftovers::Kill,
            runner: prepared.request.runner.clone(),
        };
        let write = move || {
            // Looking up a user or a directory can take as long as a network takes.
            let record = facts.record();
            let judge = Judge::new(settings.judge, settings.rules, JobFacts::of(&record));
            let teller = start_teller(prepared.channels, &record, &desk, clock, &own);
            let inlet = teller.as_ref().map(Teller::inlet).unwrap_or_default();
            inlet.tell(Happening::Started);
            let dir = prepared.dir.as_ref().map(|dir| dir.path().to_owned());
            let alarm = Alarm::new(settings.act, inlet, desk, own, job, (main, dir), orders);
            let judging = (judge, alarm, teller, feed);
            let scribe = Scribe::new(
                prepared.dir,
                at_home,
                record,
                prepared.notes,
                words,
                afterwards,
                judging,
            );
            scribe.run(&tray);
        };
        spawn("scribe", move || {
            if let Err(why) = caught(write) {
                let text = sentence("the record is incomplete", &why);
                said.set(Words::of(format!("gpuwatch: {text}\n")));
            }
            // Can only fail if the counter is full, and then it is readable anyway.
            let _ = done.write(1);
        })
    }

    /// How long the end may take.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    fn setup(&self, prepared: &Prepared, watching: Watching, progress: Progress) -> Setup {
        let placement = &prepared.placement;
        Setup {
            clock: watching.clock,
            supervisor: std::process::id(),
            child: watching.child,
            main: watching.main,
            beside_pid: watching.beside.as_ref().map(|b| b.sentinel().pid()),
            beside: watching.beside,
            own: Arc::clone(&self.own),
            job: Arc::clone(&self.job),
            watch: placement.watch.clone(),
            heard: placement.heard.clone(),
            said_unwatched: !placement.said.is_empty() && placement.chosen.is_none(),
            interval: prepared.request.settings.interval,
            relays: watching.relays,
            progress,
            said: self.said(),
            desk: self.desk.clone(),
            finish: Arc::clone(&self.bells.finish),
        }
    }

    fn start_digest(
        &self,
        watching: &Watching,
        patterns: &[Pattern],
        followed: Vec<PathBuf>,
    ) -> (Receiver<()>, std::io::Result<()>) {
        let digest = Digest {
            clock: watching.clock.clone(),
            ring: Arc::clone(&watching.ring),
            relays: watching.relays.clone(),
            progress: self.progress.clone(),
            patterns: self.compiled(patterns),
            followed,
            desk: self.desk.clone(),
            hurry: Arc::clone(&self.hurry),
        };
        let (ended, read) = channel();
        let started = spawn("digest", move || {
            digest.run();
            // Nobody waits any more if the run has ended without us.
            let _ = ended.send(());
        });
        (read, started)
    }

    fn start_sampler(
        &self,
        setup: Setup,
        read: Receiver<()>,
        progress: Progress,
    ) -> std::io::Result<()> {
        let (clock, desk, end) = (self.clock.clone(), self.desk.clone(), Arc::clone(&self.end));
        let finish = Arc::clone(&setup.finish);
        let watch = move || {
            Sampler::new(setup).run(|| {
                // What is late is late: the streams are at their end.
                let _ = read.recv_timeout(DIGEST_PATIENCE);
            })
        };
        spawn("sampler", move || {
            let leftovers = caught(watch).unwrap_or_else(|why| {
                let text = sentence("no samples are taken any more", &why);
                desk.put(Entry::Problem(text));
                // Nobody else hands in the end.
                wait_for(&finish);
                Vec::new()
            });
            let end = end.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(last) = end {
                let ended = clock.at(last.at);
                let progress = progress.now();
                let leftovers = all_left(leftovers, last.handled);
                for left in leftovers.iter().filter(|left| left.fate == Fate::Lives) {
                    let command = left.command.as_deref().unwrap_or_default();
                    let result = format!("left: {command} (PID {})", left.pid);
                    let what = "leftovers".to_owned();
                    desk.event(clock.now(), Event::Action { what, result });
                }
                desk.put(Entry::Final(Box::new(Final {
                    end: last.end,
                    ended,
                    progress,
                    leftovers,
                })));
            }
        })
    }

    /// Asks git, which may be slow, whether the work tree is clean.
    fn start_git(&self) -> std::io::Result<()> {
        let (desk, own) = (self.desk.clone(), Arc::clone(&self.own));
        let problems = desk.clone();
        let ask = move || {
            let Some(root) = identity::cwd().and_then(|cwd| identity::work_tree(&cwd)) else {
                return;
            };
            // From before there is a process until its PID is known.
            let mut list = Some(own.lock().unwrap_or_else(PoisonError::into_inner));
            let mut started = |pid| {
                if let Some(mut list) = list.take() {
                    list.push(pid);
                }
            };
            let state = git_state(&root, GIT_PATIENCE, &mut started);
            desk.put(Entry::Git(state));
        };
        spawn("git", move || {
            if let Err(why) = caught(ask) {
                let text = sentence("whether the work tree is clean is unknown", &why);
                problems.put(Entry::Problem(text));
            }
        })
    }

    /// Readable when the record is complete.
    pub fn done_fd(&self) -> BorrowedFd<'_> {
        self.bells.done.as_fd()
    }

    /// Does something for which our own children must be told from the job's: none is started
    /// meanwhile. None while one is being started.
    pub fn apart_from_own<T>(&self, action: impl FnOnce(&[u32]) -> T) -> Option<T> {
        let own = match self.own.try_lock() {
            Ok(own) => own,
            Err(TryLockError::Poisoned(own)) => own.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let ours: Vec<u32> = own.iter().copied().chain(self.beside).collect();
        Some(action(&ours))
    }

    /// Notes what we did.
    pub fn act(&self, what: &str, result: String) {
        let what = what.to_owned();
        self.log(Event::Action { what, result });
    }

    /// A sentence for the summary.
    pub fn problem(&self, text: String) {
        self.desk.put(Entry::Problem(text));
    }

    /// Notes an event.
    pub fn log(&self, event: Event) {
        self.desk.event(self.clock.now(), event);
    }

    /// Output is lost to the user, and the command may never know: what to say of it.
    pub fn undelivered(&self, stream: Stream, error: &std::io::Error) -> String {
        let name = match stream {
            Stream::Out => "stdout",
            Stream::Err => "stderr",
        };
        self.log(Event::Source {
            name: name.to_owned(),
            state: SourceState::Failed,
            why: Some(error.to_string()),
        });
        let text = format!("the command's {name} is cut off: it can't be written: {error}");
        self.problem(text.clone());
        text
    }

    /// Something is lost by a defect of ours.
    pub fn defect(&self, lost: &str, why: &str) {
        self.problem(sentence(lost, why));
    }

    /// Somebody asked the run to end.
    pub fn cancelling(&self) {
        self.desk.put(Entry::Cancelling);
    }

    /// The child has ended at this instant.
    /// `handled`: what of the job outlived it and was seen to.
    pub fn finish(&self, end: End, at: Instant, handled: Vec<Leftover>) {
        self.hurry.store(true, Ordering::Relaxed);
        let last = Last {
            end,
            at,
            handled: handled.clone(),
        };
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
        // As above.
        let _ = self.bells.finish.write(1);
        if !self.writes {
            // Nobody is to be waited for.
            let _ = self.bells.done.write(1);
        } else if !self.samples {
            // Nobody else would hand it in.
            let ended = self.clock.at(at);
            let progress = self.progress.now();
            self.desk.put(Entry::Final(Box::new(Final {
                end,
                ended,
                progress,
                leftovers: handled,
            })));
        }
    }

    /// What to say at the end.
    pub fn last_words(&self) -> Words {
        let why = if self.writes {
            "writing it takes too long"
        } else {
            "there was no thread to be had for it"
        };
        self.words.take().unwrap_or_else(|| match &self.dir {
            Some(dir) => Words::of(format!(
                "gpuwatch: the record in {} is incomplete: {why}\n",
                crate::report::text::clean(&dir.to_string_lossy())
            )),
            None => Words::default(),
        })
    }
}

/// Those that live still, as they were seen last, and what became of the others.
fn all_left(mut living: Vec<Leftover>, handled: Vec<Leftover>) -> Vec<Leftover> {
    for one in handled {
        match (living.iter_mut().find(|l| l.pid == one.pid), &one.fate) {
            (Some(known), Fate::Stuck(_)) => known.fate = one.fate,
            (Some(_), _) => {}
            (None, _) => living.push(Leftover {
                fate: Fate::Ended,
                ..one
            }),
        }
    }
    living
}
