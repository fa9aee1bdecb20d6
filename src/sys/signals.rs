//! Signals: masks that know real-time signals, a signalfd, sending, dying of one.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A set of signals, real-time ones included (nix's `SigSet` iterates over none of those).
#[derive(Clone, Copy)]
pub struct Mask(libc::sigset_t);

impl Mask {
    /// No signal.
    pub fn empty() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set that it is given.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: initialised above.
        Self(unsafe { set.assume_init() })
    }

    /// Every signal that can be blocked.
    pub fn full() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigfillset initialises the set that it is given.
        unsafe { libc::sigfillset(set.as_mut_ptr()) };
        // SAFETY: initialised above.
        Self(unsafe { set.assume_init() })
    }

    /// With this signal.
    #[must_use]
    pub fn with(mut self, signal: i32) -> Self {
        // SAFETY: the set is initialised; a bad number is refused with EINVAL.
        unsafe { libc::sigaddset(&raw mut self.0, signal) };
        self
    }

    /// Without this signal.
    #[must_use]
    pub fn without(mut self, signal: i32) -> Self {
        // SAFETY: the set is initialised; a bad number is refused with EINVAL.
        unsafe { libc::sigdelset(&raw mut self.0, signal) };
        self
    }

    /// Whether this signal is in it.
    pub fn has(&self, signal: i32) -> bool {
        // SAFETY: the set is initialised.
        unsafe { libc::sigismember(&raw const self.0, signal) == 1 }
    }

    /// Makes this the calling thread's mask.
    pub fn set(&self) {
        // SAFETY: the set is initialised, the old one isn't asked for; SIG_SETMASK can't fail.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }

    /// The calling thread's mask.
    pub fn current() -> Self {
        let mut old = Self::empty();
        // SAFETY: a null new set only reads.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut old.0) };
        old
    }

    /// Signals that were sent to this process or thread and wait behind the mask.
    pub fn pending() -> Self {
        let mut set = Self::empty();
        // SAFETY: the set is valid for writing.
        unsafe { libc::sigpending(&raw mut set.0) };
        set
    }
}

/// One signal as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its number.
    pub signal: i32,
    /// The kernel sent it (a terminal's key, a hang-up), not a process.
    pub by_kernel: bool,
    /// The sending process, 0 if it lives in another PID namespace.
    pub from: u32,
}

