//! Who is connected to what: each output stream of the child is inherited, or goes through
//! a PTY (where ours is a terminal) or a pipe (where it isn't).

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{SFlag, fstat};

use crate::model::Stream;
use crate::sys::inherited;
use crate::sys::spawn::ChildFd;
use crate::sys::streams::{open_pty, report_settings, same_description, standard, terminal_number};

use super::terminal::Terminal;

/// As large as an unprivileged user may make a pipe: the child runs on while we write.
pub const PIPE_BYTES: usize = 1 << 20;

/// One stream to relay.
pub struct Source {
    /// The end that we read. Non-blocking.
    pub read: OwnedFd,
    /// Where its bytes go: 1 or 2.
    pub to: RawFd,
    /// How it is called in the record.
    pub stream: Stream,
    /// The terminal that it stands in for, if it is a PTY.
    pub terminal: Option<Terminal>,
    /// What is read begins with a byte that says what it is (`report_settings`).
    pub in_packets: bool,
}

/// Reads what a relay has to deliver. On a PTY EIO is the end: its last writer has closed it. But
/// the kernel looks for bytes first and for writers then, so a reader that is held up between the
/// two is told of an end with bytes before it. Nobody writes any more when it is told again.
pub fn read(from: &OwnedFd, buffer: &mut [u8]) -> nix::Result<usize> {
    match nix::unistd::read(from, buffer) {
        Err(Errno::EIO) => nix::unistd::read(from, buffer),
        other => other,
    }
}

/// The child's streams, arranged.
pub struct Streams {
    /// What the child gets.
    pub child: [ChildFd; 3],
    /// What we relay.
    pub sources: Vec<Source>,
    /// Stdout is relayed by a pipe, so that Python would buffer it in blocks.
    pub stdout_piped: bool,
    /// Why a stream that could be watched isn't.
    pub unwatched: Option<String>,
    child_ends: Vec<OwnedFd>,
}

impl Streams {
    /// Everything inherited: nothing is relayed.
    pub fn inherited() -> Self {
        let child = [0, 1, 2].map(|fd| {
            if inherited::was_closed(fd) {
                ChildFd::Closed
            } else {
                ChildFd::Inherit
            }
        });
        Self {
            child,
            sources: Vec::new(),
            stdout_piped: false,
            unwatched: None,
            child_ends: Vec::new(),
        }
    }

    /// Arranges the streams for this command.
    pub fn arrange(argv: &[OsString]) -> Self {
        let mut streams = Self::inherited();
        if interactive_shell(argv, standard(0).is_terminal()) {
            return streams;
        }
        if let Err(error) = streams.connect() {
            // The run goes on as if we weren't there.
            streams = Self::inherited();
            streams.unwatched = Some(format!("output isn't read: {error}"));
        }
        streams
    }

    fn connect(&mut self) -> io::Result<()> {
        let open: Vec<RawFd> = [1, 2]
            .into_iter()
            .filter(|fd| !inherited::was_closed(*fd))
            .collect();
        let (terminals, others): (Vec<RawFd>, Vec<RawFd>) =
            open.into_iter().partition(|fd| standard(*fd).is_terminal());
        for group in grouped(&terminals, same_terminal) {
            self.add_pty(&group)?;
        }
        for group in grouped(&others, same_file) {
            self.add_pipe(&group)?;
        }
        Ok(())
    }

    fn add_pty(&mut self, fds: &[RawFd]) -> io::Result<()> {
        let to = fds[0];
        let (master, slave) = open_pty()?;
        let terminal = Terminal::stand_in(standard(to), slave.as_fd())?;
        self.add(fds, master, slave, Some(terminal))
    }

    fn add_pipe(&mut self, fds: &[RawFd]) -> io::Result<()> {
        let (read, write) = io::pipe()?;
        let write = OwnedFd::from(write);
        // A refusal (the user's pipe quota is used up) costs speed alone.
        let _ = rustix::pipe::fcntl_setpipe_size(&write, PIPE_BYTES);
        self.stdout_piped |= fds[0] == 1;
        self.add(fds, OwnedFd::from(read), write, None)
    }

