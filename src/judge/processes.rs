//! The job's processes as events tell of them.
//!
//! Owns who lives, who waits for what, and when the main process ended. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Event, Logged, ProcessChange, Sample};

use super::facts::NOTEBOOKS;

/// So many are kept apart; a build forks thousands.
const MOST: usize = 4096;
/// After so many samples with the main process's cores, their absence means that it ended.
const MAIN_SEEN: u32 = 5;

/// One process.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// Its short name.
    pub name: Option<String>,
    /// Its rank.
    pub rank: Option<u32>,
    /// What it waits on.
    pub on: Option<String>,
    /// It is stopped.
    pub stopped: bool,
    /// It ended and nobody has reaped it since this second of the run.
    pub zombie_since: Option<f64>,
    /// Its parent ended.
    pub orphaned: bool,
    /// It listens on a socket.
    pub listens: Option<String>,
}

/// A process that is gone.
#[derive(Clone, Debug)]
pub struct Gone {
    /// When, in seconds of the run.
    pub at_s: f64,
    /// Its PID.
    pub pid: u32,
    /// Its rank.
    pub rank: u32,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// Those that live or wait to be reaped.
    pub live: BTreeMap<u32, Member>,
    /// The main process.
    pub main: Option<u32>,
    /// When the main process ended, in seconds of the run.
    pub main_ended_s: Option<f64>,
    /// The last rank that ended.
    pub lost_rank: Option<Gone>,
    /// The first one that ended while the main process lived, and whether it is told apart: several
    /// that ended between two looks have no order.
    first_gone: Option<(Gone, bool)>,
    /// Ranks that ended and were not started anew.
    gone: BTreeSet<u32>,
    /// A name that tells of a notebook was seen.
    pub interactive: bool,
    /// This is not the first attempt: who isn't known was the last one's.
    pub again: bool,
    main_cores: u32,
    main_missing: u32,
}

impl Processes {
    /// Nothing is known but the main process's PID, if that, and whether the command is a
    /// notebook's.
    pub fn of(main: Option<u32>, interactive: bool) -> Self {
        Self {
            main,
            interactive,
            ..Self::default()
        }
    }

    /// Takes in an event.
    pub fn event(&mut self, logged: &Logged) {
        let at_s = logged.stamp.elapsed_s;
        match &logged.event {
            Event::Started { pid } => self.main = Some(*pid),
            Event::Exited { .. } => {
                self.main_ended_s.get_or_insert(at_s);
            }
            Event::Process {
                pid,
                name,
                rank,
                change,
                on,
                ..
            } => self.change(at_s, *pid, name.as_ref(), *rank, *change, on.as_ref()),
            _ => {}
        }
    }

    /// Without events the main process's end shows by its cores: they are no longer told
    /// although the others' are.
    pub fn sample(&mut self, sample: &Sample) {
        let job = &sample.job;
        if job.main_cores.get().is_some() {
            self.main_cores = self.main_cores.saturating_add(1);
            self.main_missing = 0;
            return;
        }
        let others = job.cpu_cores.get().is_some() && job.procs.get() != Some(0);
        let told = self.main.is_some_and(|main| self.live.contains_key(&main));
        if self.main_cores >= MAIN_SEEN && others && !told {
            self.main_missing += 1;
            if self.main_missing >= 3 {
                self.main_ended_s.get_or_insert(sample.stamp.elapsed_s);
            }
        }
    }

    /// Whether every process that is known is stopped.
    pub fn all_stopped(&self) -> bool {
        let mut alive = self.live.values().filter(|m| m.zombie_since.is_none());
        alive.next().is_some_and(|m| m.stopped) && alive.all(|m| m.stopped)
    }

    /// Whether any process waits on this.
    pub fn waits_on(&self, what: &str) -> bool {
        self.live.values().any(|m| m.on.as_deref() == Some(what))
    }

    /// Those that live after the main process.
    pub fn left(&self) -> impl Iterator<Item = (&u32, &Member)> {
        let left =
            |(pid, m): &(&u32, &Member)| Some(**pid) != self.main && m.zombie_since.is_none();
        self.live.iter().filter(left)
    }

    /// Whether what started the main process is gone, as a patrol tells of a job that was left
    /// behind. In a run its parent is gpuwatch.
    pub fn is_left_behind(&self) -> bool {
        let main = self.main.and_then(|main| self.live.get(&main));
        self.main_ended_s.is_none() && main.is_some_and(|m| m.orphaned)
    }

    /// Whether any of them listens on a socket.
    pub fn listens(&self) -> bool {
        self.live.values().any(|m| m.listens.is_some())
    }

    /// The first rank that ended while the main process lived, where one did before all others.
    pub fn first_gone(&self) -> Option<&Gone> {
        let (gone, alone) = self.first_gone.as_ref()?;
        alone.then_some(gone)
    }

    fn is_gone(&mut self, gone: Gone) {
        self.gone.insert(gone.rank);
        match &mut self.first_gone {
            Some((first, alone)) => {
                *alone &= first.rank == gone.rank || first.at_s < gone.at_s;
            }
            None if self.main_ended_s.is_none() => self.first_gone = Some((gone.clone(), true)),
            None => {}
        }
        self.lost_rank = Some(gone);
    }

    /// Who started the ranks has started one anew, and so all of them, or as many as are left.
    fn starts(&mut self, rank: u32) {
        if self.gone.contains(&rank) {
            self.gone.clear();
            self.lost_rank = None;
            self.first_gone = None;
        }
    }

    fn change(
        &mut self,
        at_s: f64,
        pid: u32,
        name: Option<&String>,
        rank: Option<u32>,
        change: ProcessChange,
        on: Option<&String>,
    ) {
        if let Some(name) = name {
            self.interactive |= NOTEBOOKS.iter().any(|n| name.contains(n));
        }
        let is_end = matches!(change, ProcessChange::Exited | ProcessChange::Zombie);
        if self.again && is_end && !self.live.contains_key(&pid) {
            return;
        }
        let is_main = Some(pid) == self.main;
        if matches!(change, ProcessChange::Exited | ProcessChange::Zombie) {
            if is_main {
                self.main_ended_s.get_or_insert(at_s);
            }
            let rank = rank.or_else(|| self.live.get(&pid).and_then(|m| m.rank));
            if let Some(rank) = rank {
                let gone = Gone { at_s, pid, rank };
                self.is_gone(gone);
            }
        }
        if change == ProcessChange::Exited {
            self.live.remove(&pid);
            return;
        }
        if self.live.len() >= MOST && !self.live.contains_key(&pid) {
            return;
        }
        if let (ProcessChange::Started, Some(rank)) = (change, rank) {
            self.starts(rank);
        }
        let member = self.live.entry(pid).or_default();
        member.name = name.cloned().or_else(|| member.name.take());
        member.rank = rank.or(member.rank);
        match change {
            ProcessChange::Stopped => member.stopped = true,
            ProcessChange::Continued => member.stopped = false,
            ProcessChange::Zombie => member.zombie_since = Some(at_s),
            ProcessChange::Reparented => member.orphaned = true,
            ProcessChange::Blocked => member.on = on.cloned(),
            ProcessChange::Running => member.on = None,
            ProcessChange::Listening => member.listens = on.cloned(),
            ProcessChange::Started | ProcessChange::Exited => {}
        }
    }
}
