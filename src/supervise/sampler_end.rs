//! The sampler's last look, and what it sees left of the job.

use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::nvml::protocol::Watched;
use crate::report::{Fate, Leftover};
use crate::supervise::job_process::command_of;
use crate::sys::streams::standard;

use super::{LAST_LOOK, Sampler};

impl Sampler {
    /// The last sample, with what the GPUs do now.
    pub(super) fn last_look(&mut self) {
        let before = self.last;
        if let (true, Some(beside)) = (self.ticking, self.setup.beside.clone()) {
            beside.watch(Watched::of(&self.watched), self.setup.interval);
            let until = Instant::now() + LAST_LOOK;
            while self.last == before && Instant::now() < until {
                self.wait_for_helper(until);
                self.receive();
            }
        }
        if self.last == before {
            self.sample(None);
        }
    }

    fn wait_for_helper(&self, until: Instant) {
        let Some(fd) = self.setup.beside.as_ref().and_then(|b| b.helper_fd()) else {
            return;
        };
        let left = until.saturating_duration_since(Instant::now());
        let limit = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        // As in `wait`.
        let _ = poll(&mut [PollFd::new(standard(fd), PollFlags::POLLIN)], limit);
    }

    pub(super) fn leftovers(mut self) -> Vec<Leftover> {
        let found = self.tree.leftovers();
        found
            .into_iter()
            .map(|left| Leftover {
                pid: left.id.pid,
                gpu_mem_mib: self.ledger.held_by(left.id.pid),
                command: Some(command_of(&left)),
                fate: Fate::Lives,
            })
            .collect()
    }
}
