//! The supervisor's end of the socket. Knows no NVML and never waits.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use super::protocol::{FromHelper, ToHelper};
pub use super::wire::Closed;
use super::wire::{Inbox, Outbox};

/// A connected helper. Dropping it closes the socket, which ends the helper.
#[derive(Debug)]
pub struct HelperLink {
    inbox: Inbox,
    outbox: Outbox,
}

impl HelperLink {
    /// Takes over our end of the socket pair.
    pub fn from_fd(socket: OwnedFd) -> Self {
        Self::shared(Arc::new(socket))
    }

    /// Speaks over our end of the socket pair.
    pub fn shared(socket: Arc<OwnedFd>) -> Self {
        Self {
            inbox: Inbox::new(Arc::clone(&socket)),
            outbox: Outbox::new(socket),
        }
    }

    /// Says something. What a full socket doesn't take waits for `flush`.
    ///
    /// `Ok(false)` if the helper hasn't read for so long that this was dropped. `Closed` if
    /// the helper is gone.
    pub fn send(&mut self, message: &ToHelper) -> Result<bool, Closed> {
        self.outbox.send(message)
    }

    /// Whether to poll for writability as well, and then `flush`.
    pub fn wants_write(&self) -> bool {
        self.outbox.is_waiting()
    }

    /// Sends what waits, as far as the socket takes it.
    pub fn flush(&mut self) -> Result<(), Closed> {
        self.outbox.flush()
    }

    /// What has arrived, maybe nothing. `Closed` once all has been given and the helper is gone.
    pub fn receive(&mut self) -> Result<Vec<FromHelper>, Closed> {
        self.inbox.receive()
    }
}

impl AsFd for HelperLink {
    /// Readable when there is something to receive.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inbox.as_fd()
    }
}

/// Starts a helper for a command that only asks for GPUs; `run` starts its own, which is
/// also its sentinel.
///
/// Errors if there is no socket or process to be had.
pub fn spawn() -> io::Result<(HelperLink, Child)> {
    let (ours, theirs) = UnixStream::pair()?;
    let child = Command::new("/proc/self/exe")
        // As its standard input the socket needs no inheriting by number.
        .args(["helper", "--socket", "0"])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok((HelperLink::from_fd(ours.into()), child))
}
