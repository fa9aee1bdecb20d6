//! The sentinel: a process in our group that keeps every signal blocked. A signal that waits
//! there was sent to the group (or to every process of the job), so the child has it too.
//!
//! It is forked before the child. Where GPUs are watched it becomes the NVML helper by exec,
//! which keeps both its mask and what waits behind it.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, send};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::sys::helper_io::adopt;
use crate::sys::process::{self, continue_with};
use crate::sys::signals::{self, Mask, consume};
use crate::sys::spawn::{exec_self, fork_bare};
use crate::sys::title;

/// Orders of five bytes, understood before the exec: what, and a number.
const BECOME_HELPER: u8 = b'h';
const CONSUME: u8 = b'c';
const RELEASE: u8 = b'r';
const FOLLOW: u8 = b'f';
const QUIT: u8 = b'q';

/// How long the relay's read ends outlive a killed gpuwatch, so that a printing child gets
/// its SIGTERM before a SIGPIPE.
pub const KEEP_AFTER_DEATH: Duration = Duration::from_secs(1);

/// How long a busy machine may keep the sentinel from taking a signal out: what is left there
/// makes the next one of its kind look like one to the group.
const CONSUMED_WITHIN: Duration = Duration::from_secs(1);

/// How long the sentinel leaves the processor to the command's start, ms.
const QUIET_FOR_MS: u8 = 20;

/// How often a stopped child is looked at, ms.
const FOLLOW_EVERY_MS: u8 = 200;

/// The sentinel, seen from the supervisor.
pub struct Sentinel {
    pid: u32,
    /// Dropped only at the end: the other side takes its end of file for our death.
    socket: Arc<OwnedFd>,
    status: String,
}

impl Sentinel {
    /// Forks it. To be called while this process has one thread, before the child is started.
    /// `keep`: the relay's read ends. `command`: what it stands beside.
    pub fn start(keep: &[RawFd], command: &[OsString]) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut open = keep.to_vec();
        open.push(theirs.as_raw_fd());
        let pid = fork_bare(&open, || serve(theirs, keep, command))?;
        Ok(Self {
            pid,
            socket: Arc::new(ours.into()),
            status: format!("/proc/{pid}/status"),
        })
    }

    /// Its PID: not part of the job.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Makes it the NVML helper. From then on the socket speaks the helper's protocol, and
    /// nothing else may be ordered here.
    pub fn become_helper(&self) -> io::Result<Arc<OwnedFd>> {
        self.order(BECOME_HELPER, 0)?;
        Ok(Arc::clone(&self.socket))
    }

    /// Continues it where somebody has stopped it with the whole group: a continuation of
    /// us alone is one of it as well, or nothing would be taken out of it any more. Whether
    /// it was needed, and there is one to be taken out.
    pub fn go_on(&self) -> bool {
        let is_needed = fs::read_to_string(&self.status).is_ok_and(|status| stands_still(&status));
        // Gone is fine: there is nothing to continue.
        is_needed && signals::send(self.pid, libc::SIGCONT).is_ok()
    }

    /// Takes a signal that was seen here out again. Only before `become_helper`.
    pub fn consume(&self, signal: i32) -> io::Result<()> {
        self.order(CONSUME, signal)
    }

    /// Closes its copy of this read end: a relay has ended, and its child must notice. Only
    /// before `become_helper`.
    pub fn release(&self, read_end: RawFd) -> io::Result<()> {
        self.order(RELEASE, read_end)
    }

    /// Continues us once this child goes on, while we are stopped; None: we were continued.
    /// Only before `become_helper`.
    pub fn follow(&self, child: Option<u32>) -> io::Result<()> {
        self.order(FOLLOW, child.map_or(0, |pid| pid as i32))
    }

    /// Ends it, without the wait for our death. Only before `become_helper`.
    pub fn quit(&self) -> io::Result<()> {
        self.order(QUIT, 0)
    }

    /// Waits for its end, so long at most, and reaps it.
    pub fn reap_within(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(ended) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) {
            let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO);
            // Whatever comes of it, what follows looks.
            let _ = poll(
                &mut [PollFd::new(ended.as_fd(), PollFlags::POLLIN)],
                timeout,
            );
        }
        while !process::is_reaped(self.pid) && Instant::now() < until {
            thread::sleep(Duration::from_micros(500));
        }
    }

    fn order(&self, what: u8, number: i32) -> io::Result<()> {
        let mut order = [what; 5];
        order[1..].copy_from_slice(&number.to_ne_bytes());
        // One that doesn't read (somebody has stopped it) must not hold us up.
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        send(self.socket.as_raw_fd(), &order, flags)?;
        Ok(())
    }

    /// Waits until this signal, which it was told to take out, is out; a moment at most, and
    /// not for one that is stopped.
    pub fn wait_without(&self, signal: i32) {
        let until = Instant::now() + CONSUMED_WITHIN;
        let is_under_way =
            |status: String| pending_in(&status, signal) == Some(true) && !stands_still(&status);
        while fs::read_to_string(&self.status).is_ok_and(is_under_way) && Instant::now() < until {
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Whether this signal waits there. None if that can't be known: it is dead, and nothing
    /// waits in the dead.
    pub fn has(&self, signal: i32) -> Option<bool> {
        pending_in(&fs::read_to_string(&self.status).ok()?, signal)
    }
}

/// `ShdPnd` of `/proc/PID/status` (proc(5)): signals that wait for the whole process, bit n-1
/// for signal n.
fn pending_in(status: &str, signal: i32) -> Option<bool> {
    process::lives(status).then_some(())?;
    Some(process::mask_in(status, "ShdPnd")? & (1 << (signal - 1)) != 0)
}

/// Whether the process of this `/proc/PID/status` is stopped, or will be as soon as it runs.
fn stands_still(status: &str) -> bool {
    let is_stopped = status
        .lines()
        .find_map(|line| line.strip_prefix("State:"))
        .is_some_and(|state| state.trim_start().starts_with(['T', 't']));
    is_stopped || pending_in(status, libc::SIGSTOP) == Some(true)
}

/// The sentinel's own life.
fn serve(mut socket: UnixStream, keep: &[RawFd], command: &[OsString]) -> i32 {
    Mask::full().set();
    process::call_us(process::HELPER_NAME);
    let program = process::HELPER_NAME.to_string_lossy().into_owned().into();
    let words: Vec<OsString> = [program].into_iter().chain(command.to_vec()).collect();
    let mut titled = false;
    let mut followed = None;
    loop {
        if !titled && is_quiet(&socket) {
            titled = true;
            title::show(&words);
        }
        if let Some(child) = followed {
            follow(&socket, child);
        }
        let mut what = [0_u8; 1];
        let mut number = [0_u8; 4];
        if socket
            .read_exact(&mut what)
            .and_then(|()| socket.read_exact(&mut number))
            .is_err()
        {
            thread::sleep(KEEP_AFTER_DEATH);
            return 0;
        }
        let number = i32::from_ne_bytes(number);
        match what[0] {
            QUIT => return 0,
            CONSUME => {
                consume(number);
            }
            RELEASE => drop(adopt(number)),
            FOLLOW => followed = u32::try_from(number).ok().filter(|pid| *pid != 0),
            _ => {
                let error = become_helper(&socket, keep, &words);
                return outlive(socket, &error);
            }
        }
    }
}

/// Whether there is no order for a moment. What can wait does so, because the command starts
/// meanwhile, perhaps on the same processor, and may be over at once.
fn is_quiet(socket: &UnixStream) -> bool {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, QUIET_FOR_MS) == Ok(0)
}

