//! The thread that looks: at what the helper says of the GPUs, at the job's processes, at the
//! host, once an interval. The helper's tick is the tick; where it fails to come, ours is.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;

use crate::launch::relay;
use crate::model::{Event, GpuChange, GpuInfo, GpuSample, Inventory, ProcessChange, Sample, Stamp};
use crate::nvml::attribute;
use crate::nvml::health::Health;
use crate::nvml::protocol::{FromHelper, Watched};
use crate::observe::{HostReader, JobTick, JobTree, ProcFs, asks, cgroup_root};
use crate::report::Leftover;
use crate::sys::fault;
use crate::sys::streams::standard;

#[path = "sampler_end.rs"]
mod end;

use super::beside::Beside;
use super::clock::{Drift, RunClock};
use super::desk::{Desk, Entry};
use super::evidence::{Job, Members};
use super::frameworks::Frameworks;
use super::job_process;
use super::ledger::{self, Ledger};
use super::placement::Watch;
use super::progress::Progress;
use super::revival::Revival;
use super::said::SaidFile;

/// How long the last look may wait for the helper.
const LAST_LOOK: Duration = Duration::from_millis(150);
/// A helper's tick may be this late before ours takes its place.
const LEAST_SLACK: Duration = Duration::from_millis(300);
/// Silence of the driver that is worth a word. A little longer than the helper takes to name
/// the call that hangs, which says more.
const SILENCE: Duration = Duration::from_secs(4);
/// So many changes of processes a tick are told one by one; a build forks thousands.
const MOST_CHANGES: usize = 64;
/// So many of the job's processes are asked whether they wait at a terminal.
const MOST_ASKED: usize = 16;
/// A reader that takes nothing for this long is worth a line.
const BLOCKED: Duration = Duration::from_secs(5);

/// What it needs.
pub struct Setup {
    /// The run's clock.
    pub clock: RunClock,
    /// Our PID, whose descendants are the job.
    pub supervisor: u32,
    /// The main process, as it is known here,
    pub child: u32,
    /// and as it is.
    pub main: Arc<AtomicU32>,
    /// The process beside us, if there is one.
    pub beside: Option<Arc<Beside>>,
    /// Its PID, also when it is gone.
    pub beside_pid: Option<u32>,
    /// Which GPUs are watched.
    pub watch: Watch,
    /// What the helper has said already.
    pub heard: Vec<FromHelper>,
    /// Whether that no GPU is watched was said before the start.
    pub said_unwatched: bool,
    /// Time between samples.
    pub interval: Duration,
    /// Children of ours that are no part of the job, as they come.
    pub own: Arc<Mutex<Vec<u32>>>,
    /// Where the job's processes are told.
    pub job: Job,
    /// The relays.
    pub relays: Vec<Arc<relay::Progress>>,
    /// Where training stands.
    pub progress: Progress,
    /// What the command says itself.
    pub said: Option<SaidFile>,
    /// The record.
    pub desk: Desk,
    /// Readable when the end has come.
    pub finish: Arc<EventFd>,
}

/// The sampler.
pub struct Sampler {
    setup: Setup,
    tree: JobTree,
    /// For looks at single processes.
    proc: ProcFs,
    /// Who waits for somebody at a terminal.
    asking: Option<u32>,
    frameworks: Frameworks,
    host: HostReader,
    health: Health,
    drift: Drift,
    watched: Vec<GpuInfo>,
    ledger: Ledger,
    revival: Revival,
    /// Whether ticks are to be expected from the helper.
    ticking: bool,
    last: Instant,
    last_tick: Instant,
    said_silent: bool,
    blocked: bool,
}

