//! The job's process tree, tick by tick.
//!
//! Owns who belongs to the job and what the job did since the last tick. The job is every
//! descendant of the supervisor (a subreaper, so that orphans and daemons stay its descendants)
//! except its own helpers; whoever joined stays a member until it ends. Judges nothing, signals
//! nobody, reaps nobody.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Event, JobSample, ProcessChange, Reading, Why};

use super::mounts::WorkingPlace;
use super::parse;
use super::proc_fs::{Kept, ProcFs, ProcessId};
use super::process::{Process, ProcessChangeFact, ProcessState};
use super::ranks::RankOf;
use super::rates;
use super::totals::{Totals, Units};
use super::walk::{Found, View, Walker};

/// Open files a process: `stat`, `statm`, `io`.
const FILES_A_PROCESS: u64 = 3;
/// Processes whose files stay open, at the most.
const KEEP_AT_MOST: u64 = 128;

/// What one tick gave.
#[derive(Clone, Debug, Default)]
pub struct JobTick {
    /// The numbers.
    pub sample: JobSample,
    /// The job's processes, zombies included.
    pub pids: BTreeSet<u32>,
    /// Those of them that are ranks, and which.
    pub ranks: BTreeMap<u32, u32>,
    /// What happened since the last tick, in the order seen.
    pub changes: Vec<ProcessChangeFact>,
}

impl JobTick {
    /// What happened, as events: so many one by one, and how many more there were.
    pub fn events(&self, most: usize) -> Vec<Event> {
        let told = self.changes.iter().take(most).cloned();
        let mut events: Vec<Event> = told.map(Event::from).collect();
        if self.changes.len() > most {
            events.push(Event::Dropped {
                what: "process events".to_owned(),
                n: (self.changes.len() - most) as u64,
            });
        }
        events
    }
}

/// A process that outlived the main one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Who.
    pub id: ProcessId,
    /// Its short name.
    pub name: String,
    /// What it does.
    pub state: ProcessState,
}

/// The job.
#[derive(Debug)]
pub struct JobTree {
    fs: ProcFs,
    supervisor: Option<u32>,
    /// Processes to watch from, until they are known; only where no supervisor is.
    roots: Vec<ProcessId>,
    main: Option<ProcessId>,
    main_seen: bool,
    ours: BTreeSet<u32>,
    known: BTreeMap<u32, Process>,
    walker: Walker,
    place: WorkingPlace,
    uptime: Kept,
    /// Clock ticks since boot at the last tick.
    last_tick_at: Option<u64>,
    units: Units,
    first_done: bool,
    appeared: u32,
    changes: Vec<ProcessChangeFact>,
    keep_left: u64,
    rank_of: Option<RankOf>,
}

impl JobTree {
    /// The job of a supervisor: its descendants, except those in `exclude` and theirs.
    pub fn new(
        fs: ProcFs,
        supervisor: u32,
        exclude: BTreeSet<u32>,
        main: Option<ProcessId>,
    ) -> Self {
        Self {
            fs,
            supervisor: Some(supervisor),
            roots: Vec::new(),
            main,
            main_seen: false,
            ours: exclude,
            known: BTreeMap::new(),
            walker: Walker::default(),
            place: WorkingPlace::default(),
            uptime: Kept::default(),
            last_tick_at: None,
            units: Units {
                ticks_per_s: rustix::param::clock_ticks_per_second(),
                page_bytes: rustix::param::page_size() as u64,
            },
            first_done: false,
            appeared: 0,
            changes: Vec::new(),
            keep_left: keep_at_most(),
            rank_of: None,
        }
    }

    /// Tells the ranks of a job apart by this.
    #[must_use]
    pub fn tell_ranks(mut self, rank_of: RankOf) -> Self {
        self.rank_of = Some(rank_of);
        self
    }

    /// A process that already runs, and its descendants. One that is forked and orphaned
    /// between two ticks escapes: nobody adopts it for us.
    pub fn attached(fs: ProcFs, root: ProcessId) -> Self {
        Self {
            supervisor: None,
            roots: vec![root],
            // Several such trees may be watched at once.
            keep_left: 0,
            ..Self::new(fs, 0, BTreeSet::new(), Some(root))
        }
    }

    /// Another process that belongs to it, with its descendants.
    pub fn add_root(&mut self, root: ProcessId) {
        if !self.known.contains_key(&root.pid) && !self.roots.contains(&root) {
            self.roots.push(root);
        }
    }

    /// Which process `main_cores` and the working directory are about.
    pub fn set_main(&mut self, main: ProcessId) {
        self.main = Some(main);
        self.main_seen = false;
    }

    /// Which children of the supervisor don't belong to the job (nor do theirs): helpers, hooks.
    /// One that had already been taken for a member is dropped without a word.
    pub fn set_ours(&mut self, pids: BTreeSet<u32>) {
        self.known.retain(|pid, _| !pids.contains(pid));
        self.ours = pids;
    }

