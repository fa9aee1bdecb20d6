//! Asking the driver which GPUs there are and how they stand, through the helper, while signals
//! are listened to.

use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Unplaced;
use crate::launch::signals::{Arrivals, name};
use crate::model::{GpuSample, Inventory};
use crate::nvml::protocol::{FromHelper, Watched};
use crate::supervise::beside::Beside;
use crate::sys::signals::suffer;

/// How long a choice of GPUs may delay the start.
const PATIENCE: Duration = Duration::from_secs(3);

/// One look is enough where nothing is waited for; the run's own interval comes later.
const ONCE: Duration = Duration::from_secs(3600);

/// What the driver said.
pub struct Answer {
    /// What there is.
    pub inventory: Inventory,
    /// What was read of it last.
    pub samples: Vec<GpuSample>,
}

/// A conversation with the driver.
pub struct Asking<'a> {
    beside: &'a Beside,
    arrivals: &'a Arrivals,
    /// What the helper has said that somebody must still hear.
    pub heard: Vec<FromHelper>,
    /// Signals that came meanwhile and are the child's.
    pub early: Vec<i32>,
}

impl<'a> Asking<'a> {
    /// Nothing is asked yet.
    pub fn new(beside: &'a Beside, arrivals: &'a Arrivals) -> Self {
        Self {
            beside,
            arrivals,
            heard: Vec::new(),
            early: Vec::new(),
        }
    }

    /// The first answer, or why there is none.
    ///
    /// # Errors
    /// Somebody ended us meanwhile.
    pub fn first(&mut self) -> Result<Result<Answer, String>, Unplaced> {
        if let Err(error) = self.beside.become_helper() {
            return Ok(Err(error.to_string()));
        }
        self.beside.watch(Watched::All, ONCE);
        let until = Instant::now() + PATIENCE;
        loop {
            let Ok(said) = self.beside.receive() else {
                return Ok(Err("its helper has ended".to_owned()));
            };
            self.heard.extend(said);
            if let Some(answer) = self.understood() {
                return Ok(answer);
            }
            if Instant::now() >= until {
                return Ok(Err(format!(
                    "the NVIDIA driver has not answered for {} s",
                    PATIENCE.as_secs()
                )));
            }
            self.wait(until)?;
        }
    }

    /// From now on look again in this interval.
    pub fn keep_looking(&self, interval: Duration) {
        self.beside.watch(Watched::All, interval);
    }

    /// What is read next, by then. None: nothing was.
    ///
    /// # Errors
    /// Somebody ended us meanwhile.
    pub fn next(&mut self, until: Instant) -> Result<Option<Vec<GpuSample>>, Unplaced> {
        while Instant::now() < until {
            self.wait(until)?;
            let Ok(said) = self.beside.receive() else {
                // Nothing more will be read; whoever waits does so to its end.
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                return Ok(None);
            };
            self.heard.extend(said);
            if let Some(samples) = self.last_tick() {
                return Ok(Some(samples));
            }
        }
        Ok(None)
    }

    /// What was heard, if it is all that is needed.
    fn understood(&mut self) -> Option<Result<Answer, String>> {
        let failed = self.heard.iter().find_map(|m| match m {
            FromHelper::Failed { why } => Some(why.clone()),
            _ => None,
        });
        if let Some(why) = failed {
            return Some(Err(why));
        }
        let inventory = self.heard.iter().find_map(|m| match m {
            FromHelper::Inventory(inventory) => Some(inventory.clone()),
            _ => None,
        })?;
        // Without a single GPU there is nothing to tick for.
        let samples = if inventory.gpus.is_empty() {
            Vec::new()
        } else {
            self.last_tick()?
        };
        Some(Ok(Answer { inventory, samples }))
    }

    /// Taken out of what was heard: the look at all GPUs isn't one of the run's samples.
    fn last_tick(&mut self) -> Option<Vec<GpuSample>> {
        let mut last = None;
        self.heard.retain_mut(|message| match message {
            FromHelper::Tick { gpus, .. } => {
                last = Some(std::mem::take(gpus));
                false
            }
            _ => true,
        });
        last
    }

    /// For the helper, a signal, or until then.
    fn wait(&mut self, until: Instant) -> Result<(), Unplaced> {
        let mut fds = vec![PollFd::new(self.arrivals.as_fd(), PollFlags::POLLIN)];
        if let Some(fd) = self.beside.helper_fd() {
            fds.push(PollFd::new(borrowed(fd), PollFlags::POLLIN));
        }
        let left = until.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
        // Interrupted or not, everything is looked at again.
        let _ = poll(
            &mut fds,
            PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX),
        );
        self.take_signals()
    }

    /// Before there is a child, a signal acts on us as it would on the command.
    fn take_signals(&mut self) -> Result<(), Unplaced> {
        while let Some(arrived) = self.arrivals.next() {
            // The group's or not: what stayed there would be mistaken for the next one's copy.
            self.beside.consume(arrived.signal);
            if arrived.signal != libc::SIGCHLD && !self.arrivals.felt(arrived.signal) {
                self.early.push(arrived.signal);
                continue;
            }
            match name(arrived.signal).as_str() {
                "INT" | "TERM" | "HUP" | "QUIT" => return Err(Unplaced::Signal(arrived.signal)),
                "TSTP" | "TTIN" => suffer(arrived.signal),
                "CHLD" | "CONT" | "WINCH" | "URG" => {}
                _ => self.early.push(arrived.signal),
            }
        }
        Ok(())
    }
}

fn borrowed(fd: RawFd) -> BorrowedFd<'static> {
    crate::sys::streams::standard(fd)
}
