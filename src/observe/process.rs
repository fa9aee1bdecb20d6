//! One process of the job between two looks.
//!
//! Owns its identity, its last two looks and its open files. Knows nothing of the tree.

use std::io;

use crate::model::{Event, ProcessChange, Reading, Why};

use super::parse::{self, Io, Stat, Statm};
use super::proc_fs::{Kept, ProcFs, ProcessId, is_gone, not_understood, why};
use super::ranks::Place;
use super::rates::gained;

/// What happened to a process of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessChangeFact {
    /// Who.
    pub id: ProcessId,
    /// Its parent, as last seen.
    pub ppid: u32,
    /// Its short name, as last seen.
    pub name: String,
    /// Its rank, as far as is known.
    pub rank: Option<u32>,
    /// What.
    pub change: ProcessChange,
}

impl From<ProcessChangeFact> for Event {
    fn from(fact: ProcessChangeFact) -> Self {
        Self::Process {
            pid: fact.id.pid,
            ppid: Some(fact.ppid),
            name: Some(fact.name),
            rank: fact.rank,
            change: fact.change,
            on: None,
            code: None,
            signal: None,
        }
    }
}

/// What a process does at the moment of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// Runs, or would if a core were free (R).
    Running,
    /// Sleeps (S, I and the kernel's rarer letters).
    Sleeping,
    /// Waits for a device, unkillable (D).
    Disk,
    /// Is stopped by job control or a tracer (T, t).
    Stopped,
    /// Has ended and waits to be reaped (Z).
    Zombie,
}

impl ProcessState {
    /// What a `stat` says; `None` for a process that is just vanishing (X, x).
    ///
    /// A main thread that ended before its process's other threads reads Z, too: such a process
    /// lives, and what its threads do isn't told, so it counts as asleep.
    fn of(stat: &Stat) -> Option<Self> {
        Some(match stat.state {
            b'R' => Self::Running,
            b'D' => Self::Disk,
            b'T' | b't' => Self::Stopped,
            b'Z' if stat.threads <= 1 => Self::Zombie,
            b'X' | b'x' => return None,
            _ => Self::Sleeping,
        })
    }
}

/// Counters of a process at one look, since it began.
#[derive(Clone, Debug, PartialEq)]
struct Look {
    cpu_ticks: u64,
    majflt: u64,
    io: Reading<Io>,
}

/// A process's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Resident, in pages: all of it, and what isn't anonymous.
    pub pages: Statm,
    /// The part that is shared memory, in KiB.
    pub shmem_kib: Reading<u64>,
}

/// What a process did between two looks; what can't be told is missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Gains {
    /// CPU time in ticks.
    pub cpu_ticks: u64,
    /// Faults that needed storage.
    pub majflt: u64,
    /// Bytes.
    pub io: Reading<Io>,
}

/// A process of the job.
#[derive(Debug)]
pub struct Process {
    /// Who.
    pub id: ProcessId,
    /// Its parent.
    pub ppid: u32,
    /// Its short name (`comm`), changed by an exec.
    pub name: String,
    /// At the last look.
    pub state: ProcessState,
    /// At the last look.
    pub threads: u32,
    /// Memory at the last look.
    pub memory: Reading<Memory>,
    /// Why the last look failed, where it failed while the process lives.
    pub unread: Option<Why>,
    /// Which rank it is.
    pub place: Place,
    now: Look,
    before: Option<Look>,
    /// What children that were reaped since the last tick had been seen to do: the kernel adds
    /// it to this process's own counters at that moment.
    inherited: Io,
    keep: bool,
    files: [Kept; 3],
}

