//! The process beside us: first the sentinel, then (where GPUs are watched) the NVML helper.
//! It may be spoken to from every thread; nothing here waits.

use std::os::fd::{AsRawFd, RawFd};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::launch::sentinel::Sentinel;
use crate::nvml::client::{self, Closed, HelperLink};
use crate::nvml::protocol::{FromHelper, ToHelper, Watched};

/// The process beside us.
pub struct Beside {
    sentinel: Sentinel,
    helper: Mutex<Option<HelperLink>>,
}

impl Beside {
    /// A sentinel that isn't the helper yet.
    pub fn new(sentinel: Sentinel) -> Self {
        Self {
            sentinel,
            helper: Mutex::new(None),
        }
    }

    /// The sentinel.
    pub fn sentinel(&self) -> &Sentinel {
        &self.sentinel
    }

    /// Makes it the NVML helper, once.
    pub fn become_helper(&self) -> std::io::Result<()> {
        let mut helper = self.helper();
        if helper.is_none() {
            let socket = self.sentinel.become_helper()?;
            *helper = Some(HelperLink::shared(socket));
        }
        Ok(())
    }

    /// The helper is gone.
    pub fn forget_helper(&self) {
        *self.helper() = None;
    }

    /// Starts another helper in place of one that is gone. It only reads GPUs: who is sent
    /// which signal is no longer seen.
    pub fn new_helper(&self) -> std::io::Result<Child> {
        let (link, child) = client::spawn()?;
        *self.helper() = Some(link);
        Ok(child)
    }

    /// We go on alone: so must it, and the signal that did it isn't one of the group's.
    pub fn go_on(&self) {
        if self.sentinel.go_on() {
            self.consume(libc::SIGCONT);
        }
    }

    /// To poll for what it says.
    pub fn helper_fd(&self) -> Option<RawFd> {
        use std::os::fd::AsFd;
        self.helper().as_ref().map(|link| link.as_fd().as_raw_fd())
    }

    /// What the helper said since the last call.
    pub fn receive(&self) -> Result<Vec<FromHelper>, Closed> {
        self.helper()
            .as_mut()
            .map_or(Ok(Vec::new()), HelperLink::receive)
    }

    /// From now on look at these GPUs, at once and then in this interval.
    pub fn watch(&self, gpus: Watched, interval: Duration) {
        let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        self.tell(&ToHelper::Watch { gpus, interval_ms });
    }

    /// Takes out a signal that was seen, so that the next one of its kind shows; there by the
    /// time that this returns, or the machine is very busy.
    pub fn consume(&self, signal: i32) {
        if !self.tell(&ToHelper::Consume { signal }) {
            // Gone: then it is seen nowhere any more.
            let _ = self.sentinel.consume(signal);
        }
        self.sentinel.wait_without(signal);
    }

    /// We are about to be stopped as this child was: whoever continues it alone must find us
    /// continued as well, or its output would wait for us for ever.
    pub fn stopping(&self, child: u32) {
        if !self.tell(&ToHelper::Follow { child: Some(child) }) {
            // Gone: then only our shell continues us.
            let _ = self.sentinel.follow(Some(child));
        }
    }

    /// We were continued.
    pub fn going_on(&self) {
        if !self.tell(&ToHelper::Follow { child: None }) {
            // As above.
            let _ = self.sentinel.follow(None);
        }
    }

    /// Close this read end: its relay has ended.
    pub fn release(&self, read_end: RawFd) {
        if !self.tell(&ToHelper::Release { fd: read_end }) {
            // Gone: then it holds nothing.
            let _ = self.sentinel.release(read_end);
        }
    }

    /// End now: the run is over.
    pub fn dismiss(&self) {
        if !self.tell(&ToHelper::Bye) {
            // Gone already.
            let _ = self.sentinel.quit();
        }
    }

    /// False where there is no helper to tell.
    fn tell(&self, message: &ToHelper) -> bool {
        // A helper that is gone needs no orders; whoever receives will notice.
        self.helper()
            .as_mut()
            .map(|link| link.send(message))
            .is_some()
    }

    fn helper(&self) -> MutexGuard<'_, Option<HelperLink>> {
        self.helper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