/// Until there is an order: keeps the supervisor going whenever this child goes on.
fn follow(socket: &UnixStream, child: u32) {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    while poll(&mut fds, FOLLOW_EVERY_MS) == Ok(0) {
        continue_with(child);
    }
}

fn become_helper(socket: &UnixStream, keep: &[RawFd], words: &[OsString]) -> io::Error {
    let mut args: Vec<OsString> = vec![words[0].clone(), "helper".into(), "--socket".into()];
    args.push(socket.as_raw_fd().to_string().into());
    for fd in keep {
        args.push("--keep".into());
        args.push(fd.to_string().into());
    }
    args.push("--".into());
    args.extend_from_slice(&words[1..]);
    let mut pass = keep.to_vec();
    pass.push(socket.as_raw_fd());
    exec_self(&args, &pass)
}

/// Without its helper the sentinel stays a sentinel: it says why, and every order that it no
/// longer understands empties what waits here.
fn outlive(mut socket: UnixStream, error: &io::Error) -> i32 {
    let said = format!("{{\"failed\":{{\"why\":\"the NVML helper can't start: {error}\"}}}}\n");
    let mut order = [0_u8; 512];
    if socket.write_all(said.as_bytes()).is_ok() {
        while socket.read(&mut order).is_ok_and(|n| n > 0) {
            (1..=64).for_each(|signal| {
                consume(signal);
            });
        }
    }
    thread::sleep(KEEP_AFTER_DEATH);
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_pending_mask() {
        let status = "Name:\tx\nState:\tS (sleeping)\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000004001\n";
        assert_eq!(pending_in(status, 15), Some(true));
        assert_eq!(pending_in(status, 1), Some(true));
        assert_eq!(pending_in(status, 2), Some(false));
        assert_eq!(pending_in("Name:\tx\nState:\tR (running)\n", 2), None);
        let stopping = "Name:\tx\nState:\tR (running)\nShdPnd:\t0000000000040000\n";
        let stopped = "Name:\tx\nState:\tT (stopped)\nShdPnd:\t0000000000000000\n";
        assert!(stands_still(stopping) && stands_still(stopped) && !stands_still(status));
        let dead = "Name:\tx\nState:\tZ (zombie)\nShdPnd:\t0000000000000000\n";
        assert_eq!(pending_in(dead, 2), None);
    }
}
