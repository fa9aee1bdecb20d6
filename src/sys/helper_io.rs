//! What the helper process and whoever starts it need of the kernel and libc offers safely nowhere.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// Ends the process at once, without `atexit` handlers and destructors: those of an NVIDIA
/// library may wait for a driver that no longer answers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes no pointers and doesn't return.
    unsafe { libc::_exit(code) }
}

/// Takes over a descriptor that this process inherited under a number, and makes it
/// close-on-exec.
///
/// Errors if there is no such descriptor. The caller says which number nobody else in this
/// process owns; a program's start, before anything else was opened, is the place to ask.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: not -1, and the caller owns it, as this function's contract says.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    match fcntl(&fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)) {
        Ok(_) => Ok(fd),
        Err(errno) => {
            // There was nothing to own: closing it is the only thing that `fd` could still do.
            let _ = std::os::fd::IntoRawFd::into_raw_fd(fd);
            Err(errno.into())
        }
    }
}

/// Takes a pending, blocked signal away from this process; false if it wasn't pending.
pub fn consume_signal(signal: i32) -> bool {
    let none = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set that it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised above; an impossible number only makes the call fail.
    if unsafe { libc::sigaddset(set.as_mut_ptr(), signal) } != 0 {
        return false;
    }
    // SAFETY: a set and a time that live through the call; no information is asked for.
    unsafe { libc::sigtimedwait(set.as_ptr(), std::ptr::null_mut(), &raw const none) == signal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{SigSet, Signal, raise};

    #[test]
    fn a_pending_signal_is_taken_once() {
        let mut set = SigSet::empty();
        set.add(Signal::SIGUSR2);
        set.thread_block().unwrap();
        // To this thread: other tests run in other threads.
        raise(Signal::SIGUSR2).unwrap();
        assert!(consume_signal(Signal::SIGUSR2 as i32));
        assert!(!consume_signal(Signal::SIGUSR2 as i32));
        assert!(!consume_signal(4711));
    }

    #[test]
    fn what_nobody_opened_cannot_be_adopted() {
        assert!(adopt(-1).is_err());
        assert!(adopt(987_654).is_err());
    }
}
