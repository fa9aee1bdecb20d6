//! Descriptors: output-only PTYs, large pipes, telling whether two are the same open file.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// `fcntl(2)`; the numbers are those of asm-generic/fcntl.h, which libc leaves out.
const F_SETSIG: i32 = 10;
/// See `F_SETSIG`.
const F_GETSIG: i32 = 11;

/// A standard descriptor of ours, borrowed for the life of the process.
pub fn standard(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: nobody in this program closes 0, 1 or 2; std opens them if the caller didn't.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// A new PTY: its master, and its slave opened without becoming anybody's terminal.
pub fn open_pty() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: posix_openpt takes flags.
    let master = owned(unsafe { libc::posix_openpt(flags) })?;
    // SAFETY: grantpt takes a descriptor.
    check(unsafe { libc::grantpt(master.as_raw_fd()) })?;
    // SAFETY: unlockpt takes a descriptor.
    check(unsafe { libc::unlockpt(master.as_raw_fd()) })?;
    let slave = open_slave(master.as_fd())?;
    Ok((master, slave))
}

/// A PTY's slave, opened once more without becoming anybody's terminal.
pub fn open_slave(master: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // TIOCGPTPEER needs no path, so it works where another devpts is mounted.
    // SAFETY: the ioctl takes flags and returns a new descriptor.
    owned(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags) })
}

/// From now on what is read from the master begins with a byte, `TIOCPKT_DATA` or what has
/// happened instead (`ioctl_tty(2)`): among others, that somebody has set the slave, if its
/// settings hold `EXTPROC`.
pub fn report_settings(master: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the ioctl reads the integer that it is given.
    check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCPKT, &raw const on) })?;
    Ok(())
}

/// The window size of a terminal.
pub fn window_size(fd: BorrowedFd<'_>) -> io::Result<libc::winsize> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the ioctl fills the struct that it is given.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) })?;
    Ok(size)
}

/// Sets the window size of a terminal.
pub fn set_window_size(fd: BorrowedFd<'_>, size: libc::winsize) -> io::Result<()> {
    // SAFETY: the ioctl reads the struct that it is given.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) })?;
    Ok(())
}

/// Which terminal this is, also where it was opened as `/dev/tty` or `/dev/console`.
pub fn terminal_number(fd: BorrowedFd<'_>) -> io::Result<u32> {
    let mut number = 0_u32;
    // SAFETY: the ioctl fills the integer that it is given.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGDEV, &raw mut number) })?;
    Ok(number)
}

/// Whether two descriptors are one open file description: what is set through one is seen
/// through the other. The signal of `F_SETSIG` is such a thing that harms nobody, since it
/// means nothing without `O_ASYNC`.
pub fn same_description(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    let (a, b) = (a.as_raw_fd(), b.as_raw_fd());
    // SAFETY: these four calls take integers alone.
    let before = unsafe { libc::fcntl(a, F_GETSIG) };
    // SAFETY: as above.
    let other = unsafe { libc::fcntl(b, F_GETSIG) };
    if before == -1 || other != before {
        return false;
    }
    let probe = if before == libc::SIGIO {
        libc::SIGURG
    } else {
        libc::SIGIO
    };
    // SAFETY: as above.
    if unsafe { libc::fcntl(a, F_SETSIG, probe) } == -1 {
        return false;
    }
    // SAFETY: as above.
    let seen = unsafe { libc::fcntl(b, F_GETSIG) };
    // SAFETY: as above; puts back what was there.
    unsafe { libc::fcntl(a, F_SETSIG, before) };
    seen == probe
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    check(fd)?;
    // SAFETY: the call that gave it made it new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn check(rc: i32) -> io::Result<i32> {
    if rc == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(rc)
    }
}
