//! Running a program of our own to its end, whatever it does.
//!
//! Owns its time, its streams and its group: it gets what it is to read, what it prints is
//! taken up to a limit, and when its time is up the whole group is killed. Must not know what
//! it is run for.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

use crate::model::OwnProcesses;
use crate::sys::hook;

/// How long what an ended program has printed is still read: a descendant may hold the pipe.
const AFTER_ITS_END: Duration = Duration::from_millis(100);
/// How long a killed program may take to be reaped; one that hangs in the kernel is left.
const REAP_WITHIN: Duration = Duration::from_millis(200);
/// One read or write.
const CHUNK: usize = 16 * 1024;

/// What a program left.
#[derive(Debug)]
pub struct Output {
    /// How it ended; `None` if its time was up.
    pub status: Option<ExitStatus>,
    /// The first bytes that it printed on stdout.
    pub stdout: Vec<u8>,
    /// The first bytes that it printed on stderr.
    pub stderr: Vec<u8>,
}

/// How much is asked of a program.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// It is killed when it takes longer.
    pub within: Duration,
    /// So many bytes of each of its streams are kept; 0 sends them to `/dev/null`.
    pub output: usize,
}

/// Runs it, feeding it `stdin`. Its whole group has ended when this returns (save for a process
/// that hangs in the kernel).
///
/// # Errors
/// Why it can't be started.
pub fn run(
    mut command: Command,
    stdin: &[u8],
    bounds: Bounds,
    own: &OwnProcesses,
) -> io::Result<Output> {
    let deadline = Instant::now() + bounds.within;
    let stream = || {
        if bounds.output == 0 {
            Stdio::null()
        } else {
            Stdio::piped()
        }
    };
    command
        .stdin(if stdin.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(stream())
        .stderr(stream());
    hook::detach(&mut command);
    let mut child = own.start(|| {
        let child = command.spawn()?;
        Ok::<_, io::Error>((child.id(), child))
    })?;
    let pid = child.id();
    let output = Running::new(&mut child, stdin, bounds.output).until(deadline);
    hook::kill_group(pid);
    let status = reap(&mut child);
    if status.is_some() {
        own.ended(pid);
    }
    let (in_time, stdout, stderr) = output;
    Ok(Output {
        status: status.filter(|_| in_time),
        stdout,
        stderr,
    })
}

fn reap(child: &mut Child) -> Option<ExitStatus> {
    let end = Instant::now() + REAP_WITHIN;
    if let Ok(pidfd) = rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty()) {
        let mut fds = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
        wait(&mut fds, end);
    }
    child.try_wait().ok().flatten()
}

/// A program that runs, and its pipes.
struct Running<'a> {
    pidfd: Option<OwnedFd>,
    stdin: Option<std::process::ChildStdin>,
    rest: &'a [u8],
    out: Capture<std::process::ChildStdout>,
    err: Capture<std::process::ChildStderr>,
}

impl<'a> Running<'a> {
    fn new(child: &mut Child, stdin: &'a [u8], limit: usize) -> Self {
        let stdin_pipe = child.stdin.take();
        if let Some(pipe) = &stdin_pipe {
            dont_wait(pipe.as_fd());
        }
        Self {
            pidfd: rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok(),
            stdin: stdin_pipe,
            rest: stdin,
            out: Capture::new(child.stdout.take(), limit),
            err: Capture::new(child.stderr.take(), limit),
        }
    }

    /// Whether it ended in time, and what it printed.
    fn until(mut self, deadline: Instant) -> (bool, Vec<u8>, Vec<u8>) {
        let mut end = deadline;
        let mut ended = false;
        while !(ended && self.out.pipe.is_none() && self.err.pipe.is_none()) {
            let ready = self.wait(end);
            let Some([now_ended, can_write, out, err]) = ready else {
                break;
            };
            if now_ended && !ended {
                ended = true;
                self.pidfd = None;
                end = deadline.min(Instant::now() + AFTER_ITS_END);
            }
            if can_write {
                self.feed();
            }
            if out {
                self.out.take();
            }
            if err {
                self.err.take();
            }
        }
        (ended, self.out.bytes, self.err.bytes)
    }

