//! How often a service takes a message.
//!
//! Owns the budget of one channel. What a service takes is its own word (or what its clients have
//! found out); whoever sends more is refused, and by some for ten minutes.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// So many messages within so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Messages.
    pub messages: usize,
    /// Within this time.
    pub within: Duration,
}

impl Rate {
    /// So many within so many milliseconds.
    pub const fn of(messages: usize, within_ms: u64) -> Self {
        Self {
            messages,
            within: Duration::from_millis(within_ms),
        }
    }
}

/// When the next message may go.
#[derive(Debug)]
pub struct Turns {
    rate: Option<Rate>,
    /// When the last ones went, the oldest first.
    went: VecDeque<Instant>,
}

impl Turns {
    /// With this budget; none is no limit.
    pub fn at(rate: Option<Rate>) -> Self {
        Self {
            rate: rate.filter(|rate| rate.messages > 0),
            went: VecDeque::new(),
        }
    }

    /// When the next one may go, if not at once.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        let rate = self.rate?;
        let at = self.went.len().checked_sub(rate.messages)?;
        let free = *self.went.get(at)? + rate.within;
        (free > now).then_some(free)
    }

    /// One goes.
    pub fn take(&mut self, now: Instant) {
        let Some(rate) = self.rate else { return };
        self.went.push_back(now);
        while self.went.len() > rate.messages {
            self.went.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_no_more_than_its_budget() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut turns = Turns::at(Some(Rate::of(3, 60_000)));
        for s in [0, 10, 20] {
            assert_eq!(turns.next(at(s)), None);
            turns.take(at(s));
        }
        assert_eq!(turns.next(at(21)), Some(at(60)));
        turns.take(at(60));
        assert_eq!(turns.next(at(61)), Some(at(70)));
        assert_eq!(turns.next(at(70)), None);
    }

    #[test]
    fn without_a_budget_nothing_waits() {
        let now = Instant::now();
        for rate in [None, Some(Rate::of(0, 1000))] {
            let mut turns = Turns::at(rate);
            (0..100).for_each(|_| turns.take(now));
            assert_eq!(turns.next(now), None);
        }
    }
}
