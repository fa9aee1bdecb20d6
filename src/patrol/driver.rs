//! The helper process that reads the GPUs, and its successors.
//!
//! Owns when another one is tried. One that hangs is waited for and never doubled; what is wrong
//! is said once until it is over.

use std::os::fd::{AsFd, BorrowedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::model::{GpuSample, Inventory};
use crate::nvml::client::{self, HelperLink};
use crate::nvml::protocol::{FromHelper, ToHelper, Watched};

/// Without a driver it is asked for again after so many intervals, and a minute at the least
/// where the interval is a usual one.
const RETRY_INTERVALS: u32 = 12;
/// Silence beyond the interval that is worth a word.
const SILENCE: Duration = Duration::from_secs(6);

/// What came of listening.
#[derive(Debug)]
pub enum Heard {
    /// What there is.
    Inventory(Inventory),
    /// One look at all devices.
    Tick(Vec<GpuSample>),
    /// Something is wrong from now on, in words.
    Trouble(String),
    /// It is over.
    Recovered,
}

/// The helper, or the wait for one.
pub struct Driver {
    link: Option<(HelperLink, Child)>,
    /// Former ones that were not seen to end: each would stay a zombie as long as we live.
    ending: Vec<Child>,
    interval: Duration,
    retry: Instant,
    heard: Instant,
    /// Whether readings are due; not while all GPUs sleep.
    ticking: bool,
    troubled: bool,
}

impl Driver {
    /// Nothing is started yet.
    pub fn new(interval: Duration) -> Self {
        let now = Instant::now();
        Self {
            link: None,
            ending: Vec::new(),
            interval,
            retry: now,
            heard: now,
            ticking: false,
            troubled: false,
        }
    }

    /// Readable when there is something to hear.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.as_ref().map(|(link, _)| link.as_fd())
    }

    /// When to look in although nothing was heard.
    pub fn due(&self) -> Instant {
        match &self.link {
            None => self.retry,
            Some(_) => self.heard.max(Instant::now()) + self.interval.max(SILENCE),
        }
    }

    /// What is to be heard now. `wake`: GPUs that all sleep are woken to be looked at.
    pub fn listen(&mut self, wake: bool) -> Vec<Heard> {
        let mut all = Vec::new();
        self.ending
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if self.link.is_none() && Instant::now() >= self.retry {
            self.start(wake, &mut all);
        }
        let Some((link, _)) = &mut self.link else {
            return all;
        };
        let Ok(messages) = link.receive() else {
            self.lose("the process that reads the GPUs has ended", &mut all);
            return all;
        };
        for message in messages {
            self.heard = Instant::now();
            self.hear(message, &mut all);
        }
        let silent = self.heard.elapsed();
        if self.ticking && self.link.is_some() && silent > self.interval + SILENCE {
            let s = silent.as_secs();
            self.trouble(
                format!("the driver doesn't answer: no readings for {s} s"),
                &mut all,
            );
        }
        all
    }

    fn hear(&mut self, message: FromHelper, all: &mut Vec<Heard>) {
        match message {
            FromHelper::Inventory(inventory) => {
                self.watch();
                self.ticking = true;
                all.push(Heard::Inventory(inventory));
            }
            FromHelper::Tick { gpus, .. } => {
                if std::mem::take(&mut self.troubled) {
                    all.push(Heard::Recovered);
                }
                all.push(Heard::Tick(gpus));
            }
            FromHelper::Failed { why } => self.lose(&why, all),
            FromHelper::Stuck { call, for_s, .. } => self.trouble(
                format!("the driver doesn't answer: {call} has not returned for {for_s:.0} s"),
                all,
            ),
            FromHelper::Unstuck | FromHelper::Xid { .. } => {}
        }
    }

    fn watch(&mut self) {
        let order = ToHelper::Watch {
            gpus: Watched::All,
            interval_ms: self.interval.as_millis() as u64,
        };
        if let Some((link, _)) = &mut self.link {
            // One that is gone is noticed when it is listened to.
            let _ = link.send(&order);
        }
    }

    fn start(&mut self, wake: bool, all: &mut Vec<Heard>) {
        self.heard = Instant::now();
        self.ticking = false;
        match client::spawn() {
            Ok(started) => {
                self.link = Some(started);
                if wake {
                    self.watch();
                }
            }
            Err(error) => self.lose(
                &format!("the process that reads the GPUs can't be started: {error}"),
                all,
            ),
        }
    }

    fn lose(&mut self, why: &str, all: &mut Vec<Heard>) {
        if let Some((mut link, child)) = self.link.take() {
            let _ = link.send(&ToHelper::Bye);
            // Its socket is closed, so it ends by itself, or when the kernel lets it.
            self.ending.push(child);
        }
        self.ticking = false;
        self.retry = Instant::now() + self.interval * RETRY_INTERVALS;
        self.trouble(why.to_owned(), all);
    }

    fn trouble(&mut self, why: String, all: &mut Vec<Heard>) {
        if !std::mem::replace(&mut self.troubled, true) {
            all.push(Heard::Trouble(why));
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some((link, _)) = &mut self.link {
            // It ends with the socket as well.
            let _ = link.send(&ToHelper::Bye);
        }
    }
}
