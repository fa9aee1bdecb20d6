//! Runs in progress, drawn on a terminal again and again: the loop behind `gpuwatch top`.
//!
//! Owns when to look, what keys and signals do, and what leaves the view. Must not know where
//! records lie, or what a screen shows (`report::top`).

mod screen;

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::bail;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use self::screen::Screen;
use crate::record::RecordError;
use crate::record::now::Running;
use crate::report::top;
use crate::sys::signals::{Mask, SignalFd, consume, suffer};

/// Signals that leave the view.
const LEAVING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Signals after which it is drawn anew.
const REDRAWING: [i32; 2] = [libc::SIGWINCH, libc::SIGCONT];

/// What happened while it was shown.
#[derive(PartialEq)]
enum Heard {
    Nothing,
    Leave,
    Redraw,
    Stop,
}

/// Shows what `look` finds, every `interval`, until a key or a signal leaves. The terminal is
/// left as it was found, after a panic, too.
///
/// # Errors
/// The records can't be read at the start, or the terminal isn't one.
pub fn show(
    mut look: impl FnMut() -> Result<Running, RecordError>,
    interval: Duration,
    colours: bool,
) -> anyhow::Result<()> {
    // Before the screen is taken: what is wrong is said where it stays.
    let mut view = View::of(look())?;
    let mask = [&LEAVING[..], &REDRAWING, &[libc::SIGTSTP]].concat();
    let mask = mask.into_iter().fold(Mask::current(), Mask::with);
    mask.set();
    let signals = SignalFd::new(&mask)?;
    if !wait_for_foreground()? {
        return Ok(());
    }
    let mut screen = Screen::enter(colours)?;
    let mut due = Instant::now() + interval;
    loop {
        draw(&mut screen, &view)?;
        match listen(&signals, due)? {
            Heard::Nothing => {
                view = View::of(look()).unwrap_or_else(|error| view.with(&error));
                due = Instant::now() + interval;
            }
            Heard::Leave => return Ok(()),
            Heard::Redraw if screen::is_ours() => screen.renew()?,
            // Continued in the background, or asked to stop.
            heard => {
                drop(screen);
                if heard == Heard::Stop {
                    suffer(libc::SIGTSTP);
                }
                if !wait_for_foreground()? {
                    return Ok(());
                }
                screen = Screen::enter(colours)?;
            }
        }
    }
}

/// What was found last.
struct View {
    found: Running,
    problems: Vec<String>,
}

impl View {
    fn of(found: Result<Running, RecordError>) -> Result<Self, RecordError> {
        let found = found?;
        let problems = found.problems.iter().map(ToString::to_string).collect();
        Ok(Self { found, problems })
    }

    /// The same as before, and why there is nothing newer.
    fn with(self, error: &RecordError) -> Self {
        let problems = vec![error.to_string()];
        Self { problems, ..self }
    }
}

fn draw(screen: &mut Screen, view: &View) -> io::Result<()> {
    let (width, height) = screen.size();
    screen.draw(
        &top::screen(&view.found.runs, &view.problems, width, height),
        width,
    )
}

/// Waits for a key or a signal that means something, no longer than until `due`.
fn listen(signals: &SignalFd, due: Instant) -> io::Result<Heard> {
    let stdin = io::stdin();
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Heard::Nothing);
        }
        let mut waiting = [
            PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        // Rounded up: a wait of nothing would spin.
        let left = u32::try_from(left.as_millis() + 1).unwrap_or(u32::MAX);
        match poll(
            &mut waiting,
            PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX),
        ) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let keys = waiting[0].revents().unwrap_or(PollFlags::empty());
        // The terminal is gone.
        if keys.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL) {
            return Ok(Heard::Leave);
        }
        if keys.contains(PollFlags::POLLIN) && is_left_by_key() {
            return Ok(Heard::Leave);
        }
        let heard = heard(signals);
        if heard != Heard::Nothing {
            return Ok(heard);
        }
    }
}

/// Whether one of the keys that were typed is `q`.
fn is_left_by_key() -> bool {
    let mut keys = [0; 256];
    // Without a buffer, in which poll sees nothing; the end of input is heard by poll.
    let n = nix::unistd::read(io::stdin(), &mut keys).unwrap_or(0);
    keys[..n].iter().any(|key| matches!(key, b'q' | b'Q'))
}

/// What the signals that have come mean together.
fn heard(signals: &SignalFd) -> Heard {
    let mut heard = Heard::Nothing;
    while let Some(arrived) = signals.next() {
        if LEAVING.contains(&arrived.signal) {
            return Heard::Leave;
        }
        if arrived.signal == libc::SIGTSTP {
            heard = Heard::Stop;
        } else if heard == Heard::Nothing {
            heard = Heard::Redraw;
        }
    }
    heard
}

/// Stops, as whoever draws in the background does, until the terminal is ours; false if it is
/// to end instead.
fn wait_for_foreground() -> anyhow::Result<bool> {
    loop {
        let pending = Mask::pending();
        if LEAVING.iter().any(|&signal| pending.has(signal)) {
            return Ok(false);
        }
        if screen::is_ours() {
            return Ok(true);
        }
        consume(libc::SIGCONT);
        suffer(libc::SIGTTOU);
        // The kernel stops nobody whom no shell could fetch.
        if !Mask::pending().has(libc::SIGCONT) {
            bail!("the terminal is another program's: start it in the foreground");
        }
    }
}
