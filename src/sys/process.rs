//! Processes as the kernel knows them: waiting, names, being a subreaper.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;

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

/// What `ps` and `pkill` call the process beside us. It must not hold our own name, or
/// `pkill gpuwatch` would look like a signal to the whole group.
pub const HELPER_NAME: &CStr = c"nvml-sentinel";
/// What `ps` calls the process that looks at followed files.
pub const READER_NAME: &CStr = c"follow-files";

/// Gives this process another name, 15 bytes at most.
pub fn call_us(name: &CStr) {
    // A kernel that doesn't rename costs a name.
    let _ = nix::sys::prctl::set_name(name);
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

/// What this child did since the last call: its end (after which the PID is gone), or a stop
/// or continuation. None if nothing.
pub fn reap(pid: u32) -> Option<Change> {
    wait(pid, libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED)
}

/// Whether this child has ended, and is reaped by this call or was before.
pub fn is_reaped(pid: u32) -> bool {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: `info` is valid for writing, and all zeroes is a valid siginfo_t.
    let rc = unsafe {
        libc::waitid(
            libc::P_PID,
            pid,
            info.as_mut_ptr(),
            libc::WEXITED | libc::WNOHANG,
        )
    };
    // SAFETY: zeroed above, filled by the kernel if there was something to reap.
    let info = unsafe { info.assume_init() };
    // SAFETY: after waitid this is a field of a SIGCHLD siginfo; zero if nothing happened.
    rc == -1 || unsafe { info.si_pid() } != 0
}

/// As `reap`, for the end alone.
pub fn reap_ended(pid: u32) -> Option<Change> {
    wait(pid, libc::WEXITED)
}

/// As `reap`, for stops and continuations alone.
pub fn stopped_or_continued(pid: u32) -> Option<Change> {
    wait(pid, libc::WSTOPPED | libc::WCONTINUED)
}

/// Some child that has ended and isn't reaped yet; it stays so.
pub fn next_ended() -> Option<u32> {
    let info = wait_info(libc::P_ALL, 0, libc::WEXITED | libc::WNOWAIT)?;
    // SAFETY: after waitid this is a field of a SIGCHLD siginfo; zero if nothing happened.
    let pid = unsafe { info.si_pid() };
    u32::try_from(pid).ok().filter(|pid| *pid != 0)
}

fn wait_info(kind: libc::idtype_t, id: u32, what: i32) -> Option<libc::siginfo_t> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: `info` is valid for writing, and all zeroes is a valid siginfo_t.
    let rc = unsafe { libc::waitid(kind, id, info.as_mut_ptr(), what | libc::WNOHANG) };
    if rc == -1 {
        return None;
    }
    // SAFETY: zeroed above, filled by the kernel if something happened.
    Some(unsafe { info.assume_init() })
}

fn wait(pid: u32, what: i32) -> Option<Change> {
    let info = wait_info(libc::P_PID, pid, what)?;
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

/// Whether the process of this `/proc/PID/status` is one that can still get signals.
pub fn lives(status: &str) -> bool {
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    state.is_some_and(|state| !state.trim_start().starts_with(['Z', 'X']))
}

/// A set of signals in `/proc/PID/status` (proc(5)): bit n-1 for signal n.
pub fn mask_in(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find(|line| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(':'))
    })?;
    u64::from_str_radix(line[name.len() + 1..].trim(), 16).ok()
}

/// The children of a process: the kernel lists them by the thread that got them.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            let pids = list.split_ascii_whitespace();
            pids.filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// A field of `/proc/PID/stat`, counted as proc(5) does: those after the name begin with 3, the
/// state. None where it can't be read: perhaps the process is gone.
pub fn stat_field(pid: u32, number: usize) -> Option<String> {
    stat_field_of(&Path::new("/proc").join(pid.to_string()), number)
}

/// The same of the process whose directory this is.
pub fn stat_field_of(process: &Path, number: usize) -> Option<String> {
    let stat = std::fs::read(process.join("stat")).ok()?;
    // A name may be no text.
    field_in(&String::from_utf8_lossy(&stat), number).map(str::to_owned)
}

fn field_in(stat: &str, number: usize) -> Option<&str> {
    // Nor need the name's parenthesis be the only one.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name
        .split_ascii_whitespace()
        .nth(number.checked_sub(3)?)
}

/// Whether this process is stopped. None where that can't be read: perhaps it is gone.
pub fn is_stopped(pid: u32) -> Option<bool> {
    stat_field(pid, 3).map(|state| state.starts_with(['T', 't']))
}

/// Continues our parent if this sibling of ours is no longer stopped (or gone).
pub fn continue_with(sibling: u32) {
    if is_stopped(sibling) != Some(true) {
        // SAFETY: getppid takes nothing; a parent that is gone has left us to a reaper, which
        // a continuation doesn't harm.
        let parent = unsafe { libc::getppid() };
        // SAFETY: kill takes numbers.
        unsafe { libc::kill(parent, libc::SIGCONT) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = "7 (a) b)) S 4 5 6";
        let fields = [3, 4, 6, 7, 2].map(|number| field_in(stat, number));
        assert_eq!(fields, [Some("S"), Some("4"), Some("6"), None, None]);
        assert_eq!(field_in("torn", 3), None);
        assert_eq!(is_stopped(std::process::id()), Some(false));
        assert_eq!(stat_field(u32::MAX, 3), None);
    }
}
