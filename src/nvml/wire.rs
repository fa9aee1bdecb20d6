//! JSON lines over a socket, without ever waiting for the other side.
//!
//! Owns the buffers of both directions, which are bounded. Must not know what is said.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The longest line that is taken from the other side.
const LONGEST_LINE: usize = 4 << 20;
/// How much may wait for a reader that doesn't read.
const MOST_WAITING: usize = 1 << 20;

/// The other side is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the other end of the socket is closed")]
pub struct Closed;

/// What arrives.
#[derive(Debug)]
pub struct Inbox {
    socket: Arc<OwnedFd>,
    partial: Vec<u8>,
    closed: bool,
}

impl Inbox {
    /// Reads from this socket.
    pub fn new(socket: Arc<OwnedFd>) -> Self {
        Self {
            socket,
            partial: Vec::new(),
            closed: false,
        }
    }

    /// The messages that have arrived whole, without waiting; lines that aren't messages are skipped.
    ///
    /// What arrived before the other side closed is given first, `Closed` after it.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, Closed> {
        let mut messages = Vec::new();
        let mut chunk = [0_u8; 16 * 1024];
        while !self.closed {
            let flags = MsgFlags::MSG_DONTWAIT;
            match recv(self.socket.as_raw_fd(), &mut chunk, flags) {
                Ok(0) => self.closed = true,
                Ok(n) => self.take(&chunk[..n], &mut messages),
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(_) => self.closed = true,
            }
        }
        if self.closed && messages.is_empty() {
            return Err(Closed);
        }
        Ok(messages)
    }

    fn take<T: DeserializeOwned>(&mut self, bytes: &[u8], messages: &mut Vec<T>) {
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                messages.extend(serde_json::from_slice(&self.partial).ok());
                self.partial.clear();
            }
        }
        // Nobody of ours writes such a line: there is no sense in what follows either.
        if self.partial.len() > LONGEST_LINE {
            self.closed = true;
        }
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What leaves.
#[derive(Debug)]
pub struct Outbox {
    socket: Arc<OwnedFd>,
    waiting: Vec<u8>,
}

impl Outbox {
    /// Writes to this socket.
    pub fn new(socket: Arc<OwnedFd>) -> Self {
        Self {
            socket,
            waiting: Vec::new(),
        }
    }

    /// Sends a message, as much of it as the socket takes now; the rest waits for `flush`.
    ///
    /// `Ok(false)` if too much is waiting already, and the message was dropped.
    pub fn send(&mut self, message: &impl Serialize) -> Result<bool, Closed> {
        self.flush()?;
        let Ok(line) = serde_json::to_vec(message) else {
            return Ok(false);
        };
        if self.waiting.len() + line.len() >= MOST_WAITING {
            return Ok(false);
        }
        self.waiting.extend_from_slice(&line);
        self.waiting.push(b'\n');
        self.flush()?;
        Ok(true)
    }

    /// Whether something waits for the socket to become writable.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Hands on what waits, as far as the socket takes it.
    pub fn flush(&mut self) -> Result<(), Closed> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        while !self.waiting.is_empty() {
            match send(self.socket.as_raw_fd(), &self.waiting, flags) {
                Ok(n) => {
                    self.waiting.drain(..n);
                }
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(_) => {
                    self.waiting.clear();
                    return Err(Closed);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (Outbox, Inbox) {
        let (a, b) = UnixStream::pair().unwrap();
        (
            Outbox::new(Arc::new(a.into())),
            Inbox::new(Arc::new(b.into())),
        )
    }

    #[test]
    fn what_was_sent_before_the_end_arrives_before_it() {
        let (mut out, mut into) = pair();
        assert_eq!(out.send(&1), Ok(true));
        assert_eq!(out.send(&2), Ok(true));
        drop(out);
        assert_eq!(into.receive::<u32>(), Ok(vec![1, 2]));
        assert_eq!(into.receive::<u32>(), Err(Closed));
    }

    #[test]
    fn nothing_to_read_is_no_end() {
        let (_out, mut into) = pair();
        assert_eq!(into.receive::<u32>(), Ok(vec![]));
    }

    #[test]
    fn a_line_in_pieces_is_one_message_and_nonsense_is_none() {
        let (a, b) = UnixStream::pair().unwrap();
        let mut into = Inbox::new(Arc::new(b.into()));
        for (piece, messages) in [("4", vec![]), ("2\nnon", vec![42]), ("sense\n7\n", vec![7])] {
            std::io::Write::write_all(&mut &a, piece.as_bytes()).unwrap();
            assert_eq!(into.receive::<u32>(), Ok(messages));
        }
    }

    #[test]
    fn a_reader_that_does_not_read_costs_a_bounded_buffer() {
        let (mut out, mut into) = pair();
        let text = "x".repeat(50_000);
        let sent = (0..200).take_while(|_| out.send(&text) == Ok(true)).count();
        assert!((20..199).contains(&sent), "{sent}");
        assert!(out.is_waiting());
        let mut arrived = 0;
        while arrived < sent {
            arrived += into.receive::<String>().unwrap().len();
            out.flush().unwrap();
        }
        assert_eq!(out.send(&text), Ok(true));
    }

    #[test]
    fn sending_to_nobody_is_an_error_and_no_signal() {
        let (mut out, into) = pair();
        drop(into);
        assert_eq!(out.send(&1), Err(Closed));
    }
}
