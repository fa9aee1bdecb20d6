//! Asking the helper process for GPUs and their readings, and not for ever.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::model::{GpuSample, Inventory};
use crate::nvml::client::{self, HelperLink};
use crate::nvml::protocol::{FromHelper, ToHelper, Watched};

/// How long the driver may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// How it begins to be said that it didn't.
pub const SILENT: &str = "the NVIDIA driver doesn't answer";

/// A helper that ticks; it ends when this is dropped.
pub struct Session {
    link: HelperLink,
    waiting: Vec<FromHelper>,
    deadline: Instant,
    interval: Duration,
}

/// What came of waiting for a tick.
pub enum Heard {
    /// The readings.
    Tick(Vec<GpuSample>),
    /// None in time; in words.
    Nothing(String),
}

impl Session {
    /// Starts a helper and waits for the inventory. The error is in words.
    pub fn start(interval: Duration) -> Result<(Self, Inventory), String> {
        let (link, _child) = client::spawn()
            .map_err(|e| format!("can't start the process that reads the GPUs: {e}"))?;
        let mut session = Self {
            link,
            waiting: Vec::new(),
            deadline: Instant::now() + PATIENCE,
            interval,
        };
        // Said first: whoever asks wakes a GPU that sleeps.
        let _ = session.link.send(&ToHelper::Watch {
            gpus: Watched::All,
            interval_ms: interval.as_millis() as u64,
        });
        let inventory = loop {
            match session.next()? {
                Some(FromHelper::Inventory(inventory)) => break inventory,
                Some(_) => {}
                None => return Err(nothing("GPUs")),
            }
        };
        Ok((session, inventory))
    }

    /// Waits for the next tick: three seconds from the start for the first, and three
    /// seconds more than the interval for others. An error if there will be none.
    pub fn tick(&mut self) -> Result<Heard, String> {
        let heard = loop {
            match self.next()? {
                Some(FromHelper::Tick { gpus, .. }) => break Heard::Tick(gpus),
                Some(_) => {}
                None => break Heard::Nothing(nothing("readings")),
            }
        };
        self.deadline = Instant::now() + self.interval + PATIENCE;
        Ok(heard)
    }

    /// The next message; None if none came until the deadline.
    fn next(&mut self) -> Result<Option<FromHelper>, String> {
        while self.waiting.is_empty() {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let _ = poll(
                &mut [PollFd::new(self.link.as_fd(), PollFlags::POLLIN)],
                timeout,
            );
            self.waiting = self
                .link
                .receive()
                .map_err(|_| "the process that reads the GPUs ended early".to_owned())?;
        }
        match self.waiting.remove(0) {
            FromHelper::Failed { why } => Err(why),
            message => Ok(Some(message)),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.link.send(&ToHelper::Bye);
    }
}

fn nothing(what: &str) -> String {
    let s = PATIENCE.as_secs();
    format!("{SILENT}: no {what} after {s} s")
}
