//! The byte path: one thread a stream, reading and writing until the end. It waits for
//! nothing of ours: whoever wants to look at the bytes gets a copy through `Tap`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::termios::SetArg;
use nix::unistd::write;

use crate::model::{Stream, Tap};
use crate::sys::defect::caught;
use crate::sys::fault;
use crate::sys::signals::Mask;
use crate::sys::streams::standard;

pub use super::delivery::Progress;
use super::keys::Keys;
use super::streams::{PIPE_BYTES, Source, read};
use super::terminal::{Terminal, copy_size};

const CHUNK: usize = 64 * 1024;

/// After the child's end, how long all relays together may find nothing to read: somebody
/// else still holds the stream.
const DRAIN_IDLE: Duration = Duration::from_millis(1900);

/// How long a stop of ours may wait for output that the child wrote before its own.
const SETTLING: Duration = Duration::from_millis(200);

/// What a PTY may hold: the kernel's 64 KiB and what its line discipline has taken of them.
const PTY_BYTES: usize = 128 * 1024;

/// What a packet of a PTY begins with that is output (`ioctl_tty(2)`).
const TIOCPKT_DATA: u8 = 0;

/// A PTY and the terminal that it stands in for.
struct Shown {
    real: BorrowedFd<'static>,
    pty: OwnedFd,
    settings: Arc<Mutex<Terminal>>,
    progress: Arc<Progress>,
}

/// All relays of a run.
pub struct Relays {
    streams: Vec<Arc<Progress>>,
    terminals: Vec<Shown>,
    /// One for each relay that hasn't begun.
    go: Vec<(Sender<()>, JoinHandle<()>)>,
    drain: Arc<EventFd>,
    child_ended: Arc<AtomicBool>,
    ended: Arc<EventFd>,
    /// A new size was copied since the child was last told of one.
    resized: AtomicBool,
}

impl Relays {
    /// Makes one thread for each source, which waits for `begin`: there is no child yet whose
    /// output a thread that can't be had would leave unread. Signals are blocked in the
    /// caller, and so in them; only SIGTTOU acts, so that `stty tostop`, and setting
    /// the terminal from the background, stop the job as they would without us.
    pub fn start(sources: Vec<Source>, tap: &Arc<dyn Tap>) -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let mut relays = Self {
            streams: Vec::new(),
            terminals: Vec::new(),
            go: Vec::new(),
            drain: Arc::new(EventFd::from_value_and_flags(0, flags)?),
            child_ended: Arc::default(),
            ended: Arc::new(EventFd::from_value_and_flags(0, flags)?),
            resized: AtomicBool::new(false),
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
        self.terminals.clear();
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
        let progress = Arc::new(Progress::of(&source));
        let terminal = source
            .terminal
            .map(|terminal| Arc::new(Mutex::new(terminal)));
        if let Some(terminal) = &terminal {
            // Known before anybody asks how the output is laid out.
            progress.note_size();
            self.terminals.push(Shown {
                real: standard(source.to),
                pty: source.read.try_clone()?,
                settings: Arc::clone(terminal),
                progress: Arc::clone(&progress),
            });
        }
        let keys = terminal
            .as_ref()
            .and_then(|_| Keys::new(source.read.as_fd(), standard(source.to)));
        let relay = Relay {
            read: source.read,
            in_packets: source.in_packets,
            keys,
            terminal,
            progress: Arc::clone(&progress),
            tap: Arc::clone(tap),
            drain: Arc::clone(&self.drain),
            child_ended: Arc::clone(&self.child_ended),
            draining: false,
            idle_left: DRAIN_IDLE,
            childs: None,
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
                if let Err(why) = caught(|| relay.run()) {
                    progress.note_defect(why);
                }
                progress.ended.store(true, Ordering::Release);
                // Can only fail if the counter is full, and then it is readable anyway.
                let _ = ended.write(1);
            })?;
        self.streams.push(progress);
        self.go.push((go, thread));
        Ok(())
    }

    /// From now on a stream is given up on which nothing comes, or only what others write than
    /// the child, which has ended.
    pub fn drain(&self) {
        self.child_ended.store(true, Ordering::Release);
        // As above.
        let _ = self.drain.write(1);
    }

    /// Readable when some relay has ended.
    pub fn ended_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// The relays that have ended since the last call.
    pub fn newly_ended(&self) -> Vec<&Progress> {
        // Nothing to read: this was a look without a cause.
        let _ = self.ended.read();
        let new = |p: &&Arc<Progress>| {
            p.ended.load(Ordering::Acquire) && !p.noticed.swap(true, Ordering::Relaxed)
        };
        self.streams.iter().filter(new).map(Arc::as_ref).collect()
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
                || self.terminals.iter().any(|t| t.real.as_raw_fd() == p.to)
        };
        self.streams
            .iter()
            .filter(shown_with_stderr)
            .any(|p| last(p) != b'\n')
    }

    /// Whether any PTY stands in for a terminal.
    pub fn has_terminal(&self) -> bool {
        !self.terminals.is_empty()
    }

    /// Copies the terminals' size to their stand-ins.
    pub fn copy_sizes(&self) {
        for shown in &self.terminals {
            if copy_size(shown.real, shown.pty.as_fd()) {
                self.resized.store(true, Ordering::Relaxed);
            }
            shown.progress.note_size();
        }
    }

    /// The child is told of the size now. Whether a new one was copied since the last time.
    pub fn take_resized(&self) -> bool {
        self.resized.swap(false, Ordering::Relaxed)
    }

    /// Waits until what was written so far is delivered, as long as a reader may need who
    /// isn't slow.
    pub fn settle(&self) {
        let until = Instant::now() + SETTLING;
        while !self.are_settled() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether what was written so far is delivered.
    pub fn are_settled(&self) -> bool {
        self.streams.iter().all(|p| p.is_settled())
    }

    /// We are about to be stopped: what the child has set last is set in the real terminal,
    /// which no output of the child will cause any more.
    pub fn mirror(&self) {
        for shown in &self.terminals {
            // A relay that holds it is doing the same.
            if let Ok(mut settings) = shown.settings.try_lock() {
                settings.mirror(shown.pty.as_fd(), SetArg::TCSANOW);
            }
        }
    }
}