impl Process {
    /// A process that was just found; `newborn` if it can't be older than the last tick, so
    /// that all it did counts as done since then. `None` for one that is just vanishing.
    pub fn found(stat: &Stat, name: &[u8], newborn: bool, keep: bool) -> Option<Self> {
        let begun = Look {
            cpu_ticks: 0,
            majflt: 0,
            io: Reading::Value(Io::default()),
        };
        Some(Self {
            id: ProcessId {
                pid: stat.pid,
                start: stat.start,
            },
            ppid: stat.ppid,
            name: String::from_utf8_lossy(name).into_owned(),
            state: ProcessState::of(stat)?,
            threads: stat.threads,
            memory: Reading::default(),
            unread: None,
            place: Place::default(),
            now: Look {
                cpu_ticks: stat.utime + stat.stime,
                majflt: stat.majflt,
                io: Reading::default(),
            },
            before: newborn.then_some(begun),
            inherited: Io::default(),
            keep,
            files: Default::default(),
        })
    }

    /// Whether its files are kept open.
    pub fn is_kept(&self) -> bool {
        self.keep
    }

    /// Whether it has ended and only waits to be reaped.
    pub fn is_zombie(&self) -> bool {
        self.state == ProcessState::Zombie
    }

    /// Looks at its `stat` again. False where the process is no more, or its PID another's.
    pub fn refresh(&mut self, fs: &mut ProcFs, changes: &mut Vec<ProcessChangeFact>) -> bool {
        let [stat_file, ..] = &mut self.files;
        let read = stat_file
            .read(fs, self.keep, format_args!("{}/stat", self.id.pid))
            .and_then(|text| parse::stat(text).ok_or_else(not_understood));
        let (stat, name) = match read {
            Ok(read) => read,
            Err(error) => {
                self.unread = Some(why(&error));
                return !is_gone(&error);
            }
        };
        let Some(state) = ProcessState::of(&stat) else {
            return false;
        };
        if stat.start != self.id.start {
            return false;
        }
        self.unread = None;
        if self.name.as_bytes() != name {
            self.name = String::from_utf8_lossy(name).into_owned();
        }
        self.threads = stat.threads;
        self.now.cpu_ticks = stat.utime + stat.stime;
        self.now.majflt = stat.majflt;
        let (was, parent) = (self.state, self.ppid);
        (self.state, self.ppid) = (state, stat.ppid);
        if parent != stat.ppid {
            changes.push(self.fact(ProcessChange::Reparented));
        }
        changes.extend(self.state_change(was).map(|change| self.fact(change)));
        true
    }

    fn state_change(&self, was: ProcessState) -> Option<ProcessChange> {
        use ProcessState::{Stopped, Zombie};
        match (was, self.state) {
            (was, now) if was == now => None,
            (_, Zombie) => Some(ProcessChange::Zombie),
            (_, Stopped) => Some(ProcessChange::Stopped),
            (Stopped, _) => Some(ProcessChange::Continued),
            _ => None,
        }
    }

    /// Reads its memory and what it read and wrote.
    pub fn measure(&mut self, fs: &mut ProcFs) {
        if self.state != ProcessState::Zombie {
            self.memory = self.read_memory(fs);
        }
        let [.., io_file] = &mut self.files;
        let io = io_file
            .read(fs, self.keep, format_args!("{}/io", self.id.pid))
            .and_then(|text| parse::io(text).ok_or_else(not_understood));
        match io {
            Ok(io) => self.now.io = Reading::Value(io),
            // It ended during this tick: the next one says so, and what was seen stays.
            Err(error) if self.ends_now(fs, &error) => {}
            Err(error) => self.now.io = Reading::Missing(why(&error)),
        }
    }