impl Sampler {
    /// Gets ready; nothing is read yet.
    pub fn new(setup: Setup) -> Self {
        let mut fs = ProcFs::default();
        let main = fs.identity(setup.child).ok();
        let tree = job_process::tree(fs, setup.supervisor, main);
        let host = HostReader::new(ProcFs::default(), cgroup_root(), None);
        Self {
            tree,
            proc: ProcFs::default(),
            asking: None,
            frameworks: Frameworks::new(setup.child),
            host,
            health: Health::new(),
            drift: Drift::default(),
            watched: Vec::new(),
            ledger: Ledger::default(),
            revival: Revival::default(),
            ticking: false,
            last: Instant::now(),
            last_tick: Instant::now(),
            said_silent: false,
            blocked: false,
            setup,
        }
    }

    /// Looks until the end, waits for the last of the output to be read, and looks once more.
    /// Returns what outlived the child.
    pub fn run(mut self, read_to_the_end: impl FnOnce()) -> Vec<Leftover> {
        self.start_helper();
        let heard = std::mem::take(&mut self.setup.heard);
        if !self.expects_helper() {
            self.sample(None);
        }
        for message in heard {
            self.hear(message);
        }
        while !self.wait(self.next_due()) {
            self.receive();
            self.revive();
            if Instant::now() >= self.next_due() {
                self.overdue();
            }
        }
        read_to_the_end();
        self.last_look();
        self.leftovers()
    }

    /// Whether the first row can wait for the helper's first word: it comes within a moment,
    /// or not for seconds, and then ours comes after an interval.
    fn expects_helper(&self) -> bool {
        self.setup.watch != Watch::Nothing && self.setup.beside.is_some()
    }

    fn start_helper(&mut self) {
        if self.setup.watch == Watch::Nothing {
            // Nobody is told of readings that nobody asked for.
            self.setup.said_unwatched = true;
            return;
        }
        let started = self
            .setup
            .beside
            .as_ref()
            .map(|beside| beside.become_helper());
        let why = match started {
            Some(Ok(())) => return,
            Some(Err(error)) => error.to_string(),
            None => "its helper can't be started".to_owned(),
        };
        self.hear(FromHelper::Failed { why });
    }

    fn next_due(&self) -> Instant {
        let interval = self.setup.interval;
        let slack = if self.ticking {
            (interval / 2).max(LEAST_SLACK)
        } else {
            Duration::ZERO
        };
        self.last + interval + slack
    }

