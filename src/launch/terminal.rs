//! The terminal that a PTY stands in for: its size and its settings, kept the same in both.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::termios::{
    InputFlags, LocalFlags, OutputFlags, SetArg, Termios, tcdrain, tcgetattr, tcsetattr,
};
use nix::unistd::{getpgrp, tcgetpgrp};

use crate::sys::signals::Mask;
use crate::sys::streams::{set_window_size, standard, window_size};

/// Who has the terminal.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// Whether the child has taken it over through the stand-in, key by key.
    pub taken_over: bool,
    /// Whether we may read its keys.
    pub in_front: bool,
}

/// One real terminal and what was last seen of its stand-in.
pub struct Terminal {
    real: BorrowedFd<'static>,
    found: Termios,
    /// The stand-in's settings at the start.
    first: Termios,
    /// The stand-in's settings as the real terminal has them.
    seen: Termios,
    mirrored: bool,
}

impl Terminal {
    /// Makes `slave` look like `real`, but for output processing, which the real terminal does,
    /// and `EXTPROC`: so are echo and lines, and we are told when somebody sets it.
    pub fn stand_in(real: BorrowedFd<'static>, slave: BorrowedFd<'_>) -> io::Result<Self> {
        let found = as_given_to_a_job(tcgetattr(real)?, real);
        let mut settings = found.clone();
        settings.output_flags.remove(OutputFlags::OPOST);
        settings.local_flags.insert(LocalFlags::EXTPROC);
        tcsetattr(slave, SetArg::TCSANOW, &settings)?;
        let seen = tcgetattr(slave)?;
        let terminal = Self {
            real,
            found,
            first: seen.clone(),
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

    /// What the child changed of the stand-in's settings is changed in the real terminal:
    /// programs that draw set raw mode on the stream that they draw on. As long as they do,
    /// it is looked after, because a shell in between has settings of its own; everything
    /// else in the real terminal is left to those who set it there.
    pub fn mirror(&mut self, master: BorrowedFd<'_>, when: SetArg) {
        let Ok(now) = tcgetattr(master) else { return };
        if (now == self.seen && now == self.first) || !self.in_foreground() {
            return;
        }
        let Ok(there) = tcgetattr(self.real) else {
            return;
        };
        let mut wanted = changed(&there, &now, [&self.seen, &self.first]);
        // Output is processed once: by the stand-in, if the child wants that there.
        let ours = (self.found.output_flags - now.output_flags) & OutputFlags::OPOST;
        wanted.output_flags = (wanted.output_flags - OutputFlags::OPOST) | ours;
        if wanted == there {
            self.seen = now;
        } else if set_quietly(self.real, &wanted, when).is_ok() {
            self.seen = now;
            self.mirrored = true;
        }
    }

    /// As `mirror`, for the thread in which SIGTTOU acts: who sets a terminal from the
    /// background is stopped, and so the job is when we try, until it is in front.
    pub fn follow(&mut self, master: BorrowedFd<'_>) {
        let is_set = tcgetattr(master).is_ok_and(|now| now != self.seen);
        // Waiting for output is asked for like a setting, and changes nothing.
        if is_set && !self.in_foreground() && tcdrain(self.real).is_err() {
            return;
        }
        self.mirror(master, SetArg::TCSADRAIN);
    }

    /// Who has the terminal at present.
    pub fn hold(&self, master: BorrowedFd<'_>) -> Hold {
        let by_line = |settings: &Termios| settings.local_flags.contains(LocalFlags::ICANON);
        Hold {
            taken_over: by_line(&self.first) && tcgetattr(master).is_ok_and(|now| !by_line(&now)),
            in_front: self.in_foreground(),
        }
    }

    /// Puts back what was found, if anything was mirrored, or if somebody has brought here what
    /// is the stand-in's alone.
    pub fn restore(&mut self) {
        let strange = || {
            let foreign = LocalFlags::EXTPROC - self.found.local_flags;
            tcgetattr(self.real).is_ok_and(|now| now.local_flags.intersects(foreign))
        };
        if (self.mirrored || strange()) && self.in_foreground() {
            // A terminal that is gone needs no settings.
            let _ = set_quietly(self.real, &self.found, SetArg::TCSADRAIN);
            self.mirrored = false;
        }
    }

    fn in_foreground(&self) -> bool {
        is_ours(self.real)
    }
}

/// Whether a terminal is ours to set: one that isn't our controlling one, as another
/// gpuwatch's stand-in, has no foreground for us.
fn is_ours(terminal: BorrowedFd<'_>) -> bool {
    tcgetpgrp(terminal).map_or_else(|error| error == Errno::ENOTTY, |group| group == getpgrp())
}

/// In the background a terminal may be set for the shell's line editor, which means nothing
/// to us: a job that is fetched finds it reading lines.
fn as_given_to_a_job(mut settings: Termios, terminal: BorrowedFd<'_>) -> Termios {
    if !is_ours(terminal) && !settings.local_flags.contains(LocalFlags::ICANON) {
        let by_line = LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG | LocalFlags::IEXTEN;
        settings.local_flags.insert(by_line);
        settings.input_flags.insert(InputFlags::ICRNL);
        settings.output_flags.insert(OutputFlags::OPOST);
    }
    settings
}

fn numbers(size: libc::winsize) -> [u16; 4] {
    [size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel]
}

/// Copies a terminal's size to a PTY, and tells whether it was another there. A terminal that
/// doesn't tell keeps the old one.
pub fn copy_size(real: BorrowedFd<'_>, pty: BorrowedFd<'_>) -> bool {
    let Ok(size) = window_size(real) else {
        return false;
    };
    let is_new = window_size(pty).map_or(true, |old| numbers(old) != numbers(size));
    // The PTY is ours; it can only fail once the run is over.
    let _ = set_window_size(pty, size);
    is_new
}

/// `there`, but for that in which `now` isn't what it was at one of these times, which is as
/// it is now. Output processing is the real terminal's own affair.
fn changed(there: &Termios, now: &Termios, before: [&Termios; 2]) -> Termios {
    let mut wanted = there.clone();
    for was in before {
        let input = now.input_flags ^ was.input_flags;
        wanted.input_flags = (wanted.input_flags - input) | (now.input_flags & input);
        let output = (now.output_flags ^ was.output_flags) - OutputFlags::OPOST;
        wanted.output_flags = (wanted.output_flags - output) | (now.output_flags & output);
        let control = now.control_flags ^ was.control_flags;
        wanted.control_flags = (wanted.control_flags - control) | (now.control_flags & control);
        let local = now.local_flags ^ was.local_flags;
        wanted.local_flags = (wanted.local_flags - local) | (now.local_flags & local);
        for (i, key) in wanted.control_chars.iter_mut().enumerate() {
            if now.control_chars[i] != was.control_chars[i] {
                *key = now.control_chars[i];
            }
        }
    }
    wanted
}

/// Sets a terminal's settings even if we have just lost the foreground, which would stop us.
fn set_quietly(terminal: impl AsFd, settings: &Termios, when: SetArg) -> nix::Result<()> {
    let old = Mask::current();
    old.with(libc::SIGTTOU).set();
    let result = tcsetattr(terminal, when, settings);
    old.set();
    result
}

/// Whether a shell waits for us at a terminal: our group is the foreground of one of our
/// standard descriptors.
pub fn in_foreground() -> bool {
    (0..3).any(|fd| tcgetpgrp(standard(fd)).is_ok_and(|group| group == getpgrp()))
}
