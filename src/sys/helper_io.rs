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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_opened_cannot_be_adopted() {
        assert!(adopt(-1).is_err());
        assert!(adopt(987_654).is_err());
    }
}
