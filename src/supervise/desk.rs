//! What is laid down for the scribe, and where: a bounded desk at which nobody waits.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::act::stacks::Evidence;
use crate::model::{
    Event, Exit, GitState, GpuInfo, Inventory, Logged, ProgressState, Sample, Stamp,
};
use crate::read::fingerprint::Quote;
use crate::report::Leftover;

use super::state::End;

/// Entries that may wait for the disk: a minute and more of a lively run.
const ENTRIES: usize = 4096;
/// Bytes of output that may wait for the disk.
const OUTPUT_BYTES: usize = 8 << 20;

/// Nobody calls any more when those who could are gone.
const LATEST: Duration = Duration::from_secs(60);

/// What is handed over.
pub enum Entry {
    /// Output, as relayed, and how many bytes were lost before it.
    Output(Vec<u8>, u64),
    /// One tick.
    Sample(Box<Sample>),
    /// Something that happened.
    Event(Box<Logged>),
    /// What the driver says is there, and which of it is watched.
    Gpus(Box<(Inventory, Vec<GpuInfo>)>),
    /// How well the job can be told from others.
    Attribution(String),
    /// The work tree's state.
    Git(GitState),
    /// What `act` found out about a finding.
    Evidence(Box<(String, Evidence)>),
    /// What stands around the lines that the run may have failed of.
    Quotes(Vec<Quote>),
    /// A sentence for the summary.
    Problem(String),
    /// Somebody asked the run to end.
    Cancelling,
    /// The command has ended, and all that it printed was read.
    AttemptOver,
    /// What it ended of is to be said now, whatever is still missing.
    WhyNow(Exit),
    /// This finding ends the run.
    Stopping(String),
    /// The end: nothing comes after it.
    Final(Box<Final>),
}

/// How it ended.
pub struct Final {
    /// The child's end and what it means.
    pub end: End,
    /// When.
    pub ended: Stamp,
    /// Where training stood.
    pub progress: ProgressState,
    /// Processes that outlived the child.
    pub leftovers: Vec<Leftover>,
}

/// The desk on which things are laid for the scribe.
#[derive(Clone)]
pub struct Desk {
    entries: SyncSender<Entry>,
    /// Bytes of output that wait.
    held: Arc<AtomicUsize>,
    /// Samples and events that found the desk full.
    lost: Arc<AtomicU64>,
    /// Bytes of output that are lost and not said yet.
    lost_output: Arc<AtomicU64>,
    /// Whom to call; nobody yet.
    scribe: Arc<OnceLock<Thread>>,
    /// One sample may wait for the next.
    calm: Arc<AtomicBool>,
    /// One does.
    waits: Arc<AtomicBool>,
}

impl Desk {
    /// A desk and the scribe's side of it.
    pub fn new() -> (Self, Tray) {
        let (entries, inbox) = sync_channel(ENTRIES);
        let held = Arc::new(AtomicUsize::new(0));
        let (lost, lost_output) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let scribe = Arc::<OnceLock<Thread>>::default();
        let calm = Arc::<AtomicBool>::default();
        let desk = Self {
            entries,
            held: Arc::clone(&held),
            lost: Arc::clone(&lost),
            lost_output: Arc::clone(&lost_output),
            scribe: Arc::clone(&scribe),
            calm: Arc::clone(&calm),
            waits: Arc::default(),
        };
        (
            desk,
            Tray {
                inbox,
                held,
                lost,
                lost_output,
                scribe,
                calm,
            },
        )
    }

    /// Output, as relayed, before which so many bytes were lost already. What finds no place
    /// here within `patience` (None: at once) counts as lost before the next that does.
    pub fn output(&self, bytes: Vec<u8>, lost_before: u64, patience: Option<Duration>) {
        let n = bytes.len();
        let until = patience.map(|patience| Instant::now() + patience);
        while self.held.load(Ordering::Relaxed) + n > OUTPUT_BYTES
            && until.is_some_and(|until| Instant::now() < until)
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        let held = self.held.fetch_add(n, Ordering::Relaxed) + n;
        let lost = lost_before + self.lost_output.swap(0, Ordering::Relaxed);
        if held <= OUTPUT_BYTES && self.entries.try_send(Entry::Output(bytes, lost)).is_ok() {
            self.call();
            return;
        }
        self.held.fetch_sub(n, Ordering::Relaxed);
        self.output_lost(lost + n as u64);
    }

    /// So many bytes of output are missing from here on.
    pub fn output_lost(&self, n: u64) {
        self.lost_output.fetch_add(n, Ordering::Relaxed);
    }

    /// Something happened.
    pub fn event(&self, stamp: Stamp, event: Event) {
        self.put(Entry::Event(Box::new(Logged { stamp, event })));
    }

    /// Anything else.
    pub fn put(&self, entry: Entry) {
        let is_sample = matches!(entry, Entry::Sample(_));
        if let Err(TrySendError::Full(_)) = self.entries.try_send(entry) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        // Each call is a wake-up: while all is well every second sample is enough.
        let may_wait = is_sample && self.calm.load(Ordering::Relaxed);
        let waits = may_wait && !self.waits.load(Ordering::Relaxed);
        self.waits.store(waits, Ordering::Relaxed);
        if !waits {
            self.call();
        }
    }

    fn call(&self) {
        if let Some(scribe) = self.scribe.get() {
            scribe.unpark();
        }
    }
}

/// The scribe's side of the desk.
pub struct Tray {
    pub(super) inbox: Receiver<Entry>,
    pub(super) held: Arc<AtomicUsize>,
    pub(super) lost: Arc<AtomicU64>,
    pub(super) lost_output: Arc<AtomicU64>,
    scribe: Arc<OnceLock<Thread>>,
    calm: Arc<AtomicBool>,
}

impl Tray {
    /// What comes next; waits for it. None: nobody is left who could lay anything down.
    pub fn next(&self) -> Option<Entry> {
        // Called from here on; what came before lies there already.
        self.scribe.get_or_init(thread::current);
        loop {
            match self.inbox.try_recv() {
                Ok(entry) => return Some(entry),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => thread::park_timeout(LATEST),
            }
        }
    }

    /// Whether one sample may wait for the next.
    pub fn calm(&self, calm: bool) {
        self.calm.store(calm, Ordering::Relaxed);
    }
}