    fn add(
        &mut self,
        fds: &[RawFd],
        read: OwnedFd,
        child_end: OwnedFd,
        terminal: Option<Terminal>,
    ) -> io::Result<()> {
        let flags = OFlag::from_bits_retain(fcntl(&read, FcntlArg::F_GETFL)?);
        fcntl(&read, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        for fd in fds {
            if let Ok(index) = usize::try_from(*fd) {
                self.child[index] = ChildFd::From(child_end.as_raw_fd());
            }
        }
        // Without it, what the child sets is seen with its next output.
        let in_packets = terminal.is_some() && report_settings(read.as_fd()).is_ok();
        let stream = if fds[0] == 1 {
            Stream::Out
        } else {
            Stream::Err
        };
        self.sources.push(Source {
            read,
            to: fds[0],
            stream,
            terminal,
            in_packets,
        });
        self.child_ends.push(child_end);
        Ok(())
    }

    /// Closes our copies of the child's ends, so that the last writer's end is the end.
    pub fn child_started(&mut self) {
        self.child_ends.clear();
    }
}

/// Descriptors that are one stream stay one, so that the order of their bytes stays.
fn grouped(fds: &[RawFd], same: impl Fn(RawFd, RawFd) -> bool) -> Vec<Vec<RawFd>> {
    match *fds {
        [a, b] if same(a, b) => vec![vec![a, b]],
        _ => fds.iter().map(|fd| vec![*fd]).collect(),
    }
}

fn same_terminal(a: RawFd, b: RawFd) -> bool {
    let number = |fd| terminal_number(standard(fd));
    let file = |fd| fstat(standard(fd)).map(|stat| stat.st_rdev);
    matches!((number(a), number(b)), (Ok(a), Ok(b)) if a == b)
        || matches!((file(a), file(b)), (Ok(a), Ok(b)) if a == b)
}

/// The same open file: the same inode and, for a regular file, a common end (both append) or
/// a common position (one description); two positions in one file are two streams.
fn same_file(a: RawFd, b: RawFd) -> bool {
    let (fd_a, fd_b) = (standard(a), standard(b));
    let (Ok(stat_a), Ok(stat_b)) = (fstat(fd_a), fstat(fd_b)) else {
        return false;
    };
    if (stat_a.st_dev, stat_a.st_ino) != (stat_b.st_dev, stat_b.st_ino) {
        return false;
    }
    let regular =
        SFlag::from_bits_truncate(stat_a.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFREG;
    let appends = |fd| {
        fcntl(fd, FcntlArg::F_GETFL)
            .is_ok_and(|flags| OFlag::from_bits_retain(flags).contains(OFlag::O_APPEND))
    };
    !regular || (appends(fd_a) && appends(fd_b)) || same_description(fd_a, fd_b)
}

/// A shell that will talk to a person needs the real terminal on all three: it does job
/// control on it, and there is nothing to read progress off.
fn interactive_shell(argv: &[OsString], stdin_is_terminal: bool) -> bool {
    const SHELLS: [&str; 9] = [
        "sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "tcsh", "csh",
    ];
    let Some((program, rest)) = argv.split_first() else {
        return false;
    };
    let name = Path::new(program)
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or("");
    stdin_is_terminal
        && SHELLS.contains(&name)
        && rest.iter().all(|arg| {
            let arg = arg.to_string_lossy();
            // Long options have no `c` that means "command", and a bare word is a script.
            arg.starts_with("--") || (arg.starts_with('-') && !arg.contains('c'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &str) -> Vec<OsString> {
        words.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn only_a_shell_without_a_script_is_interactive() {
        for words in ["bash", "/bin/bash -i", "bash --norc -i", "zsh -l", "sh"] {
            assert!(interactive_shell(&argv(words), true), "{words}");
            assert!(!interactive_shell(&argv(words), false), "{words}");
        }
        for words in [
            "bash run.sh",
            "sh -c true",
            "bash -lc true",
            "python",
            "python train.py",
        ] {
            assert!(!interactive_shell(&argv(words), true), "{words}");
        }
    }
}