    /// `statm` tells all but shared memory. That takes `status`, which costs as much as all else
    /// together, so it is read only when what `statm` counts as shared has changed.
    fn read_memory(&mut self, fs: &mut ProcFs) -> Reading<Memory> {
        let pid = self.id.pid;
        let [_, statm_file, _] = &mut self.files;
        let statm = statm_file
            .read(fs, self.keep, format_args!("{pid}/statm"))
            .and_then(|text| parse::statm(text).ok_or_else(not_understood));
        let pages = match statm {
            Ok(pages) => pages,
            // It ended during this tick, and its memory with it.
            Err(error) if is_gone(&error) => Statm::default(),
            Err(error) => return Reading::Missing(why(&error)),
        };
        if let Reading::Value(last) = &self.memory
            && last.pages.shared == pages.shared
            && last.shmem_kib.value().is_some()
        {
            let shmem_kib = last.shmem_kib.clone();
            return Reading::Value(Memory { pages, shmem_kib });
        }
        let shmem_kib = if pages == Statm::default() {
            Reading::Value(0)
        } else {
            match fs.read(format_args!("{pid}/status")) {
                // Kernels before 4.5 don't tell.
                Ok(text) => parse::keyed(text, b"RssShmem")
                    .map_or(Reading::Missing(Why::NotSupported), Reading::Value),
                Err(error) if is_gone(&error) => Reading::Value(0),
                Err(error) => Reading::Missing(why(&error)),
            }
        };
        Reading::Value(Memory { pages, shmem_kib })
    }

    /// Whether a failed read means that the process just ended (and not a kernel without the file).
    fn ends_now(&self, fs: &mut ProcFs, error: &io::Error) -> bool {
        is_gone(error)
            && !fs
                .identity(self.id.pid)
                .is_ok_and(|identity| identity == self.id)
    }

    /// Takes over what a reaped child had been seen to do.
    pub fn inherit(&mut self, ended: Io) {
        self.inherited = add(self.inherited, ended);
    }

    /// All that its parent inherits when it is reaped now.
    pub fn bequest(&self) -> Io {
        let own = self.before.as_ref().and_then(|look| look.io.get());
        own.map_or(self.inherited, |own| add(own, self.inherited))
    }

    /// What it did since the last tick, which ends here; `None` where only one look was had.
    pub fn close_tick(&mut self) -> Option<Gains> {
        let inherited = std::mem::take(&mut self.inherited);
        let gains = self.before.as_ref().map(|before| Gains {
            cpu_ticks: gained(before.cpu_ticks, self.now.cpu_ticks),
            majflt: gained(before.majflt, self.now.majflt),
            io: match (&before.io, &self.now.io) {
                (Reading::Value(before), Reading::Value(now)) => {
                    Reading::Value(own_io(*before, *now, inherited))
                }
                (Reading::Missing(why), _) | (_, Reading::Missing(why)) => {
                    Reading::Missing(why.clone())
                }
            },
        });
        self.before = Some(self.now.clone());
        gains
    }

    /// A change of this process, as it was last seen.
    pub fn fact(&self, change: ProcessChange) -> ProcessChangeFact {
        ProcessChangeFact {
            id: self.id,
            ppid: self.ppid,
            name: self.name.clone(),
            rank: self.place.rank(),
            change,
        }
    }

    /// Its PID and its rank, if it is one.
    pub fn as_rank(&self) -> Option<(u32, u32)> {
        Some((self.id.pid, self.place.rank()?))
    }
}

fn add(a: Io, b: Io) -> Io {
    Io {
        rchar: a.rchar + b.rchar,
        wchar: a.wchar + b.wchar,
        read_bytes: a.read_bytes + b.read_bytes,
        write_bytes: a.write_bytes + b.write_bytes,
    }
}

/// What was read and written between two looks, without what came from reaped children.
///
/// A parent that ignores SIGCHLD gets none of its children's counters: where it gained less
/// than they had, nothing was added and nothing is taken off.
fn own_io(before: Io, now: Io, inherited: Io) -> Io {
    let own = |before, now, inherited| {
        let gain = gained(before, now);
        gain.checked_sub(inherited).unwrap_or(gain)
    };
    Io {
        rchar: own(before.rchar, now.rchar, inherited.rchar),
        wchar: own(before.wchar, now.wchar, inherited.wchar),
        read_bytes: own(before.read_bytes, now.read_bytes, inherited.read_bytes),
        write_bytes: own(before.write_bytes, now.write_bytes, inherited.write_bytes),
    }
}
