//! Our end of the process that looks at followed files.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;

use crate::observe::{FilesReply, FilesRequest};

/// The start waits no longer for what was there before; what comes to be there meanwhile then
/// counts as older than the run.
const PATIENCE: Duration = Duration::from_millis(500);
/// The end waits no longer for a last look, and no more looks follow after this.
pub const LAST: Duration = Duration::from_millis(300);
/// So much is read at once.
const AT_ONCE: usize = 256 * 1024;

/// The process and the socket to it.
pub struct Files {
    child: Child,
    socket: UnixStream,
    partial: Vec<u8>,
}

impl Files {
    /// Starts it, and waits a moment until it has seen what is there.
    ///
    /// # Errors
    /// There is no process or socket to be had.
    pub fn start(paths: &[PathBuf]) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new("/proc/self/exe")
            .arg("follow-files")
            .arg("--")
            .args(paths)
            // As its standard input the socket needs no inheriting by number.
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut files = Self {
            child,
            socket: ours,
            partial: Vec::new(),
        };
        files.reply(Some(Instant::now() + PATIENCE), None)?;
        Ok(files)
    }

    /// Its PID: it is none of the job's.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks for a look and waits for it; `finish` is readable when the run has ended, and from
    /// then on the wait is short. None where it was too short.
    ///
    /// # Errors
    /// The process is gone.
    pub fn look(
        &mut self,
        request: FilesRequest,
        finish: &EventFd,
    ) -> io::Result<Option<FilesReply>> {
        let mut line = serde_json::to_vec(&request)?;
        line.push(b'\n');
        self.socket.write_all(&line)?;
        loop {
            let reply = self.reply(None, Some(finish))?;
            // The first one of all only says that it has begun.
            match reply {
                Some(reply) if reply.0.is_empty() => {}
                other => return Ok(other),
            }
        }
    }

    fn reply(
        &mut self,
        mut until: Option<Instant>,
        finish: Option<&EventFd>,
    ) -> io::Result<Option<FilesReply>> {
        loop {
            if let Some(end) = self.partial.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.partial.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            let bell = finish.filter(|_| until.is_none());
            let mut fds = vec![PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            fds.extend(bell.map(|bell| PollFd::new(bell.as_fd(), PollFlags::POLLIN)));
            let limit = left.map_or(PollTimeout::NONE, |left| {
                PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
            });
            // Interrupted, nothing is readable.
            let _ = poll(&mut fds, limit);
            if fds.get(1).is_some_and(|bell| bell.any() == Some(true)) {
                until = Some(Instant::now() + LAST);
            }
            self.take()?;
        }
    }

    fn take(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; AT_ONCE];
        match self.socket.read(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                self.partial.extend_from_slice(&bytes[..n]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // It ends with the socket; one that hangs is left behind, and holds nothing of ours.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.child.try_wait();
    }
}