/// A descriptor on which blocked signals are read.
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Reads the signals of this mask, which must be blocked in every thread.
    pub fn new(mask: &Mask) -> io::Result<Self> {
        // SAFETY: the mask is initialised; -1 asks for a new descriptor.
        let fd = unsafe {
            libc::signalfd(
                -1,
                &raw const mask.0,
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            )
        };
        if fd == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next signal that waits, if any.
    pub fn next(&self) -> Option<Arrived> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer is as large as the size that is passed.
        let n = unsafe { libc::read(self.0.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if usize::try_from(n) != Ok(size) {
            return None;
        }
        // SAFETY: the kernel filled the whole struct.
        let info = unsafe { info.assume_init() };
        Some(Arrived {
            signal: info.ssi_signo as i32,
            by_kernel: info.ssi_code == libc::SI_KERNEL,
            from: info.ssi_pid,
        })
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sends a signal, real-time ones included. The caller vouches that the PID is still the
/// process that it means: its own child, not yet reaped.
pub fn send(pid: u32, signal: i32) -> io::Result<()> {
    let pid = i32::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    if pid <= 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: kill takes no pointers.
    if unsafe { libc::kill(pid, signal) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sends a signal to the process that has this PID, if that is the one that is meant; false
/// where it isn't, or is gone. Whoever gets the PID in between is safe, except on kernels (before
/// 5.3) and in sandboxes that know no pidfd.
pub fn send_if(pid: u32, signal: i32, is_it: &mut dyn FnMut() -> bool) -> io::Result<bool> {
    let number = i32::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: pidfd_open takes numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) };
    let sent = match i32::try_from(fd) {
        Ok(fd) if fd >= 0 => {
            // SAFETY: the descriptor is new and ours.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            // Held before it was looked at: it is the one that was looked at.
            if !is_it() {
                return Ok(false);
            }
            send_by(&fd, signal)
        }
        _ if is_it() => send(pid, signal),
        _ => return Ok(false),
    };
    match sent {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
        Err(error) => Err(error),
    }
}

fn send_by(pidfd: &OwnedFd, signal: i32) -> io::Result<()> {
    let no_info = std::ptr::null_mut::<libc::siginfo_t>();
    // SAFETY: pidfd_send_signal takes numbers, and no siginfo is given.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            no_info,
            0,
        )
    };
    if rc == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Takes one pending, blocked signal out of this process; false if it wasn't pending.
pub fn consume(signal: i32) -> bool {
    let set = Mask::empty().with(signal);
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the set and the time are valid for reading; no siginfo is asked for.
    unsafe { libc::sigtimedwait(&raw const set.0, std::ptr::null_mut(), &raw const now) == signal }
}

/// Takes one pending, blocked signal of this kind out of this process, with where it is from.
pub fn take(signal: i32) -> Option<Arrived> {
    let set = Mask::empty().with(signal);
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the set and the time are valid for reading, the siginfo for writing.
    let got = unsafe { libc::sigtimedwait(&raw const set.0, info.as_mut_ptr(), &raw const now) };
    if got != signal {
        return None;
    }
    // SAFETY: zeroed above, filled by the kernel.
    let info = unsafe { info.assume_init() };
    // SAFETY: for a signal that a process sent this is its PID; for others it is unused.
    let from = unsafe { info.si_pid() };
    let by_kernel = info.si_code == libc::SI_KERNEL;
    Some(Arrived {
        signal,
        by_kernel,
        from: u32::try_from(from).unwrap_or(0),
    })
}

/// Gives this signal its default disposition.
pub fn restore_default(signal: i32) {
    // SAFETY: SIG_DFL is a valid disposition for every signal; others are refused.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Lets this signal act on the calling thread as its disposition says: a stop signal returns
/// once the process was continued, a deadly one doesn't return.
pub fn suffer(signal: i32) {
    let old = Mask::current();
    old.without(signal).set();
    // SAFETY: raise takes a number.
    unsafe { libc::raise(signal) };
    old.set();
}

/// Stops the calling process by this signal, as long as that `is_due`, which is asked when the
/// signal waits behind the mask: who was continued before is told so by what is asked, and a
/// continuation after it takes the signal away. Other stop signals that wait go with it.
pub fn stop_if(signal: i32, is_due: impl FnOnce() -> bool) {
    // It can't wait: asked a moment too early is the best that there is.
    if signal == libc::SIGSTOP {
        if is_due() {
            suffer(signal);
        }
        return;
    }
    let old = Mask::current();
    old.with(signal).set();
    // SAFETY: raise takes a number.
    unsafe { libc::raise(signal) };
    if is_due() {
        old.without(signal).set();
    } else {
        consume(signal);
    }
    old.set();
}

/// Dies of this signal the way the child did, without leaving a core of ours behind. Returns
/// if that is impossible (as PID 1, whose default actions the kernel leaves out).
pub fn die_of(signal: i32) {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is valid for reading.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    // A core pattern that is a pipe is served whatever the limit; only this stops it.
    // SAFETY: PR_SET_DUMPABLE takes one integer.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
    restore_default(signal);
    suffer(signal);
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{SigSet, Signal, raise};

    use super::*;

    #[test]
    fn a_pending_signal_is_taken_once() {
        let mut set = SigSet::empty();
        set.add(Signal::SIGUSR2);
        set.thread_block().unwrap();
        // To this thread: other tests run in other threads.
        raise(Signal::SIGUSR2).unwrap();
        assert!(consume(Signal::SIGUSR2 as i32));
        assert!(!consume(Signal::SIGUSR2 as i32));
        assert!(!consume(4711));
    }
}