    /// Waits for the helper or until then; true when the end has come.
    fn wait(&self, until: Instant) -> bool {
        let finish = PollFd::new(self.setup.finish.as_fd(), PollFlags::POLLIN);
        let mut fds = vec![finish];
        let helper = self.setup.beside.as_ref().and_then(|b| b.helper_fd());
        fds.extend(helper.map(|fd| PollFd::new(standard(fd), PollFlags::POLLIN)));
        // Rounded up, or the last millisecond would be spent spinning.
        let left = until.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
        // Interrupted or not, everything is looked at again.
        let _ = poll(
            &mut fds,
            PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX),
        );
        fds[0].any() == Some(true)
    }

    fn receive(&mut self) {
        let Some(beside) = self.setup.beside.clone() else {
            return;
        };
        if let Ok(messages) = beside.receive() {
            for message in messages {
                self.hear(message);
            }
        } else {
            beside.forget_helper();
            self.ticking = false;
            let events = self.health.gone();
            self.tell(&self.setup.clock.now(), events);
            let at = self.setup.clock.elapsed_s(Instant::now());
            if self.revival.is_unused() && !self.watched.is_empty() {
                self.problem(format!(
                    "no GPU is read for a while: the helper process ended after {at:.0} s"
                ));
            }
            self.await_successor("it ended again");
        }
    }

    /// A helper is gone, or can't be had.
    fn await_successor(&mut self, why: &str) {
        if !self.revival.after_death(Instant::now()) {
            let at = self.setup.clock.elapsed_s(Instant::now());
            self.problem(format!(
                "no GPU is read since {at:.0} s: the process that reads them can't be kept up: {why}"
            ));
        }
    }

    /// Starts the successor of a helper that died, when it is time.
    fn revive(&mut self) {
        let Some(beside) = self.setup.beside.clone() else {
            return;
        };
        if !self.revival.is_due(Instant::now()) {
            return;
        }
        // Nobody looks at our children from before there is one until its PID is known.
        let mut own = self
            .setup
            .own
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let started = beside.new_helper();
        own.extend(started.as_ref().map(Child::id));
        drop(own);
        match started {
            Ok(child) => self.revival.born(child),
            Err(error) => self.await_successor(&error.to_string()),
        }
    }

    fn hear(&mut self, message: FromHelper) {
        let events = self.health.hear(&message);
        self.tell(&self.setup.clock.now(), events);
        match message {
            FromHelper::Inventory(inventory) => self.meet(inventory),
            FromHelper::Tick { gpus, .. } => {
                // A look that was ordered before the run knew what to watch isn't its sample.
                let ours = |g: &GpuSample| self.watched.iter().any(|w| g.is_of(w));
                if !self.watched.is_empty() && gpus.iter().all(ours) {
                    self.ticking = true;
                    self.last_tick = Instant::now();
                    self.said_silent = false;
                    self.sample(Some(gpus));
                }
            }
            FromHelper::Failed { why } => {
                self.ticking = false;
                if !std::mem::replace(&mut self.setup.said_unwatched, true) {
                    self.problem(format!("no GPU is watched: {why}"));
                }
                self.sample(None);
            }
            FromHelper::Stuck { for_s, .. } => self.silent_since(Duration::from_secs_f64(for_s)),
            FromHelper::Unstuck | FromHelper::Xid { .. } => {}
        }
    }

    /// The driver has said nothing for so long; said once a silence.
    fn silent_since(&mut self, silent: Duration) {
        if !std::mem::replace(&mut self.said_silent, true) {
            let at = self.setup.clock.elapsed_s(Instant::now()) - silent.as_secs_f64();
            self.problem(format!("NVML stopped answering after {:.0} s", at.max(0.0)));
        }
    }

    /// What there is, and so what to watch.
    fn meet(&mut self, inventory: Inventory) {
        let watched = self.setup.watch.resolve(&inventory);
        if let Some(text) = self.setup.watch.doubt(&inventory) {
            self.problem(text);
        }
        if let (Some(beside), false) = (&self.setup.beside, watched.is_empty()) {
            beside.watch(Watched::of(&watched), self.setup.interval);
        }
        if watched.is_empty() && !std::mem::replace(&mut self.setup.said_unwatched, true) {
            self.problem(self.setup.watch.why_none());
        }
        self.watched.clone_from(&watched);
        self.setup
            .desk
            .put(Entry::Gpus(Box::new((inventory, watched))));
    }

    /// No tick of the helper came in time.
    fn overdue(&mut self) {
        self.sample(None);
        let silent = self.last_tick.elapsed();
        if self.ticking && silent >= SILENCE.max(self.setup.interval * 3) {
            let events = self.health.silent(silent.as_secs_f64());
            self.silent_since(silent);
            self.tell(&self.setup.clock.now(), events);
        }
    }

    /// One tick. Without readings of the GPUs theirs are missing, not stale.
    fn sample(&mut self, gpus: Option<Vec<GpuSample>>) {
        let now = Instant::now();
        let since_last_s = (now - std::mem::replace(&mut self.last, now)).as_secs_f64();
        let gpus = gpus.unwrap_or_else(|| self.watched.iter().map(ledger::unread).collect());
        let job = self.look_at_job(since_last_s);
        self.setup
            .job
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&Members::from(&job));
        let host = self.host.tick(since_last_s);
        if let Some(said) = &mut self.setup.said {
            said.look();
        }
        let shares: Vec<_> = gpus
            .iter()
            .map(|gpu| attribute::share(gpu, &job.pids))
            .collect();
        if let Some(text) = self.ledger.attribute(&gpus, &job.pids) {
            self.setup.desk.put(Entry::Attribution(text));
        }
        let bases: Vec<_> = gpus
            .iter()
            .map(|gpu| self.ledger.since_start(gpu))
            .collect();
        let errors: Vec<Event> = gpus
            .iter()
            .zip(&bases)
            .filter_map(|(gpu, base)| self.ledger.errors(gpu, &base.1))
            .collect();
        let sample = Sample {
            stamp: self.setup.clock.at(self.last),
            job_mem_mib: shares.iter().map(|s| s.mem_mib.clone()).collect(),
            job_sm_pct: shares.into_iter().map(|s| s.sm_pct).collect(),
            energy_j: bases.iter().map(|b| b.0.clone()).collect(),
            ecc_uncorrected: bases.into_iter().map(|b| b.1).collect(),
            gpus,
            job: job.sample.clone(),
            host: host.sample.clone(),
            out_bytes: self.setup.relays.iter().map(|r| r.bytes()).sum(),
            progress: self.setup.progress.now(),
        };
        let mut events = job.events(MOST_CHANGES);
        events.extend(errors);
        events.extend(host.event());
        events.extend(self.drift.look());
        events.extend(self.blocked_reader());
        events.extend(self.who_asks(&job.pids));
        let at_s = sample.stamp.elapsed_s;
        events.extend(self.frameworks.look(&mut self.proc, &job.pids, at_s));
        // What is new at this look is known when its numbers are judged.
        self.tell(&sample.stamp, events);
        self.setup.desk.put(Entry::Sample(Box::new(sample)));
    }

    /// Nobody starts a process of our own meanwhile, which would look like one of the job.
    fn look_at_job(&mut self, since_last_s: f64) -> JobTick {
        fault::at("sampler");
        let own = self
            .setup
            .own
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let ours = own.iter().copied().chain(self.setup.beside_pid).collect();
        self.tree.set_ours(ours);
        let main = self.setup.main.load(Ordering::Relaxed);
        if main != self.setup.child
            && let Ok(id) = self.proc.identity(main)
        {
            self.setup.child = main;
            self.tree.set_main(id);
            self.frameworks = Frameworks::new(main);
        }
        self.tree.tick(since_last_s)
    }

    /// A process that has begun, or ceased, to wait for somebody at a terminal.
    fn who_asks(&mut self, job: &BTreeSet<u32>) -> Vec<Event> {
        let prompted = self.setup.relays.iter().any(|relay| relay.mid_line());
        let now = job
            .iter()
            .take(MOST_ASKED)
            .copied()
            .find(|pid| asks(&mut self.proc, *pid, prompted));
        let before = std::mem::replace(&mut self.asking, now);
        if before == now {
            return Vec::new();
        }
        let change = |pid: Option<u32>, change, on: Option<&str>| {
            pid.map(|pid| Event::Process {
                pid,
                ppid: None,
                name: None,
                rank: None,
                change,
                on: on.map(str::to_owned),
                code: None,
                signal: None,
            })
        };
        let ceased = change(before, ProcessChange::Running, None);
        let begun = change(now, ProcessChange::Blocked, Some("terminal"));
        ceased.into_iter().chain(begun).collect()
    }

    fn blocked_reader(&mut self) -> Option<Event> {
        let longest = self
            .setup
            .relays
            .iter()
            .map(|r| r.blocked_for())
            .max()
            .unwrap_or_default();
        let was = std::mem::replace(&mut self.blocked, longest >= BLOCKED);
        (self.blocked && !was).then(|| Event::Relay {
            blocked_s: (longest.as_secs_f64() * 10.0).round() / 10.0,
        })
    }

    fn tell(&self, stamp: &Stamp, events: Vec<Event>) {
        for event in events {
            if let Event::Gpu { gpu, change, .. } = &event {
                let at = stamp.elapsed_s;
                match change {
                    GpuChange::Lost => self.problem(format!("GPU {gpu} was lost after {at:.0} s")),
                    GpuChange::Unavailable => self.problem(format!(
                        "nothing could be read of GPU {gpu} after {at:.0} s"
                    )),
                    _ => {}
                }
            }
            self.setup.desk.event(stamp.clone(), event);
        }
    }

    fn problem(&self, text: String) {
        self.setup.desk.put(Entry::Problem(text));
    }
}