    /// What can go on: it ended, it takes input, it printed; `None` when the time is up.
    fn wait(&self, end: Instant) -> Option<[bool; 4]> {
        let sources = [
            (self.pidfd.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.stdin.as_ref().map(AsFd::as_fd), PollFlags::OUT),
            (self.out.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.err.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
        ];
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(sources.len());
        let mut places = Vec::with_capacity(sources.len());
        for (place, (fd, flags)) in sources.iter().enumerate() {
            if let Some(fd) = fd {
                fds.push(PollFd::from_borrowed_fd(*fd, *flags));
                places.push(place);
            }
        }
        if !wait(&mut fds, end) {
            return None;
        }
        let mut ready = [false; 4];
        for (fd, place) in fds.iter().zip(places) {
            if let Some(flag) = ready.get_mut(place) {
                *flag = !fd.revents().is_empty();
            }
        }
        Some(ready)
    }

    /// Gives it the next piece; a program that doesn't want its input is left alone.
    fn feed(&mut self) {
        let Some(pipe) = &mut self.stdin else { return };
        let piece = self.rest.get(..CHUNK).unwrap_or(self.rest);
        match pipe.write(piece) {
            Ok(n) => self.rest = self.rest.get(n..).unwrap_or_default(),
            Err(e) if is_temporary(&e) => return,
            Err(_) => self.rest = &[],
        }
        if self.rest.is_empty() {
            self.stdin = None;
        }
    }
}

/// A stream of the program's, up to a limit.
struct Capture<R> {
    pipe: Option<R>,
    bytes: Vec<u8>,
    limit: usize,
}

impl<R: Read + AsFd> Capture<R> {
    fn new(pipe: Option<R>, limit: usize) -> Self {
        if let Some(pipe) = &pipe {
            dont_wait(pipe.as_fd());
        }
        Self {
            pipe,
            bytes: Vec::new(),
            limit,
        }
    }

    /// Takes what is there. What is over the limit is read and forgotten, or the program would
    /// wait for us.
    fn take(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut piece = [0; CHUNK];
        match pipe.read(&mut piece) {
            Ok(0) => self.pipe = None,
            Ok(n) => {
                let room = self.limit.saturating_sub(self.bytes.len());
                self.bytes
                    .extend_from_slice(piece.get(..n.min(room)).unwrap_or_default());
            }
            Err(e) if is_temporary(&e) => {}
            Err(_) => self.pipe = None,
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// A pipe of our own on which reading or writing never waits.
fn dont_wait(fd: BorrowedFd<'_>) {
    // Where this fails, a read after `poll` still finds its bytes.
    let _ = rustix::io::ioctl_fionbio(fd, true);
}

/// Waits until something is ready; false when the time is up.
fn wait(fds: &mut [PollFd<'_>], end: Instant) -> bool {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        match rustix::event::poll(fds, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) if !left.is_zero() => {}
            ready => return ready.is_ok_and(|n| n > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn bounds(within_ms: u64, output: usize) -> Bounds {
        Bounds {
            within: Duration::from_millis(within_ms),
            output,
        }
    }

    #[test]
    fn it_is_fed_and_heard_up_to_the_limit() {
        let own = OwnProcesses::default();
        let big = vec![b'x'; 1 << 20];
        let out = run(
            sh("wc -c; echo why >&2; yes | head -c 100000; exit 3"),
            &big,
            bounds(60_000, 1000),
            &own,
        )
        .unwrap();
        assert_eq!(out.status.unwrap().code(), Some(3));
        assert!(out.stdout.starts_with(b"1048576\n"), "{:?}", out.stdout);
        assert_eq!(out.stdout.len(), 1000);
        assert_eq!(out.stderr, b"why\n");
        assert!(own.list().is_empty());
    }

    #[test]
    fn a_program_that_wants_no_input_is_no_failure() {
        let own = OwnProcesses::default();
        let out = run(sh("exit 0"), &vec![b'x'; 1 << 20], bounds(60_000, 0), &own).unwrap();
        assert!(out.status.unwrap().success());
    }

    #[test]
    fn when_its_time_is_up_its_whole_group_is_killed() {
        let own = OwnProcesses::default();
        let started = Instant::now();
        let out = run(
            sh("sleep 600 & echo $!; trap '' TERM; sleep 600"),
            b"",
            bounds(500, 100),
            &own,
        )
        .unwrap();
        assert!(out.status.is_none());
        assert!(started.elapsed() < Duration::from_secs(30));
        let pid: u32 = String::from_utf8(out.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let gone = || {
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .map_or(true, |stat| stat.contains(") Z"))
        };
        let end = Instant::now() + Duration::from_secs(30);
        while !gone() {
            assert!(Instant::now() < end, "its child lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn it_inherits_no_blocked_signal() {
        let own = OwnProcesses::default();
        let before = crate::sys::signals::Mask::current();
        crate::sys::signals::Mask::full().set();
        let out = run(
            sh("grep SigBlk /proc/self/status"),
            b"",
            bounds(60_000, 100),
            &own,
        );
        before.set();
        assert_eq!(out.unwrap().stdout, b"SigBlk:\t0000000000000000\n");
    }
}