struct Relay {
    read: OwnedFd,
    in_packets: bool,
    terminal: Option<Arc<Mutex<Terminal>>>,
    keys: Option<Keys>,
    progress: Arc<Progress>,
    tap: Arc<dyn Tap>,
    drain: Arc<EventFd>,
    child_ended: Arc<AtomicBool>,
    draining: bool,
    idle_left: Duration,
    /// Since when the child is known to have ended, and how many bytes of those that came
    /// since may still be its own.
    childs: Option<(Instant, usize)>,
}

/// Bytes that were read, and how many of them are delivered.
struct Chunk {
    buffer: Vec<u8>,
    delivered: usize,
    read: usize,
}

impl Relay {
    fn run(mut self) {
        let mut chunk = Chunk {
            buffer: vec![0_u8; CHUNK],
            delivered: 0,
            read: 0,
        };
        if let Err(why) = caught(|| self.relay(&mut chunk)) {
            // The child must not meet a closed pipe for it.
            self.progress.note_defect(why);
            self.copy(&mut chunk);
        }
        let closed = caught(|| self.tap.closed(self.progress.stream));
        if let Some(terminal) = &self.terminal {
            let mut terminal = terminal.lock().unwrap_or_else(PoisonError::into_inner);
            terminal.restore();
        }
        if let Err(why) = closed {
            self.progress.note_defect(why);
        }
    }

