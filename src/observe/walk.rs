//! Finding the processes that joined the job.
//!
//! Owns the ways to find them without a look at every process of the machine: PIDs that were
//! given out since the last look are asked for their parent, and `task/*/children` files are
//! followed now and then. Measures nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::parse::Stat;
use super::proc_fs::{Kept, ProcFs, is_gone};
use super::process::Process;

/// Whoever was missed is found after this long at the latest (one with few threads).
const WALK_EVERY_S: f64 = 5.0;

/// More new PIDs than this since the last look are cheaper found by a walk.
const PROBE_AT_MOST: u32 = 256;

/// Children files of secondary threads that one walk reads. A training job has thousands of
/// threads, nearly none of which forks; they take turns.
const THREADS_A_WALK: usize = 128;

/// What the job consists of, as far as it is known.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The process whose children belong to the job without itself belonging to it.
    pub supervisor: Option<u32>,
    /// The job's known processes.
    pub known: &'a BTreeMap<u32, Process>,
    /// Children of the supervisor that don't belong to the job.
    pub ours: &'a BTreeSet<u32>,
}

impl View<'_> {
    fn is_unknown(&self, pid: u32) -> bool {
        !self.known.contains_key(&pid) && !self.ours.contains(&pid) && Some(pid) != self.supervisor
    }

    fn is_parent(&self, pid: u32) -> bool {
        self.known.contains_key(&pid) || Some(pid) == self.supervisor
    }
}

/// A process that joined, and its short name.
pub type Found = (Stat, Vec<u8>);

/// Remembers how far it has looked.
#[derive(Debug, Default)]
pub struct Walker {
    loadavg: Kept,
    last_pid: Option<u32>,
    since_walk_s: f64,
    /// The last secondary thread whose children were read: (pid, tid).
    turn: (u32, u32),
    /// This kernel has no `children` files (`CONFIG_PROC_CHILDREN` is off).
    scans: bool,
    begun: bool,
}

impl Walker {
    /// Who joined since the last call; `vanished` if somebody left meanwhile.
    pub fn find(
        &mut self,
        fs: &mut ProcFs,
        view: View<'_>,
        elapsed_s: f64,
        vanished: bool,
    ) -> Vec<Found> {
        // Read before looking: a process that starts during the look has a PID past it.
        let last = fs.last_pid(&mut self.loadavg).ok();
        let before = std::mem::replace(&mut self.last_pid, last);
        self.since_walk_s += elapsed_s;
        if !std::mem::replace(&mut self.begun, true) {
            return self.walk(fs, view, true);
        }
        let mut found = Vec::new();
        let quiet = before.is_some() && before == last;
        let news = before
            .zip(last)
            .and_then(|(a, b)| b.checked_sub(a).map(|n| (a, n)));
        let probed = match news {
            // Whoever watches several jobs would ask each new process once for each of them.
            Some((first, n)) if n <= PROBE_AT_MOST && view.supervisor.is_some() => {
                found = probe(fs, view, first, n);
                true
            }
            _ => false,
        };
        let due = self.since_walk_s >= WALK_EVERY_S;
        // A scan of all processes is too dear for anything but its turn.
        if due || (!self.scans && (!probed || (quiet && vanished))) {
            for (stat, name) in self.walk(fs, view, false) {
                if found.iter().all(|(known, _)| known.pid != stat.pid) {
                    found.push((stat, name));
                }
            }
        }
        found
    }

    /// Follows every thread of every known process.
    pub fn find_all(&mut self, fs: &mut ProcFs, view: View<'_>) -> Vec<Found> {
        self.begun = true;
        self.walk(fs, view, true)
    }

    fn walk(&mut self, fs: &mut ProcFs, view: View<'_>, complete: bool) -> Vec<Found> {
        self.since_walk_s = 0.0;
        if self.scans {
            return scan(fs, view);
        }
        let mut pids: Vec<u32> = view.supervisor.into_iter().collect();
        pids.extend(
            view.known
                .values()
                .filter(|p| !p.is_zombie())
                .map(|p| p.id.pid),
        );
        let known = pids.len();
        let mut follow = Follow {
            fs,
            view,
            pids,
            found: Vec::new(),
        };
        let mut next = 0;
        let mut turn_taken = complete;
        loop {
            while let Some(&pid) = follow.pids.get(next) {
                // Whoever is new may have forked from any thread already.
                let all_threads = complete || next >= known || Some(pid) == view.supervisor;
                if !follow.children_of(pid, all_threads) {
                    self.scans = true;
                    return scan(follow.fs, view);
                }
                next += 1;
            }
            if turn_taken {
                return follow.found;
            }
            self.turn = follow.take_turn(self.turn);
            turn_taken = true;
        }
    }
}

