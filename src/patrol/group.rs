//! Which processes that hold a GPU are one job.
//!
//! Owns the order in which that is decided, and who was left behind. Pure: what `/proc` said is an
//! argument. Two users' processes are never one job. The order:
//!
//! 1. a gpuwatch run, where a gpuwatch is among the ancestors;
//! 2. what a scheduler, a container engine or `systemd-run` made one unit of, by the cgroup;
//! 3. the tree: up from the process as long as the parent is of its process group and no shell,
//!    or launched it as one of several ranks;
//! 4. what is left of a tree whose top is gone: the process group.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::ProcessId;

/// Programs that start jobs which have nothing to do with each other.
const STARTERS: [&str; 14] = [
    "sh", "bash", "dash", "zsh", "fish", "ksh", "csh", "tcsh", "make", "xargs", "parallel", "tmux",
    "screen", "sshd",
];

/// What the kernel calls a gpuwatch that watches a run.
pub const GPUWATCH: &str = "gpuwatch";

/// A tree isn't deeper; a list of parents that loops was read while PIDs were used again.
const DEEPEST: usize = 64;

/// A process as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Who.
    pub id: ProcessId,
    /// Its parent.
    pub ppid: u32,
    /// Its process group.
    pub pgrp: u32,
    /// Its session.
    pub session: u32,
    /// Its user.
    pub uid: u32,
    /// Its short name.
    pub name: String,
}

/// What is known of a process that holds a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The gpuwatch run that it says it belongs to.
    pub run: Option<String>,
    /// The scheduler's job, container or transient unit that it is in.
    pub unit: Option<String>,
    /// A launcher started it as one of several.
    pub rank: bool,
    /// It was meant to live on without a terminal (`nohup`).
    pub stays: bool,
}

/// The processes that hold a GPU, those above them, and which leaders live.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// By PID.
    pub procs: BTreeMap<u32, Seen>,
    /// Those that hold a GPU.
    pub holders: BTreeMap<u32, Marks>,
    /// Leaders of sessions and process groups that live.
    pub leaders: BTreeSet<u32>,
}

/// What makes processes one job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A run that a gpuwatch watches.
    Run(String),
    /// A unit of a scheduler, a container engine or systemd.
    Unit(String),
    /// The process group of a tree whose top is gone.
    Left(u32),
    /// A tree of processes.
    Tree,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its user.
    pub uid: u32,
    /// Why these are one.
    pub kind: Kind,
    /// The process that it goes by; another one is another job.
    pub main: ProcessId,
    /// The tops of its trees, the main process first.
    pub roots: Vec<ProcessId>,
    /// Those of it that hold a GPU.
    pub holders: BTreeSet<u32>,
}

impl Group {
    /// Whether a gpuwatch watches it already and tells its user.
    pub fn is_watched(&self) -> bool {
        matches!(self.kind, Kind::Run(_))
    }

    /// Whether what started it is gone.
    pub fn is_left_behind(&self) -> bool {
        matches!(self.kind, Kind::Left(_))
    }

    /// Whether it is the same job, at another look. What started a tree may be gone by now.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_tree = |kind: &Kind| matches!(kind, Kind::Tree | Kind::Left(_));
        let alike = self.kind == other.kind || is_tree(&self.kind) && is_tree(&other.kind);
        (self.uid, self.main) == (other.uid, other.main) && alike
    }
}

/// Whatever is alike in these is one job: the user, the kind, of a tree its top.
type Key = (u32, Kind, Option<ProcessId>);
/// Start, PID and top of one that holds a GPU.
type Member<'a> = (u64, u32, &'a Seen);

impl Scene {
    /// The jobs, by user and start.
    pub fn groups(&self) -> Vec<Group> {
        let mut found: BTreeMap<Key, Vec<Member<'_>>> = BTreeMap::new();
        for (pid, marks) in &self.holders {
            let Some(holder) = self.procs.get(pid) else {
                continue;
            };
            let top = self.top(holder, marks);
            let kind = self.kind(holder, top, marks);
            let of = (kind == Kind::Tree).then_some(top.id);
            let members = found.entry((holder.uid, kind, of)).or_default();
            members.push((holder.id.start, *pid, top));
        }
        let mut groups: Vec<Group> = found
            .into_iter()
            .filter_map(|((uid, kind, _), mut members)| {
                members.sort_by_key(|(start, pid, _)| (*start, *pid));
                let main = members.first()?.2.id;
                let mut roots = Vec::new();
                for (.., top) in &members {
                    if !roots.contains(&top.id) {
                        roots.push(top.id);
                    }
                }
                let holders = members.iter().map(|(_, pid, _)| *pid).collect();
                Some(Group {
                    uid,
                    kind,
                    main,
                    roots,
                    holders,
                })
            })
            .collect();
        groups.sort_by_key(|group| (group.uid, group.main.start, group.main.pid));
        groups
    }

    fn kind(&self, holder: &Seen, top: &Seen, marks: &Marks) -> Kind {
        match (&marks.run, &marks.unit) {
            (Some(run), _) if self.has_gpuwatch_above(holder) => Kind::Run(run.clone()),
            (_, Some(unit)) => Kind::Unit(unit.clone()),
            _ if !marks.stays && self.is_left(top) => Kind::Left(top.pgrp),
            _ => Kind::Tree,
        }
    }

    fn parent(&self, of: &Seen) -> Option<&Seen> {
        self.procs.get(&of.ppid).filter(|p| p.id.pid != of.id.pid)
    }

    /// How far up the tree is one job.
    fn top<'a>(&'a self, holder: &'a Seen, marks: &Marks) -> &'a Seen {
        let mut at = holder;
        let mut is_rank = marks.rank;
        for _ in 0..DEEPEST {
            let Some(parent) = self.parent(at) else { break };
            let same = (parent.pgrp, parent.session) == (at.pgrp, at.session);
            let starter = STARTERS.contains(&parent.name.as_str()) || parent.name == GPUWATCH;
            if parent.id.pid <= 1 || parent.uid != at.uid || starter || !(same || is_rank) {
                break;
            }
            // Whether a launcher of ranks was itself launched as one isn't known.
            is_rank = false;
            at = parent;
        }
        at
    }

    fn has_gpuwatch_above(&self, holder: &Seen) -> bool {
        let mut at = holder;
        for _ in 0..DEEPEST {
            match self.parent(at) {
                Some(parent) if parent.name == GPUWATCH => return true,
                Some(parent) => at = parent,
                None => return false,
            }
        }
        false
    }

    /// Whether what started it is gone. A child is of its parent's session unless it leads one of
    /// its own, so one whose parent is of another session was handed to a reaper. A daemon, or
    /// what is in the background of a shell, is its own leader, or its shell lives.
    fn is_left(&self, top: &Seen) -> bool {
        let Some(parent) = self.parent(top) else {
            return false;
        };
        let handed_on = top.session != top.id.pid && parent.session != top.session;
        let leaderless = !self.leaders.contains(&top.session) || !self.leaders.contains(&top.pgrp);
        handed_on && leaderless
    }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
