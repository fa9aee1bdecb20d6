//! How fast it goes, and how far it has come.
//!
//! Owns rates and remaining time where the display shows none. Must not know clocks: every
//! instant is given.

use std::collections::VecDeque;

/// Points kept for the rate.
const POINTS: usize = 32;
/// Points nearer than this count as one: bars are drawn in bursts.
const APART_S: f64 = 0.05;
/// The rate is given once the points span this long.
const SPAN_S: f64 = 0.5;
/// The run's own pace is trusted from here on.
const TRUSTED_FRACTION: f64 = 0.02;
const TRUSTED_S: f64 = 5.0;

/// The pace of one loop.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    points: VecDeque<(f64, u64)>,
    last_rate: Option<f64>,
    /// The largest part of the run that was reached.
    reached: Option<f64>,
    /// The first instant with a known part, and the last.
    began: Option<(f64, f64)>,
    now: Option<f64>,
}

impl Pace {
    /// Progress was shown at `t`.
    pub fn notice(&mut self, t: Option<f64>, step: Option<u64>, fraction: Option<f64>) {
        if let Some(part) = fraction {
            let reached = self.reached.map_or(part, |r| r.max(part));
            self.reached = Some(reached);
            if let Some(t) = t {
                self.began.get_or_insert((t, reached));
            }
        }
        let Some(t) = t else { return };
        self.now = Some(t);
        let Some(step) = step else { return };
        match self.points.back_mut() {
            Some(last) if t - last.0 < APART_S => last.1 = last.1.max(step),
            Some(last) if step == last.1 => {}
            _ => {
                if self.points.len() == POINTS {
                    self.points.pop_front();
                }
                self.points.push_back((t, step));
            }
        }
        self.last_rate = self.measured().or(self.last_rate);
    }

    /// The counter starts again; the rate known so far is kept.
    pub fn turn(&mut self) {
        self.points.clear();
    }

    fn measured(&self) -> Option<f64> {
        let (first, last) = (self.points.front()?, self.points.back()?);
        let (span, steps) = (last.0 - first.0, last.1.checked_sub(first.1)?);
        (span >= SPAN_S && steps > 0).then(|| steps as f64 / span)
    }

    /// Steps a second.
    pub fn rate(&self) -> Option<f64> {
        self.last_rate
    }

    /// The part of the run that is done; never falls.
    pub fn reached(&self) -> Option<f64> {
        self.reached
    }

    /// Remaining seconds: by the run's own pace once it can be trusted, since that holds the
    /// time between epochs too; else by the rate and the steps of the whole run.
    pub fn remaining(&self, rate: Option<f64>, run_steps: Option<f64>) -> Option<f64> {
        let part = self.reached?;
        if part >= 1.0 {
            return Some(0.0);
        }
        if let (Some((t0, part0)), Some(now)) = (self.began, self.now) {
            let (span, came) = (now - t0, part - part0);
            if span >= TRUSTED_S && came >= TRUSTED_FRACTION {
                return Some(span / came * (1.0 - part));
            }
        }
        let steps = run_steps?;
        rate.filter(|r| *r > 0.0).map(|r| steps * (1.0 - part) / r)
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn a_rate_needs_time_and_steps() {
        let mut pace = Pace::default();
        pace.notice(Some(0.0), Some(0), None);
        pace.notice(Some(0.1), Some(1), None);
        assert_eq!(pace.rate(), None);
        pace.notice(Some(2.0), Some(20), None);
        assert_eq!(pace.rate(), Some(10.0));
        pace.turn();
        pace.notice(Some(3.0), Some(0), None);
        assert_eq!(pace.rate(), Some(10.0), "kept into the next epoch");
    }

    #[test]
    fn what_is_reached_never_falls() {
        let mut pace = Pace::default();
        pace.notice(None, None, Some(0.4));
        pace.notice(None, None, Some(0.2));
        assert_eq!(pace.reached(), Some(0.4));
    }

    #[test]
    fn remaining_by_rate_then_by_pace() {
        let mut pace = Pace::default();
        pace.notice(Some(0.0), Some(0), Some(0.0));
        pace.notice(Some(1.0), Some(10), Some(0.1));
        assert_eq!(pace.remaining(Some(10.0), Some(100.0)), Some(9.0));
        pace.notice(Some(10.0), Some(50), Some(0.5));
        assert_eq!(pace.remaining(Some(10.0), Some(100.0)), Some(10.0));
    }
}