    fn relay(&mut self, chunk: &mut Chunk) {
        loop {
            match read(&self.read, &mut chunk.buffer) {
                Ok(0) => break,
                Ok(n) => {
                    let is_data = self.take_in(chunk, n);
                    fault::at("relay");
                    self.follow_terminal();
                    if !is_data {
                        continue;
                    }
                    let from = chunk.delivered;
                    if let Err(error) = self.deliver(chunk) {
                        // Our reader is gone or can't take more: closing our end tells the
                        // child what writing there itself would have told it.
                        self.note_failure(error);
                        break;
                    }
                    self.tap
                        .relayed(self.progress.stream, &chunk.buffer[from..n]);
                    if self.has_only_others(n - from) {
                        break;
                    }
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
    }

    /// After a defect of ours: bytes in, bytes out, to the end. Nobody else sees them.
    fn copy(&mut self, chunk: &mut Chunk) {
        loop {
            if let Err(error) = self.deliver(chunk) {
                self.note_failure(error);
                return;
            }
            match read(&self.read, &mut chunk.buffer) {
                Ok(0) => return,
                Ok(n) => {
                    self.take_in(chunk, n);
                    if self.has_only_others(n) && self.deliver(chunk).is_ok() {
                        return;
                    }
                }
                Err(Errno::EAGAIN) => {
                    self.keys = None;
                    if !self.wait() {
                        return;
                    }
                }
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }

    /// A child that has written its last is told nothing by a closed end, so others must be.
    fn note_failure(&self, error: Errno) {
        let reader_is_gone = error == Errno::EPIPE
            || error == Errno::ECONNRESET
            || (error == Errno::EIO && self.terminal.is_some());
        if !reader_is_gone {
            self.progress.failed.store(error as i32, Ordering::Release);
        }
    }

    /// Keeps the stand-in and the real terminal alike.
    fn follow_terminal(&self) {
        let Some(terminal) = &self.terminal else {
            return;
        };
        let mut terminal = terminal.lock().unwrap_or_else(PoisonError::into_inner);
        terminal.follow(self.read.as_fd());
        // In the background nobody is told of a window's new size.
        if self.progress.note_size() {
            terminal.copy_size(self.read.as_fd());
        }
    }

    /// Whether so many bytes that were read are the child's; what tells something else isn't to
    /// be delivered.
    fn take_in(&mut self, chunk: &mut Chunk, n: usize) -> bool {
        let is_data = !self.in_packets || chunk.buffer[0] == TIOCPKT_DATA;
        chunk.read = n;
        chunk.delivered = if is_data {
            usize::from(self.in_packets)
        } else {
            n
        };
        if !is_data && let Some(keys) = &mut self.keys {
            keys.expect_reader();
        }
        is_data
    }

    /// Passes on keys to who reads them from the stand-in; returns when to try again.
    fn pass_keys(&mut self) -> Option<Duration> {
        let terminal = self.terminal.as_ref()?;
        self.keys.as_mut()?.pass(self.read.as_fd(), || {
            let terminal = terminal.lock().unwrap_or_else(PoisonError::into_inner);
            terminal.hold(self.read.as_fd())
        })
    }

    /// Whether all that the child can have left in the stream was delivered, and others who
    /// write to it without a pause had their time as well.
    fn has_only_others(&mut self, n: usize) -> bool {
        if !self.child_ended.load(Ordering::Acquire) {
            return false;
        }
        let held = if self.terminal.is_some() {
            PTY_BYTES
        } else {
            PIPE_BYTES
        };
        let (since, left) = self.childs.get_or_insert((Instant::now(), held));
        *left = left.saturating_sub(n);
        *left == 0 && since.elapsed() >= DRAIN_IDLE
    }

    /// Waits until there is something to read; false when draining has taken long enough.
    fn wait(&mut self) -> bool {
        self.progress.idle.store(true, Ordering::Release);
        let goes_on = self.wait_for_bytes();
        self.progress.idle.store(false, Ordering::Release);
        goes_on
    }

    fn wait_for_bytes(&mut self) -> bool {
        if !self.draining {
            let again = self.pass_keys();
            let keys = self.keys.as_ref().map(Keys::source);
            let mut fds = [
                PollFd::new(self.read.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.drain.as_fd(), PollFlags::POLLIN),
                PollFd::new(keys.unwrap_or(self.drain.as_fd()), PollFlags::POLLIN),
            ];
            let timeout = again.map_or(PollTimeout::NONE, |pause| {
                // Rounded up: what is due a little later isn't due yet.
                PollTimeout::try_from(pause + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            });
            // An interrupted poll is tried again by reading first.
            let _ = poll(&mut fds, timeout);
            let ready = fds.map(|fd| fd.any() == Some(true));
            self.draining = ready[1];
            if let Some(keys) = self.keys.as_mut().filter(|_| ready[2]) {
                keys.are_typed();
            }
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

    /// What of it isn't delivered yet.
    fn deliver(&self, chunk: &mut Chunk) -> nix::Result<()> {
        let progress = &self.progress;
        let to = standard(progress.to);
        let mut bytes = &chunk.buffer[chunk.delivered..chunk.read];
        if let Some(last) = bytes.last() {
            progress.last_byte.store(*last, Ordering::Relaxed);
        }
        let since = progress.began.elapsed().as_millis() as u64 + 1;
        progress.writing_since.store(since, Ordering::Relaxed);
        while !bytes.is_empty() {
            match write(to, bytes) {
                Ok(n) => {
                    bytes = &bytes[n..];
                    chunk.delivered += n;
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
