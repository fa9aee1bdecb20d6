//! Which signals we take, and who else got them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr as _;
use std::time::Duration;

use crate::sys::signals::{Arrived, Mask, SignalFd, take};
use crate::sys::{inherited, process};

use super::sentinel::Sentinel;
use super::stop::Rung;

/// When the sentinel is looked at: a sender of many signals takes a moment to reach us all.
const LOOKS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(3),
    Duration::from_millis(6),
    Duration::from_millis(10),
];

/// Who got a signal besides us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A terminal's key or hang-up: the foreground group has it.
    Terminal,
    /// Somebody signalled the whole group or job.
    Group,
    /// A process of the job signalled us, its parent: not for the child's ears.
    Job(u32),
    /// Somebody (0: in another PID namespace) signalled us alone.
    Alone(u32),
}

/// A signal of which it is known who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Who got it besides us.
    pub origin: Origin,
    /// The short name of the process that sent it, if it could be looked at.
    pub sender: Option<String>,
}

/// The signals that every thread of ours blocks and the supervisor reads: all. Those that our
/// caller ignored as well, because the command may have set a handler since (the kernel keeps a
/// blocked signal for its reader even where it is ignored). Those of faults too, because
/// somebody may send them; a true fault of ours ends us although they are blocked.
pub fn taken() -> Mask {
    Mask::full().without(libc::SIGKILL).without(libc::SIGSTOP)
}

/// The signal of a rung of the stop ladder.
pub fn of_rung(rung: Rung) -> i32 {
    match rung {
        Rung::Term => libc::SIGTERM,
        Rung::Kill => libc::SIGKILL,
    }
}

/// Whether our caller ignored this signal: then it asks nothing of us.
pub fn was_ignored(signal: i32) -> bool {
    inherited::was_ignored(signal)
}

/// The signals as they arrive, and what they would do to a command that has just begun.
pub struct Arrivals {
    fd: SignalFd,
    taken: Mask,
    blocked: Mask,
}

impl Arrivals {
    /// Reads the signals of this mask; `blocked` is our caller's.
    pub fn new(mask: &Mask, blocked: Mask) -> io::Result<Self> {
        let fd = SignalFd::new(mask)?;
        Ok(Self {
            fd,
            taken: *mask,
            blocked,
        })
    }

    /// The next signal that waits, if any.
    pub fn next(&self) -> Option<Arrived> {
        self.fd.next()
    }

    /// The kinds of signal that wait, without taking them.
    pub fn waiting(&self) -> Vec<i32> {
        let pending = Mask::pending();
        let ours = |signal: &i32| pending.has(*signal) && self.taken.has(*signal);
        (1..=64).filter(ours).collect()
    }

    /// Whether a command that has just begun would feel this signal.
    pub fn felt(&self, signal: i32) -> bool {
        !self.blocked.has(signal) && !was_ignored(signal)
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Takes one signal of this kind, and finds out who else got it. Waits up to 20 ms for a sender
/// that is still busy. `forget` empties the sentinel of it.
///
/// As long as it waits with us as well, another of its kind to the group is one with it, in us
/// as in the sentinel: so the sentinel is emptied first, and only then is ours taken.
pub fn take_placed(signal: i32, sentinel: Option<&Sentinel>, forget: &dyn Fn()) -> Option<Placed> {
    let has = || sentinel.and_then(|s| s.has(signal));
    let known = has();
    if known == Some(true) {
        forget();
        let arrived = take(signal)?;
        let sender = sender(arrived);
        // One more came to the group before ours was taken, which stood for both.
        if has() == Some(true) && !Mask::pending().has(signal) {
            forget();
        }
        let origin = to_all(arrived);
        return Some(Placed { origin, sender });
    }
    let arrived = take(signal)?;
    // Looked at first: a `kill` of the job's may be gone in a moment.
    let sender = sender(arrived);
    let from_job = !arrived.by_kernel && arrived.from != 0 && descends_from_us(arrived.from);
    let mut told = known.is_some();
    for pause in LOOKS {
        std::thread::sleep(pause);
        match has() {
            Some(true) => {
                forget();
                let origin = to_all(arrived);
                return Some(Placed { origin, sender });
            }
            Some(false) => told = true,
            None => break,
        }
    }
    let origin = if arrived.by_kernel && !told {
        // No sentinel to ask: what the kernel sends, it nearly always sends to the group.
        Origin::Terminal
    } else if from_job {
        Origin::Job(arrived.from)
    } else {
        Origin::Alone(if arrived.by_kernel { 0 } else { arrived.from })
    };
    Some(Placed { origin, sender })
}

/// What the sending process calls itself.
fn sender(arrived: Arrived) -> Option<String> {
    if arrived.by_kernel || arrived.from == 0 {
        return None;
    }
    let name = std::fs::read(format!("/proc/{}/comm", arrived.from)).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

fn to_all(arrived: Arrived) -> Origin {
    if arrived.by_kernel {
        Origin::Terminal
    } else {
        Origin::Group
    }
}

/// Whether this process has us among its ancestors.
fn descends_from_us(mut pid: u32) -> bool {
    let us = std::process::id();
    // A tree is hardly deeper; a PID that is reused on the way can't make this endless.
    for _ in 0..64 {
        if pid == us {
            return true;
        }
        match parent_of(pid) {
            // 0 is a parent in another namespace; we may be 1 ourselves.
            Some(parent) if parent > 0 => pid = parent,
            _ => return false,
        }
    }
    false
}

fn parent_of(pid: u32) -> Option<u32> {
    process::stat_field(pid, 4)?.parse().ok()
}

/// The number of a signal with this name, without `SIG`.
pub fn number(name: &str) -> Option<i32> {
    let known = nix::sys::signal::Signal::from_str(&format!("SIG{name}"));
    known.ok().map(|signal| signal as i32)
}

/// A signal's name without `SIG`, real-time ones as `RTMIN+n`.
pub fn name(signal: i32) -> String {
    if let Ok(known) = nix::sys::signal::Signal::try_from(signal) {
        return known.as_str().trim_start_matches("SIG").to_owned();
    }
    let first = libc::SIGRTMIN();
    if signal >= first {
        format!("RTMIN+{}", signal - first)
    } else {
        signal.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_kill_takes() {
        assert_eq!(name(libc::SIGTERM), "TERM");
        assert_eq!(name(libc::SIGRTMIN()), "RTMIN+0");
        assert_eq!(name(libc::SIGRTMIN() + 3), "RTMIN+3");
    }

    #[test]
    fn all_is_taken_that_can_be() {
        let taken = taken();
        assert!(taken.has(libc::SIGSEGV) && taken.has(libc::SIGTERM) && taken.has(libc::SIGCHLD));
        assert!(taken.has(libc::SIGRTMIN()) && !taken.has(libc::SIGKILL));
    }
}
