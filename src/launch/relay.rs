//! The byte path: one thread a stream, reading and writing until the end. It waits for
//! nothing of ours: whoever wants to look at the bytes gets a copy through `Tap`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::{read, write};

use crate::model::{Stream, Tap};
use crate::sys::signals::Mask;
use crate::sys::streams::{standard, window_size};

use super::streams::Source;
use super::terminal::{Terminal, copy_size};

const CHUNK: usize = 64 * 1024;

/// After the child's end, how long all relays together may find nothing to read: somebody
/// else still holds the stream.
const DRAIN_IDLE: Duration = Duration::from_secs(2);

/// What the rest of the program may know of one relay.
pub struct Progress {
    stream: Stream,
    to: RawFd,
    /// The number of its read end, by which the sentinel knows its copy.
    read_end: RawFd,
    began: Instant,
    bytes: AtomicU64,
    last_byte: AtomicU8,
    /// Columns and rows of the terminal that a PTY stands in for, 16 bits each; 0: none.
    size: AtomicU32,
    /// Milliseconds after `began` at which the present write started, plus one; 0: none.
    writing_since: AtomicU64,
    ended: AtomicBool,
    /// Its end was taken notice of.
    noticed: AtomicBool,
}

impl Progress {
    /// How the stream is called in the record.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Columns and rows, where a PTY stands in for a terminal that tells.
    pub fn size(&self) -> Option<(u16, u16)> {
        let size = self.size.load(Ordering::Relaxed);
        (size != 0).then_some(((size >> 16) as u16, size as u16))
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

/// All relays of a run.
pub struct Relays {
    streams: Vec<Arc<Progress>>,
    sizes: Vec<(BorrowedFd<'static>, OwnedFd, Arc<Progress>)>,
    /// One for each relay that hasn't begun.
    go: Vec<(Sender<()>, JoinHandle<()>)>,
    drain: Arc<EventFd>,
    ended: Arc<EventFd>,
}

impl Relays {
    /// Makes one thread for each source, which waits for `begin`: there is no child yet whose
    /// output a thread that can't be had would leave unread. Signals are blocked in the
    /// caller, and so in them; only SIGTTOU acts, so that `stty tostop` stops the job as it
    /// would without us.
    pub fn start(sources: Vec<Source>, tap: &Arc<dyn Tap>) -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let mut relays = Self {
            streams: Vec::new(),
            sizes: Vec::new(),
            go: Vec::new(),
            drain: Arc::new(EventFd::from_value_and_flags(0, flags)?),
            ended: Arc::new(EventFd::from_value_and_flags(0, flags)?),
        };
        for source in sources {
            relays.add(source, tap)?;
        }
        Ok(relays)
    }

    /// Nothing is relayed after all: gives back what was had for it. Only before `begin`.
    pub fn give_up(&mut self) {
        for (go, thread) in self.go.drain(..) {
            drop(go);
            // It has nothing to do but end, whatever it says then.
            let _ = thread.join();
        }
        self.sizes.clear();
        self.streams.clear();
    }

    /// The child was started: from now on its output is delivered.
    pub fn begin(&mut self) {
        self.copy_sizes();
        for (go, _) in self.go.drain(..) {
            // A thread that has gone has nothing to deliver.
            let _ = go.send(());
        }
    }

    fn add(&mut self, source: Source, tap: &Arc<dyn Tap>) -> io::Result<()> {
        let progress = Arc::new(Progress {
            stream: source.stream,
            to: source.to,
            read_end: source.read.as_raw_fd(),
            began: Instant::now(),
            bytes: AtomicU64::new(0),
            last_byte: AtomicU8::new(b'\n'),
            size: AtomicU32::new(0),
            writing_since: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            noticed: AtomicBool::new(false),
        });
        if source.terminal.is_some() {
            let pty = source.read.try_clone()?;
            self.sizes
                .push((standard(source.to), pty, Arc::clone(&progress)));
        }
        let relay = Relay {
            read: source.read,
            terminal: source.terminal,
            progress: Arc::clone(&progress),
            tap: Arc::clone(tap),
            drain: Arc::clone(&self.drain),
            draining: false,
            idle_left: DRAIN_IDLE,
        };
        let ended = Arc::clone(&self.ended);
        let (go, begin) = channel();
        let thread = std::thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || {
                if begin.recv().is_err() {
                    // Nothing was started.
                    return;
                }
                Mask::current().without(libc::SIGTTOU).set();
                let progress = Arc::clone(&relay.progress);
                relay.run();
                progress.ended.store(true, Ordering::Release);
                // Can only fail if the counter is full, and then it is readable anyway.
                let _ = ended.write(1);
            })?;
        self.streams.push(progress);
        self.go.push((go, thread));
        Ok(())
    }

    /// From now on a stream on which nothing comes is given up.
    pub fn drain(&self) {
        // As above.
        let _ = self.drain.write(1);
    }

    /// Readable when some relay has ended.
    pub fn ended_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// The read ends of relays that have ended since the last call.
    pub fn newly_ended(&self) -> Vec<RawFd> {
        // Nothing to read: this was a look without a cause.
        let _ = self.ended.read();
        let new = |p: &&Arc<Progress>| {
            p.ended.load(Ordering::Acquire) && !p.noticed.swap(true, Ordering::Relaxed)
        };
        self.streams
            .iter()
            .filter(new)
            .map(|p| p.read_end)
            .collect()
    }

    /// Whether every relay has ended.
    pub fn all_ended(&self) -> bool {
        self.streams.iter().all(|p| p.ended.load(Ordering::Acquire))
    }

    /// What the observer may look at.
    pub fn progress(&self) -> Vec<Arc<Progress>> {
        self.streams.clone()
    }

    /// Whether a line of ours on stderr would begin in the middle of the child's last one.
    pub fn mid_line(&self) -> bool {
        let last = |p: &Arc<Progress>| p.last_byte.load(Ordering::Relaxed);
        let shown_with_stderr = |p: &&Arc<Progress>| {
            p.to == 2
                || p.stream == Stream::Err
                || self.sizes.iter().any(|(fd, ..)| fd.as_raw_fd() == p.to)
        };
        self.streams
            .iter()
            .filter(shown_with_stderr)
            .any(|p| last(p) != b'\n')
    }

    /// Whether any PTY stands in for a terminal.
    pub fn has_terminal(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// Copies the terminals' size to their stand-ins.
    pub fn copy_sizes(&self) {
        for (real, pty, progress) in &self.sizes {
            copy_size(*real, pty.as_fd());
            if let Ok(size) = window_size(*real) {
                // A terminal that doesn't know its size is taken for this one by programs too.
                let known = size.ws_col > 0 && size.ws_row > 0;
                let (cols, rows) = if known {
                    (size.ws_col, size.ws_row)
                } else {
                    (80, 24)
                };
                let both = u32::from(cols) << 16 | u32::from(rows);
                progress.size.store(both, Ordering::Relaxed);
            }
        }
    }
}

struct Relay {
    read: OwnedFd,
    terminal: Option<Terminal>,
    progress: Arc<Progress>,
    tap: Arc<dyn Tap>,
    drain: Arc<EventFd>,
    draining: bool,
    idle_left: Duration,
}

impl Relay {
    fn run(mut self) {
        let mut chunk = vec![0_u8; CHUNK];
        loop {
            match read(&self.read, &mut chunk) {
                Ok(0) => break,
                Ok(n) => {
                    let bytes = &chunk[..n];
                    if let Some(terminal) = &mut self.terminal {
                        terminal.mirror(self.read.as_fd());
                    }
                    if self.deliver(bytes).is_err() {
                        // Our reader is gone or can't take more: closing our end tells the
                        // child what writing there itself would have told it.
                        break;
                    }
                    self.tap.relayed(self.progress.stream, bytes);
                }
                Err(Errno::EAGAIN) => {
                    if !self.wait() {
                        break;
                    }
                }
                Err(Errno::EINTR) => {}
                // On a PTY this is the end: its last writer has closed it.
                Err(_) => break,
            }
        }
        self.tap.closed(self.progress.stream);
        if let Some(terminal) = &mut self.terminal {
            terminal.restore();
        }
    }

    /// Waits until there is something to read; false when draining has taken long enough.
    fn wait(&mut self) -> bool {
        if !self.draining {
            let mut fds = [
                PollFd::new(self.read.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.drain.as_fd(), PollFlags::POLLIN),
            ];
            // An interrupted poll is tried again by reading first.
            let _ = poll(&mut fds, PollTimeout::NONE);
            self.draining = fds[1].any() == Some(true);
            return true;
        }
        let began = Instant::now();
        let mut fds = [PollFd::new(self.read.as_fd(), PollFlags::POLLIN)];
        let ready = poll(
            &mut fds,
            PollTimeout::try_from(self.idle_left).unwrap_or(PollTimeout::ZERO),
        );
        self.idle_left = self.idle_left.saturating_sub(began.elapsed());
        ready != Ok(0)
    }

    fn deliver(&self, mut bytes: &[u8]) -> nix::Result<()> {
        let progress = &self.progress;
        let to = standard(progress.to);
        if let Some(last) = bytes.last() {
            progress.last_byte.store(*last, Ordering::Relaxed);
        }
        let since = progress.began.elapsed().as_millis() as u64 + 1;
        progress.writing_since.store(since, Ordering::Relaxed);
        while !bytes.is_empty() {
            match write(to, bytes) {
                Ok(n) => {
                    bytes = &bytes[n..];
                    progress.bytes.fetch_add(n as u64, Ordering::Relaxed);
                }
                Err(Errno::EINTR) => {}
                // Somebody who shares the open file has made it non-blocking.
                Err(Errno::EAGAIN) => {
                    let _ = poll(
                        &mut [PollFd::new(to, PollFlags::POLLOUT)],
                        PollTimeout::NONE,
                    );
                }
                Err(error) => return Err(error),
            }
        }
        progress.writing_since.store(0, Ordering::Relaxed);
        Ok(())
    }
}
