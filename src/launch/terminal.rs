//! The terminal that a PTY stands in for: its size and its settings, kept the same in both.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::termios::{OutputFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};

use crate::sys::signals::Mask;
use crate::sys::streams::{set_window_size, standard, window_size};

/// One real terminal and what was last seen of its stand-in.
pub struct Terminal {
    real: BorrowedFd<'static>,
    found: Termios,
    seen: Termios,
    mirrored: bool,
}

impl Terminal {
    /// Makes `slave` look like `real`, but for output processing: the real terminal does that.
    pub fn stand_in(real: BorrowedFd<'static>, slave: BorrowedFd<'_>) -> io::Result<Self> {
        let found = tcgetattr(real)?;
        let mut settings = found.clone();
        settings.output_flags.remove(OutputFlags::OPOST);
        tcsetattr(slave, SetArg::TCSANOW, &settings)?;
        let seen = tcgetattr(slave)?;
        let terminal = Self {
            real,
            found,
            seen,
            mirrored: false,
        };
        terminal.copy_size(slave);
        Ok(terminal)
    }

    /// Copies the real terminal's size to the stand-in (either end of the PTY will do).
    pub fn copy_size(&self, pty: BorrowedFd<'_>) {
        copy_size(self.real, pty);
    }

    /// If the child changed the stand-in's settings, the real terminal gets them: programs
    /// that draw set raw mode on the stream that they draw on.
    pub fn mirror(&mut self, master: BorrowedFd<'_>) {
        let Ok(now) = tcgetattr(master) else { return };
        if now == self.seen || !self.in_foreground() {
            return;
        }
        let mut wanted = now.clone();
        let ours = self.found.output_flags & OutputFlags::OPOST;
        wanted.output_flags = (wanted.output_flags - OutputFlags::OPOST) | ours;
        if set_quietly(self.real, &wanted).is_ok() {
            self.seen = now;
            self.mirrored = true;
        }
    }

    /// Puts back what was found, if anything was mirrored.
    pub fn restore(&mut self) {
        if self.mirrored && self.in_foreground() {
            // A terminal that is gone needs no settings.
            let _ = set_quietly(self.real, &self.found);
            self.mirrored = false;
        }
    }

    fn in_foreground(&self) -> bool {
        tcgetpgrp(self.real).is_ok_and(|group| group == getpgrp())
    }
}

/// Copies a terminal's size to a PTY. A terminal that doesn't tell keeps the old one.
pub fn copy_size(real: BorrowedFd<'_>, pty: BorrowedFd<'_>) {
    if let Ok(size) = window_size(real) {
        // The PTY is ours; it can only fail once the run is over.
        let _ = set_window_size(pty, size);
    }
}

/// Sets a terminal's settings even if we have just lost the foreground, which would stop us.
fn set_quietly(terminal: impl AsFd, settings: &Termios) -> nix::Result<()> {
    let old = Mask::current();
    old.with(libc::SIGTTOU).set();
    let result = tcsetattr(terminal, SetArg::TCSADRAIN, settings);
    old.set();
    result
}

/// Whether a shell waits for us at a terminal: our group is the foreground of one of our
/// standard descriptors.
pub fn in_foreground() -> bool {
    (0..3).any(|fd| tcgetpgrp(standard(fd)).is_ok_and(|group| group == getpgrp()))
}
