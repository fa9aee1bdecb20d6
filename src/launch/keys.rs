//! Keys for a program that reads them from the stand-in. `less` and the like open the
//! terminal anew by the name of their stderr, which is the output-only PTY: while such a
//! reader is there, and has taken over the terminal, it gets what is typed.

use std::collections::VecDeque;
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{read, write};

use crate::sys::process::children;
use crate::sys::streams::{pts_name, standard, terminal_number};

/// A program that draws sixty frames a second isn't searched for a reader each time.
const SEARCH_EVERY: Duration = Duration::from_millis(200);
/// The job's processes that are searched at most.
const MOST_PROCESSES: usize = 512;

/// Keys on their way to one stand-in.
pub struct Keys {
    /// The stand-in's name.
    name: PathBuf,
    /// Where they are typed.
    typed: BorrowedFd<'static>,
    /// The reader: a link of `/proc` that names the stand-in.
    reader: Option<PathBuf>,
    searched: Option<Instant>,
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
        Some(Self {
            name: pts_name(master)?,
            typed,
            reader: None,
            searched: None,
        })
    }

    /// Where to wait for keys, if somebody reads them from the stand-in.
    pub fn wanted(&mut self) -> Option<BorrowedFd<'static>> {
        let there = |link: &PathBuf| fs::read_link(link).is_ok_and(|to| to == self.name);
        if self.reader.as_ref().is_some_and(there) {
            return Some(self.typed);
        }
        self.reader = None;
        let now = Instant::now();
        if self.searched.is_some_and(|at| now - at < SEARCH_EVERY) {
            return None;
        }
        self.searched = Some(now);
        self.reader = self.search();
        self.reader.as_ref().map(|_| self.typed)
    }

    /// Passes on what was typed; to be called when there is something.
    pub fn pass(&mut self, master: BorrowedFd<'_>) {
        let mut keys = [0_u8; 1024];
        match read(self.typed, &mut keys) {
            // More than the stand-in takes is lost, as it is in a terminal.
            Ok(n) if n > 0 => drop(write(master, &keys[..n])),
            _ => self.reader = None,
        }
    }

    /// Looks for a process of the job that has opened the stand-in for reading alone: what it
    /// inherited from us may be written as well.
    fn search(&self) -> Option<PathBuf> {
        let mut waiting = VecDeque::from(children(std::process::id()));
        for _ in 0..MOST_PROCESSES {
            let pid = waiting.pop_front()?;
            if let Some(found) = self.search_in(pid) {
                return Some(found);
            }
            waiting.extend(children(pid));
        }
        None
    }

    fn search_in(&self, pid: u32) -> Option<PathBuf> {
        let links = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        links.flatten().map(|entry| entry.path()).find(|link| {
            fs::read_link(link).is_ok_and(|to| to == self.name) && reads_only(pid, link)
        })
    }
}

/// `flags` of `/proc/PID/fdinfo/N` (proc(5)), octal.
fn reads_only(pid: u32, link: &std::path::Path) -> bool {
    let Some(fd) = link.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    info.lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & libc::O_ACCMODE == libc::O_RDONLY)
}
