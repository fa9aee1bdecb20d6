//! When a helper that has died gets a successor.
//!
//! One that hangs gets none: it may yet answer, and a second would hang beside it.

use std::process::Child;
use std::time::{Duration, Instant};

/// How long each successor is waited with: a driver that kills its callers must not be called
/// again and again.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
];

/// The successors of a run's helper.
#[derive(Debug, Default)]
pub struct Revival {
    tries: usize,
    due: Option<Instant>,
    child: Option<Child>,
}

impl Revival {
    /// Whether no helper has died yet.
    pub fn is_unused(&self) -> bool {
        self.tries == 0 && self.due.is_none()
    }

    /// The helper is gone; false if it was the last.
    pub fn after_death(&mut self, now: Instant) -> bool {
        if let Some(child) = &mut self.child {
            // Its end of the socket is closed, so it has ended or is about to.
            let _ = child.try_wait();
        }
        self.due = PAUSES.get(self.tries).map(|pause| now + *pause);
        self.due.is_some()
    }

    /// Whether it is time for a successor; true once.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let due = self.due.is_some_and(|due| now >= due);
        if due {
            self.due = None;
            self.tries += 1;
        }
        due
    }

    /// The successor runs.
    pub fn born(&mut self, child: Child) {
        self.child = Some(child);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_come_to_an_end() {
        let mut revival = Revival::default();
        let mut now = Instant::now();
        assert!(revival.is_unused() && !revival.is_due(now));
        for pause in PAUSES {
            assert!(revival.after_death(now));
            assert!(!revival.is_due(now + pause / 2));
            now += pause;
            assert!(revival.is_due(now));
            assert!(!revival.is_due(now) && !revival.is_unused());
        }
        assert!(!revival.after_death(now));
        assert!(!revival.is_due(now + Duration::from_secs(3600)));
    }
}
