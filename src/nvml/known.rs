//! What `/proc` says of the processes that the driver lists: whether they are there at all, and
//! which of them work for others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The MPS server as the kernel shortens its name.
const MPS_SERVER: &str = "nvidia-cuda-mps";

/// Whether the listed PIDs are of this namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// One isn't there; it may just have ended.
    Once,
    /// One still isn't there: they are another namespace's.
    Settled,
}

/// Remembers from list to list.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// MPS servers among the listed.
    pub servers: BTreeSet<u32>,
    seen: BTreeSet<u32>,
    absent: BTreeSet<u32>,
}

impl Known {
    /// In a container, whether these PIDs can be believed to be the container's. A driver that
    /// translates them leaves out what can't be seen from here, so none may be absent.
    pub fn doubt(&mut self, pids: &BTreeSet<u32>) -> Option<Doubt> {
        let there = |pid: &u32| Path::new("/proc").join(pid.to_string()).exists();
        let absent: BTreeSet<u32> = pids.iter().copied().filter(|pid| !there(pid)).collect();
        let before = std::mem::replace(&mut self.absent, absent);
        match self.absent.is_empty() {
            true => None,
            false if self.absent.is_disjoint(&before) => Some(Doubt::Once),
            false => Some(Doubt::Settled),
        }
    }

    /// Looks at those that are new.
    pub fn look(&mut self, pids: &BTreeSet<u32>) {
        for pid in pids.difference(&self.seen) {
            let name = fs::read_to_string(format!("/proc/{pid}/comm"));
            if name.is_ok_and(|name| name.trim_end() == MPS_SERVER) {
                self.servers.insert(*pid);
            }
        }
        self.servers.retain(|pid| pids.contains(pid));
        self.seen.clone_from(pids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_ended_is_no_other_namespace_and_one_that_stays_away_is() {
        // Larger than any PID.
        let (gone, other) = (u32::MAX, u32::MAX - 1);
        let me = std::process::id();
        let mut known = Known::default();
        let mut doubt = |pids: &[u32]| known.doubt(&pids.iter().copied().collect());
        assert_eq!(doubt(&[me]), None);
        assert_eq!(doubt(&[me, gone]), Some(Doubt::Once));
        assert_eq!(doubt(&[me]), None);
        assert_eq!(doubt(&[me, gone]), Some(Doubt::Once));
        assert_eq!(doubt(&[me, other]), Some(Doubt::Once));
        assert_eq!(doubt(&[other]), Some(Doubt::Settled));
    }
}
