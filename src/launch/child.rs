//! The main child: started, reaped; and orphans that the kernel gave us.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use crate::model::Exit;
use crate::sys::process::{self, Change};
use crate::sys::signals::{self, Mask};
use crate::sys::spawn::{self, Unspawned};

use super::streams::Streams;

/// The child, until it is reaped.
pub struct Child {
    pid: u32,
    ended: Option<Exit>,
}

impl Child {
    /// Starts the command with these changes of the environment. To be called by the main
    /// thread, with all signals blocked. With it comes what was sent to us before it was there:
    /// it lacks these, group or not.
    pub fn start(
        argv: &[OsString],
        set: &[(OsString, OsString)],
        streams: &Streams,
        mask: Mask,
    ) -> Result<(Self, Mask), Unspawned> {
        let child = spawn::Child::new(argv, set, streams.child, mask).map_err(Unspawned::Own)?;
        let (pid, lacks) = child.spawn()?;
        Ok((Self { pid, ended: None }, lacks))
    }

    /// Its PID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends it a signal, unless it is gone.
    pub fn signal(&self, signal: i32) -> bool {
        self.ended.is_none() && self.order(signal).is_ok()
    }

    /// The same, with why it couldn't be sent.
    pub fn order(&self, signal: i32) -> io::Result<()> {
        if self.has_ended() {
            return Ok(());
        }
        signals::send(self.pid, signal)
    }

    /// How it ended, if it has been reaped.
    pub fn ended(&self) -> Option<Exit> {
        self.ended
    }

    /// Whether it has been reaped.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Reaps it if it has ended. To be called at each SIGCHLD: a pidfd would say it too, but
    /// says it for ever while a debugger has the body.
    pub fn try_reap(&mut self) -> Option<Exit> {
        let exit = match process::reap_ended(self.pid)? {
            Change::Exited(code) => Exit {
                code: Some(code),
                signal: None,
            },
            Change::Killed(signal) => Exit {
                code: None,
                signal: Some(signal),
            },
            Change::Stopped(_) | Change::Continued => return None,
        };
        self.ended = Some(exit);
        Some(exit)
    }

    /// The signal that stopped it, if it has just been stopped.
    pub fn try_stopped(&self) -> Option<i32> {
        match process::stopped_or_continued(self.pid)? {
            Change::Stopped(signal) => Some(signal),
            _ => None,
        }
    }
}

/// Why a command didn't run, as exit codes tell it: 127 not found, 126 found but not to be
/// executed.
pub fn spawn_failure(program: &OsString, error: &io::Error) -> (u8, String) {
    let shown = program.to_string_lossy();
    let has_path = shown.contains('/');
    match error.raw_os_error() {
        Some(libc::ENOENT) if has_path && Path::new(program).exists() => (
            127,
            format!(
                "can't run '{shown}': its interpreter (first line, after #!) isn't there; install it or correct the line"
            ),
        ),
        Some(libc::ENOENT | libc::ENOTDIR) if has_path => (
            127,
            format!("can't run '{shown}': no such file; check the path"),
        ),
        Some(libc::ENOENT | libc::ENOTDIR) => (
            127,
            format!(
                "can't run '{shown}': command not found in PATH; check its spelling or give its path"
            ),
        ),
        Some(libc::EACCES) if Path::new(program).is_dir() => (
            126,
            format!("can't run '{shown}': it is a directory; name a program"),
        ),
        Some(libc::EACCES) => (
            126,
            format!(
                "can't run '{shown}': not executable; chmod +x it, or put its interpreter before it"
            ),
        ),
        _ => (126, format!("can't run '{shown}': {error}")),
    }
}

/// Reaps orphans of the job that became our children and have ended. Others' children (the
/// helper, hooks) are left to whoever waits for them.
pub fn reap_orphans(main: u32, ours: &[u32]) {
    let children = process::children(std::process::id());
    if children.is_empty() {
        // No /proc, or a kernel that doesn't list them there: one by one, as far as they are
        // nobody's whom we know.
        while let Some(pid) = process::next_ended() {
            if pid == main || ours.contains(&pid) || process::reap(pid).is_none() {
                break;
            }
        }
    }
    for pid in children {
        if pid != main && !ours.contains(&pid) && is_zombie(pid) {
            // Gone already is fine.
            let _ = process::reap(pid);
        }
    }
}

fn is_zombie(pid: u32) -> bool {
    process::stat_field(pid, 3).is_some_and(|state| state == "Z")
}
