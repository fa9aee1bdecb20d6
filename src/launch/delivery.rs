//! How far one relay is, for those who may know it: figures that the byte path leaves behind
//! as it goes, and that cost it nothing.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::model::Stream;
use crate::sys::streams::{standard, window_size};

use super::streams::Source;

/// What the rest of the program may know of one relay.
pub struct Progress {
    pub(super) stream: Stream,
    pub(super) to: RawFd,
    /// The number of its read end, by which the sentinel knows its copy.
    pub(super) read_end: RawFd,
    pub(super) began: Instant,
    pub(super) bytes: AtomicU64,
    pub(super) last_byte: AtomicU8,
    /// Columns and rows of the terminal that a PTY stands in for, 16 bits each; 0: none.
    pub(super) size: AtomicU32,
    /// Milliseconds after `began` at which the present write started, plus one; 0: none.
    pub(super) writing_since: AtomicU64,
    /// The error that ended it, other than a reader's end; 0: none.
    pub(super) failed: AtomicI32,
    /// The first defect of ours in it.
    defect: OnceLock<String>,
    /// It waits for something to read, having delivered what it had.
    pub(super) idle: AtomicBool,
    pub(super) ended: AtomicBool,
    /// Its end was taken notice of.
    pub(super) noticed: AtomicBool,
}

impl Progress {
    /// Of a relay that hasn't begun.
    pub(super) fn of(source: &Source) -> Self {
        Self {
            stream: source.stream,
            to: source.to,
            read_end: source.read.as_raw_fd(),
            began: Instant::now(),
            bytes: AtomicU64::new(0),
            last_byte: AtomicU8::new(b'\n'),
            size: AtomicU32::new(0),
            writing_since: AtomicU64::new(0),
            failed: AtomicI32::new(0),
            defect: OnceLock::new(),
            idle: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            noticed: AtomicBool::new(false),
        }
    }

    /// How the stream is called in the record.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// The number of its read end.
    pub fn read_end(&self) -> RawFd {
        self.read_end
    }

    /// Why it could deliver no more, where that isn't its reader's own will.
    pub fn failure(&self) -> Option<io::Error> {
        match self.failed.load(Ordering::Acquire) {
            0 => None,
            errno => Some(io::Error::from_raw_os_error(errno)),
        }
    }

    /// The defect of ours after which nobody but the user saw what it delivered.
    pub fn defect(&self) -> Option<&str> {
        self.defect.get().map(String::as_str)
    }

    /// The first is the cause of the others.
    pub(super) fn note_defect(&self, why: String) {
        self.defect.get_or_init(|| why);
    }

    /// Columns and rows, where a PTY stands in for a terminal that tells.
    pub fn size(&self) -> Option<(u16, u16)> {
        let size = self.size.load(Ordering::Relaxed);
        (size != 0).then_some(((size >> 16) as u16, size as u16))
    }

    /// Whether everything that was written to the stream so far is delivered.
    pub(super) fn is_settled(&self) -> bool {
        if self.ended.load(Ordering::Acquire) {
            return true;
        }
        let readable = poll(
            &mut [PollFd::new(standard(self.read_end), PollFlags::POLLIN)],
            PollTimeout::ZERO,
        );
        readable == Ok(0) && self.idle.load(Ordering::Acquire)
    }

    /// Takes in the real terminal's size; true if it has changed.
    pub(super) fn note_size(&self) -> bool {
        let Ok(size) = window_size(standard(self.to)) else {
            return false;
        };
        // A terminal that doesn't know its size is taken for this one by programs too.
        let known = size.ws_col > 0 && size.ws_row > 0;
        let (cols, rows) = if known {
            (size.ws_col, size.ws_row)
        } else {
            (80, 24)
        };
        let both = u32::from(cols) << 16 | u32::from(rows);
        self.size.swap(both, Ordering::Relaxed) != both
    }

    /// Whether what was delivered last has no newline behind it: perhaps a prompt.
    pub fn mid_line(&self) -> bool {
        self.last_byte.load(Ordering::Relaxed) != b'\n'
    }

    /// Bytes delivered so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// For how long the reader has taken nothing of what we hold for it.
    pub fn blocked_for(&self) -> Duration {
        match self.writing_since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => self
                .began
                .elapsed()
                .saturating_sub(Duration::from_millis(since - 1)),
        }
    }
}
