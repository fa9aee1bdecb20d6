//! The terminal while it is drawn on: its settings, the alternate screen, a frame.
//!
//! Owns escape codes and the way back. Frames overwrite each other line by line: a screen that
//! is cleared first flickers.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::termios::{
    InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
};
use nix::unistd::{getpgrp, tcgetpgrp};
use unicode_width::UnicodeWidthStr;

use crate::report::top::{Line, Tone};
use crate::sys::signals::Mask;
use crate::sys::streams::{standard, window_size};

/// The alternate screen, no cursor, and no line that goes on on the next one.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Columns and rows of a terminal that doesn't tell.
const USUAL: (usize, usize) = (80, 24);

/// A terminal that is ours to draw on, until this is dropped.
pub struct Screen {
    out: File,
    found: Termios,
    colours: bool,
}

impl Screen {
    /// Takes the terminal.
    pub fn enter(colours: bool) -> io::Result<Self> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let found = tcgetattr(input())?;
        let mut screen = Self {
            out,
            found,
            colours,
        };
        screen.set()?;
        screen.write(ENTER)?;
        Ok(screen)
    }

    /// Clears it for the next frame; after a stop somebody may have set it anew.
    pub fn renew(&mut self) -> io::Result<()> {
        self.set()?;
        self.write(b"\x1b[2J")
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        match window_size(self.out.as_fd()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            _ => USUAL,
        }
    }

    /// Draws a frame, in one write.
    pub fn draw(&mut self, lines: &[Line], width: usize) -> io::Result<()> {
        let mut frame = String::from("\x1b[H");
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                frame += "\r\n";
            }
            let (on, off) = self.codes(line.tone);
            frame += on;
            frame += &line.text;
            frame += off;
            // Behind a full line the cursor stands on its last character.
            if line.text.width() < width {
                frame += "\x1b[K";
            }
        }
        // What an earlier, longer frame left below.
        if lines.len() < self.size().1 {
            frame += "\r\n\x1b[J";
        }
        self.write(frame.as_bytes())
    }

    fn codes(&self, tone: Tone) -> (&'static str, &'static str) {
        match tone {
            _ if !self.colours => ("", ""),
            Tone::Plain => ("", ""),
            Tone::Head => ("\x1b[1m", "\x1b[m"),
            Tone::Warning => ("\x1b[33m", "\x1b[m"),
            Tone::Critical => ("\x1b[1;31m", "\x1b[m"),
        }
    }

    /// Keys as they are typed, unseen; Ctrl-C and Ctrl-Z are still signals. Ctrl-S would hold up
    /// the drawing, and with it the answer to every signal.
    fn set(&self) -> io::Result<()> {
        let mut settings = self.found.clone();
        settings.local_flags -= LocalFlags::ICANON | LocalFlags::ECHO;
        settings.local_flags |= LocalFlags::ISIG;
        settings.input_flags -= InputFlags::IXON;
        settings.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        settings.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        Ok(tcsetattr(input(), SetArg::TCSANOW, &settings)?)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.out.write_all(bytes) {
            // Somebody made it non-blocking, and it is full: the next frame shows all of it.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = self.write(LEAVE);
        // In the background its settings are the shell's.
        if is_ours() {
            let old = Mask::current();
            old.with(libc::SIGTTOU).set();
            let _ = tcsetattr(input(), SetArg::TCSANOW, &self.found);
            old.set();
        }
    }
}

/// Whether the terminal is ours to set. One that isn't our controlling one has no foreground for
/// us, and what else is wrong with it is told by whatever is done next.
pub fn is_ours() -> bool {
    tcgetpgrp(input()).map_or(true, |group| group == getpgrp())
}

fn input() -> BorrowedFd<'static> {
    standard(libc::STDIN_FILENO)
}
