//! Processes as the kernel knows them: waiting, pidfds, being a subreaper.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

/// How a child changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It ended by itself with this code.
    Exited(i32),
    /// It died of this signal.
    Killed(i32),
    /// It was stopped by this signal.
    Stopped(i32),
    /// It goes on.
    Continued,
}

/// Orphans of our tree become our children instead of init's.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: prctl with one integer argument.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Children must be waited for: a caller that ignores SIGCHLD would have the kernel reap them
/// and lose their status.
pub fn keep_children_waitable() {
    super::signals::restore_default(libc::SIGCHLD);
}

/// A descriptor that becomes readable when this child ends.
pub fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(pid as i32).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(
        pid,
        rustix::process::PidfdFlags::empty(),
    )?)
}

/// What this child did since the last call: its end (after which the PID is gone), or a stop
/// or continuation. None if nothing.
pub fn reap(pid: u32) -> Option<Change> {
    wait(
        libc::P_PID,
        pid,
        libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED,
    )
}

/// As `reap`, by pidfd and for the end alone.
pub fn reap_ended(pidfd: &OwnedFd) -> Option<Change> {
    wait(libc::P_PIDFD, pidfd.as_raw_fd() as u32, libc::WEXITED)
}

/// As `reap`, by pidfd and for stops and continuations alone.
pub fn stopped_or_continued(pidfd: &OwnedFd) -> Option<Change> {
    wait(
        libc::P_PIDFD,
        pidfd.as_raw_fd() as u32,
        libc::WSTOPPED | libc::WCONTINUED,
    )
}

fn wait(kind: libc::idtype_t, id: u32, what: i32) -> Option<Change> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: `info` is valid for writing, and all zeroes is a valid siginfo_t.
    let rc = unsafe { libc::waitid(kind, id, info.as_mut_ptr(), what | libc::WNOHANG) };
    if rc == -1 {
        return None;
    }
    // SAFETY: zeroed above, filled by the kernel if something happened.
    let info = unsafe { info.assume_init() };
    // SAFETY: after waitid these are the fields of a SIGCHLD siginfo; zero if nothing happened.
    let pid = unsafe { info.si_pid() };
    // SAFETY: as above.
    let status = unsafe { info.si_status() };
    if pid == 0 {
        return None;
    }
    Some(match info.si_code {
        libc::CLD_EXITED => Change::Exited(status),
        libc::CLD_KILLED | libc::CLD_DUMPED => Change::Killed(status),
        libc::CLD_CONTINUED => Change::Continued,
        _ => Change::Stopped(status),
    })
}

/// Continues our parent if this sibling of ours is no longer stopped (or gone).
pub fn continue_with(sibling: u32) {
    let stopped = std::fs::read_to_string(format!("/proc/{sibling}/stat")).is_ok_and(|stat| {
        stat.rfind(')')
            .is_some_and(|end| stat[end + 1..].trim_start().starts_with(['T', 't']))
    });
    if !stopped {
        // SAFETY: getppid takes nothing; a parent that is gone has left us to a reaper, which
        // a continuation doesn't harm.
        let parent = unsafe { libc::getppid() };
        // SAFETY: kill takes numbers.
        unsafe { libc::kill(parent, libc::SIGCONT) };
    }
}