/// An unfinished walk.
struct Follow<'a, 'b> {
    fs: &'a mut ProcFs,
    view: View<'b>,
    /// Whose children are to be read, in this order.
    pids: Vec<u32>,
    found: Vec<Found>,
}

impl Follow<'_, '_> {
    /// False where the kernel has no `children` files.
    fn children_of(&mut self, pid: u32, all_threads: bool) -> bool {
        if !self.thread(pid, pid) {
            // Gone in between, or never there?
            let mut tids = Vec::new();
            return !(self.fs.threads(pid, &mut tids).is_ok() && tids.contains(&pid));
        }
        let threads = self.view.known.get(&pid).map_or(0, |p| p.threads);
        if all_threads && threads != 1 {
            let mut tids = Vec::new();
            // A process that ended meanwhile has no children left to find.
            let _ = self.fs.threads(pid, &mut tids);
            for tid in tids.into_iter().filter(|tid| *tid != pid) {
                self.thread(pid, tid);
            }
        }
        true
    }

    /// Reads one thread's children; false where its file isn't there.
    fn thread(&mut self, pid: u32, tid: u32) -> bool {
        let mut children = Vec::new();
        let read = self.fs.children(pid, tid, &mut children);
        for child in children {
            if self.view.is_unknown(child)
                && !self.pids.contains(&child)
                && let Ok((stat, name)) = self.fs.stat(child)
            {
                let name = name.to_vec();
                self.found.push((stat, name));
                self.pids.push(child);
            }
        }
        !read.is_err_and(|error| is_gone(&error))
    }

    /// Reads some secondary threads' children, from where the last walk stopped: at this
    /// process, past this thread.
    fn take_turn(&mut self, (at, past): (u32, u32)) -> (u32, u32) {
        let known = self.view.known;
        let several = known
            .range(at..)
            .chain(known.range(..at))
            .filter(|(_, p)| p.threads > 1 && !p.is_zombie());
        let mut left = THREADS_A_WALK;
        let mut tids = Vec::new();
        for (&pid, _) in several {
            tids.clear();
            if self.fs.threads(pid, &mut tids).is_err() {
                continue;
            }
            let done = if pid == at { past } else { 0 };
            for &tid in tids.iter().filter(|tid| **tid != pid && **tid > done) {
                if left == 0 {
                    return (pid, tid - 1);
                }
                left -= 1;
                self.thread(pid, tid);
            }
        }
        (0, 0)
    }
}

/// Asks each PID of `first + 1 ..= first + n` whether its parent belongs to the job.
fn probe(fs: &mut ProcFs, view: View<'_>, first: u32, n: u32) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for pid in (1..=n).map(|i| first + i) {
        if !view.is_unknown(pid) {
            continue;
        }
        let Ok((stat, name)) = fs.stat(pid) else {
            continue;
        };
        // Threads take PIDs, too, and are told by the signal that their end doesn't send.
        let leader = stat.exit_signal >= 0;
        let ours = view.is_parent(stat.ppid) || found.iter().any(|(p, _)| p.pid == stat.ppid);
        if leader && ours {
            let name = name.to_vec();
            found.push((stat, name));
        }
    }
    found
}

/// Looks at every process of the machine.
fn scan(fs: &mut ProcFs, view: View<'_>) -> Vec<Found> {
    let mut pids = Vec::new();
    // What can't be listed has no processes that we could find.
    let _ = fs.pids(&mut pids);
    let mut strangers: Vec<Found> = pids
        .into_iter()
        .filter(|pid| view.is_unknown(*pid))
        .filter_map(|pid| {
            let (stat, name) = fs.stat(pid).ok()?;
            Some((stat, name.to_vec()))
        })
        .collect();
    let mut found: Vec<Found> = Vec::new();
    loop {
        let (joined, rest): (Vec<_>, Vec<_>) = strangers.into_iter().partition(|(stat, _)| {
            view.is_parent(stat.ppid) || found.iter().any(|(p, _)| p.pid == stat.ppid)
        });
        if joined.is_empty() {
            return found;
        }
        found.extend(joined);
        strangers = rest;
    }
}
