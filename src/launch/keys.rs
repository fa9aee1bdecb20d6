//! Keys for a program that reads them from the stand-in: `less` opens the terminal that its
//! stderr names, `more` reads from the stderr that it inherited, `vim -` makes it its stdin.
//! While such a reader waits for them, and nobody at the real terminal does, it gets what is
//! typed, and no more than it takes: the rest may be for who comes after it.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::termios::{SpecialCharacterIndices, tcgetattr};
use nix::unistd::{read, tcgetpgrp, write};

use crate::sys::streams::{open_slave, standard, terminal_number};

use super::terminal::Hold;
use super::waiting::{Device, Look, Reader, is_held};

/// After so many in vain, one who holds the terminal is taken for one who waits: it may ask
/// without waiting.
const LOOKS_FOR_HOLDERS: u32 = 7;
/// The pause after the first look in vain; it doubles.
const PAUSE: Duration = Duration::from_millis(2);
/// The longest pause while the terminal is taken over, and while it isn't: who types ahead
/// costs a look each time.
const LONGEST: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// A look costs at most this share of the time: one in so many.
const SHARE: u32 = 50;
/// So much at once isn't typed, but pasted, and for one program.
const PASTED: u64 = 32;
/// A new reader waits so long for its first key: another may be about to read again.
const BEFORE_THE_FIRST: Duration = Duration::from_millis(5);
/// What is passed on at once, at most.
const MOST_KEYS: usize = 1024;

/// Keys on their way to one stand-in.
pub struct Keys {
    stand_in: Device,
    real: Device,
    /// Where they are typed; non-blocking where it may be.
    typed: OwnedFd,
    /// Readable when something new is typed, whoever reads it.
    news: Epoll,
    /// The terminal isn't our controlling one: another gpuwatch's stand-in.
    nested: bool,
    /// Somebody reads at the stand-in of such a stand-in.
    listens: bool,
    /// The reader has waited for a while, and nobody at the real terminal since.
    sure: bool,
    in_vain: u32,
    not_before: Instant,
}