    /// Looks at the job, `elapsed_s` (monotonic seconds) after the last tick.
    pub fn tick(&mut self, elapsed_s: f64) -> JobTick {
        let now = self.ticks_since_boot();
        let vanished = self.refresh();
        self.look_at_ranks();
        let found = self.look_for(elapsed_s, vanished);
        self.welcome(found);
        self.last_tick_at = now;
        if let Some(main) = self.main {
            self.place.look(&mut self.fs, main.pid);
        }
        let first = !std::mem::replace(&mut self.first_done, true);
        let mut totals = Totals::new(self.place.is_network(), first);
        for process in self.known.values_mut() {
            process.measure(&mut self.fs);
            let gains = process.close_tick();
            totals.add(process, gains.as_ref());
            if Some(process.id) == self.main {
                totals.main(gains.as_ref());
                self.main_seen = true;
            }
        }
        let forks = std::mem::take(&mut self.appeared);
        let mut sample = totals.sample(elapsed_s, self.units);
        if !first {
            sample.forks = Reading::Value(forks);
        }
        if self.main.is_some_and(|main| self.has_ended(main)) {
            sample.main_cores = Reading::Missing(Why::Failed("the main process ended".to_owned()));
        }
        JobTick {
            sample,
            pids: self.known.keys().copied().collect(),
            ranks: self.known.values().filter_map(Process::as_rank).collect(),
            changes: std::mem::take(&mut self.changes),
        }
    }

    /// What lives of the job besides the main process: looked up now and thoroughly. Changes
    /// that come to light are told by the next tick.
    pub fn leftovers(&mut self) -> Vec<Leftover> {
        self.refresh();
        let view = View {
            supervisor: self.supervisor,
            known: &self.known,
            ours: &self.ours,
        };
        let found = self.walker.find_all(&mut self.fs, view);
        self.welcome(found);
        self.known
            .values()
            .filter(|p| !p.is_zombie() && Some(p.id) != self.main)
            .map(|p| Leftover {
                id: p.id,
                name: p.name.clone(),
                state: p.state,
            })
            .collect()
    }

    /// Whether the main process was seen and is no more (or a zombie).
    fn has_ended(&self, main: ProcessId) -> bool {
        self.main_seen
            && self
                .known
                .get(&main.pid)
                .is_none_or(|p| p.id != main || p.is_zombie())
    }

    /// Looks at the known ones again; true if somebody ended.
    fn refresh(&mut self) -> bool {
        let (fs, changes) = (&mut self.fs, &mut self.changes);
        let mut ended = Vec::new();
        for (pid, process) in &mut self.known {
            if !process.refresh(fs, changes) {
                ended.push(*pid);
            }
        }
        // Children have the higher PIDs as a rule: what they leave goes up the tree.
        for pid in ended.iter().rev() {
            let Some(process) = self.known.remove(pid) else {
                continue;
            };
            changes.push(process.fact(ProcessChange::Exited));
            self.keep_left += u64::from(process.is_kept());
            if let Some(parent) = self.known.get_mut(&process.ppid) {
                parent.inherit(process.bequest());
            }
        }
        !ended.is_empty()
    }

    fn look_for(&mut self, elapsed_s: f64, vanished: bool) -> Vec<Found> {
        let mut roots = Vec::new();
        for root in std::mem::take(&mut self.roots) {
            let Ok((stat, name)) = self.fs.stat(root.pid) else {
                continue;
            };
            if stat.start == root.start && !self.known.contains_key(&root.pid) {
                roots.push((stat, name.to_vec()));
            }
        }
        self.welcome(roots);
        let view = View {
            supervisor: self.supervisor,
            known: &self.known,
            ours: &self.ours,
        };
        self.walker.find(&mut self.fs, view, elapsed_s, vanished)
    }

    fn welcome(&mut self, found: Vec<Found>) {
        for (stat, name) in found {
            let newborn = self.first_done && self.last_tick_at.is_some_and(|at| stat.start >= at);
            let keep = self.keep_left > 0;
            let Some(mut process) = Process::found(&stat, &name, newborn, keep) else {
                continue;
            };
            self.look_at_rank(&mut process);
            self.keep_left -= u64::from(keep);
            self.appeared += 1;
            self.changes.push(process.fact(ProcessChange::Started));
            if process.is_zombie() {
                self.changes.push(process.fact(ProcessChange::Zombie));
            }
            self.known.insert(stat.pid, process);
        }
    }

    /// Parents have the lower PIDs as a rule, and were found before their children.
    fn look_at_ranks(&mut self) {
        if self.rank_of.is_none() {
            return;
        }
        let unsure = self.known.values().filter(|p| p.place.is_unsure());
        for pid in unsure.map(|p| p.id.pid).collect::<Vec<_>>() {
            if let Some(mut process) = self.known.remove(&pid) {
                self.look_at_rank(&mut process);
                self.known.insert(pid, process);
            }
        }
    }

    /// Of a process that waits in the kernel nothing more can be asked.
    fn look_at_rank(&mut self, process: &mut Process) {
        if let Some(rank_of) = self.rank_of
            && process.state != ProcessState::Disk
        {
            let parent = self.known.get(&process.ppid).map(|p| p.place);
            let pid = process.id.pid;
            process.place.look(&mut self.fs, pid, rank_of, parent);
        }
    }

    fn ticks_since_boot(&mut self) -> Option<u64> {
        let text = self
            .uptime
            .read(&mut self.fs, true, format_args!("uptime"))
            .ok()?;
        parse::uptime_centis(text)
            .map(|centis| rates::centis_to_ticks(centis, self.units.ticks_per_s))
    }
}

/// How many processes may keep their files open: a part of what this process may open at all.
fn keep_at_most() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(KEEP_AT_MOST, |files| {
        (files / 2 / FILES_A_PROCESS).min(KEEP_AT_MOST)
    })
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