impl Keys {
    /// For this stand-in of that terminal. None where they couldn't be read.
    pub fn new(master: BorrowedFd<'_>, real: BorrowedFd<'static>) -> Option<Self> {
        let number = terminal_number(real).ok()?;
        let typed = (0..3).map(standard).find(|fd| {
            let mode =
                fcntl(fd, FcntlArg::F_GETFL).map_or(OFlag::O_WRONLY, OFlag::from_bits_retain);
            mode & OFlag::O_ACCMODE != OFlag::O_WRONLY
                && terminal_number(*fd).is_ok_and(|n| n == number)
        })?;
        let real = Device::of(typed).ok()?;
        let typed = opened_anew(typed)?;
        let news = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).ok()?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, 0);
        news.add(&typed, event).ok()?;
        Some(Self {
            stand_in: Device::of(open_slave(master).ok()?).ok()?,
            real,
            nested: tcgetpgrp(&typed) == Err(Errno::ENOTTY),
            typed,
            news,
            listens: false,
            sure: false,
            in_vain: 0,
            not_before: Instant::now(),
        })
    }

    /// Where to wait for keys.
    pub fn source(&self) -> BorrowedFd<'_> {
        if self.listens {
            self.typed.as_fd()
        } else {
            self.news.0.as_fd()
        }
    }

    /// The source is readable.
    pub fn are_typed(&mut self) {
        // Only that it was asked counts: the event is over with it.
        let _ = self
            .news
            .wait(&mut [EpollEvent::empty()], EpollTimeout::ZERO);
        self.look_soon();
    }

    /// Somebody has set the stand-in, and may be about to wait for keys.
    pub fn expect_reader(&mut self) {
        self.sure = false;
        self.look_soon();
    }

    fn look_soon(&mut self) {
        self.in_vain = 0;
        self.not_before = Instant::now();
    }

    /// Passes on what is typed, if somebody waits for it. Returns after which time to try
    /// again, as long as nobody takes it.
    pub fn pass(&mut self, master: BorrowedFd<'_>, hold: impl Fn() -> Hold) -> Option<Duration> {
        self.listens = false;
        loop {
            let typed = readable(self.typed.as_fd());
            if !typed && !self.nested {
                return None;
            }
            let Hold {
                taken_over,
                in_front,
            } = hold();
            if !in_front || !(typed || taken_over) {
                return None;
            }
            let now = Instant::now();
            if now < self.not_before {
                return Some(self.not_before - now);
            }
            match self.reader(master, taken_over) {
                // Whose stand-in ours is can't know that somebody reads there unless we do.
                Some(_) if !typed => {
                    self.listens = true;
                    return None;
                }
                Some(_) if !self.sure => {
                    self.sure = true;
                    self.not_before = now + BEFORE_THE_FIRST;
                }
                Some(reader) => self.hand_over(master, reader, taken_over)?,
                None => return Some(self.pause(now, taken_over)),
            }
        }
    }

    /// When to look again after a look in vain.
    fn pause(&mut self, began: Instant, taken_over: bool) -> Duration {
        let longest = LONGEST[usize::from(!taken_over)];
        let doubled = PAUSE.saturating_mul(1 << self.in_vain.min(16));
        let pause = doubled.min(longest).max(began.elapsed() * SHARE);
        self.not_before = Instant::now() + pause;
        self.in_vain += 1;
        pause
    }

    fn reader(&mut self, master: BorrowedFd<'_>, taken_over: bool) -> Option<Reader> {
        // Whoever hasn't taken the last ones yet doesn't wait for more.
        let slave = open_slave(master).ok()?;
        if readable(slave.as_fd()) {
            return None;
        }
        let look = Look::at_job(self.stand_in, self.real);
        self.sure &= !look.rival;
        if look.rival || look.reader.is_some() || !taken_over {
            return look.reader.filter(|_| !look.rival);
        }
        let unseen = look.blind || self.in_vain >= LOOKS_FOR_HOLDERS;
        (unseen && is_held(self.stand_in)).then_some(Reader { takes: None })
    }

    /// None if there was nothing after all.
    fn hand_over(
        &mut self,
        master: BorrowedFd<'_>,
        reader: Reader,
        taken_over: bool,
    ) -> Option<()> {
        let mut keys = [0_u8; MOST_KEYS];
        let at_once =
            !taken_over || rustix::io::ioctl_fionread(&self.typed).is_ok_and(|n| n >= PASTED);
        let most = match reader.takes {
            Some(most) => most.clamp(1, MOST_KEYS),
            None if at_once => MOST_KEYS,
            None => 1,
        };
        let mut n = read(&self.typed, &mut keys[..most]).ok()?;
        if reader.takes.is_none()
            && n == 1
            && !stands_alone(keys[0])
            && readable(self.typed.as_fd())
        {
            n += read(&self.typed, &mut keys[1..]).unwrap_or(0);
        }
        if n == 0 {
            // The end of input was typed.
            keys[0] = tcgetattr(master).ok()?.control_chars[SpecialCharacterIndices::VEOF as usize];
            n = 1;
        }
        self.in_vain = 0;
        // More than the stand-in takes is lost, as it is in a terminal.
        write(master, &keys[..n]).ok().map(|_| ())
    }
}

/// Whether a key is one byte: others are told from it by the time between theirs.
fn stands_alone(key: u8) -> bool {
    key.is_ascii() && key != 0x1b
}

/// Another description of the same terminal, which we may read without blocking; where that
/// isn't permitted (after `su`), the same one.
fn opened_anew(terminal: BorrowedFd<'_>) -> Option<OwnedFd> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
        .open(format!("/proc/self/fd/{}", terminal.as_raw_fd()))
        .map(OwnedFd::from)
        .or_else(|_| terminal.try_clone_to_owned())
        .ok()
}

/// Whether there is something to read from a terminal that is still there.
fn readable(terminal: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(terminal, PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok() && fds[0].revents() == Some(PollFlags::POLLIN)
}
