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
/// The pace of now is that of the last half of the time, told from so many points.
const RECENT: f64 = 0.5;
const PARTS: usize = 256;
/// So many epochs tell how long one lasts, with all that is between them.
const EPOCHS: usize = 5;
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
    /// Instants and the parts that were reached, thinned out as they grow many.
    parts: Vec<(f64, f64)>,
    /// When the last epochs began.
    epochs: VecDeque<f64>,
    now: Option<f64>,
}

impl Pace {
    /// Progress was shown at `t`.
    pub fn notice(&mut self, t: Option<f64>, step: Option<u64>, fraction: Option<f64>) {
        if let Some(part) = fraction {
            let reached = self.reached.map_or(part, |r| r.max(part));
            self.reached = Some(reached);
            if let Some(t) = t {
                self.part(t, reached);
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

    fn part(&mut self, t: f64, reached: f64) {
        // The last one moves until it is as far on as the others are apart.
        let apart = match self.parts[..] {
            [first, .., _] => (t - first.0) / PARTS as f64,
            _ => 0.0,
        };
        let n = self.parts.len();
        if n >= 2 && t - self.parts[n - 2].0 < apart {
            self.parts[n - 1] = (t, reached);
        } else {
            self.parts.push((t, reached));
        }
        if self.parts.len() > 2 * PARTS {
            let kept = self.parts.iter().step_by(2).copied().collect();
            let last = self.parts.last().copied();
            self.parts = kept;
            self.parts.extend(last);
        }
    }

    /// Another epoch began at `t`.
    pub fn epoch_began(&mut self, t: Option<f64>) {
        let Some(t) = t else { return };
        if self.epochs.len() > EPOCHS {
            self.epochs.pop_front();
        }
        self.epochs.push_back(t);
    }

    /// How long an epoch lasts, with all that is between two of them.
    fn epoch_s(&self) -> Option<f64> {
        let begun = self.epochs.iter();
        let mut lasted: Vec<f64> = begun
            .clone()
            .zip(begun.skip(1))
            .map(|(a, b)| b - a)
            .collect();
        lasted.sort_by(f64::total_cmp);
        lasted.get(lasted.len() / 2).copied().filter(|s| *s > 0.0)
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
    ///
    /// `epochs_left`: the present one included. Where whole epochs were seen they tell best,
    /// since what comes at an epoch's end (an evaluation, a checkpoint) is in them.
    pub fn remaining(
        &self,
        rate: Option<f64>,
        run_steps: Option<f64>,
        epochs_left: Option<f64>,
    ) -> Option<f64> {
        let part = self.reached?;
        if part >= 1.0 {
            return Some(0.0);
        }
        let by_pace = self.by_pace(part);
        if let (Some(lasts), Some(left), Some(now), Some(began)) =
            (self.epoch_s(), epochs_left, self.now, self.epochs.back())
        {
            let by_epochs = lasts * left - (now - began);
            // One that takes longer than the others says nothing of when it ends.
            if now - began <= lasts {
                return Some(by_epochs);
            }
            return by_pace.map(|s| s.max(lasts * (left - 1.0)));
        }
        if by_pace.is_some() {
            return by_pace;
        }
        let steps = run_steps?;
        rate.filter(|r| *r > 0.0).map(|r| steps * (1.0 - part) / r)
    }
}

impl Pace {
    /// By the pace of the last half of the time.
    fn by_pace(&self, part: f64) -> Option<f64> {
        let ((t0, part0), now) = (self.parts.first().copied()?, self.now?);
        if now - t0 < TRUSTED_S || part - part0 < TRUSTED_FRACTION {
            return None;
        }
        let from = now - (now - t0) * RECENT;
        let at = self.parts.partition_point(|(t, _)| *t < from);
        let (t, then) = self.parts.get(at.saturating_sub(1)).copied()?;
        let (span, came) = if part > then {
            (now - t, part - then)
        } else {
            (now - t0, part - part0)
        };
        Some(span / came * (1.0 - part))
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
        assert_eq!(pace.remaining(Some(10.0), Some(100.0), None), Some(9.0));
        pace.notice(Some(5.0), Some(30), Some(0.3));
        pace.notice(Some(10.0), Some(50), Some(0.5));
        assert_eq!(pace.remaining(Some(10.0), Some(100.0), None), Some(11.25));
    }

    #[test]
    fn a_slow_beginning_is_forgotten() {
        let mut pace = Pace::default();
        for i in 0..=10_u32 {
            pace.notice(Some(f64::from(i) * 5.0), None, Some(f64::from(i) / 100.0));
        }
        for i in 11..=50_u32 {
            let t = 50.0 + f64::from(i - 10);
            pace.notice(Some(t), None, Some(f64::from(i) / 100.0));
        }
        // Forty seconds of the last forty-five were fast.
        let left = pace.remaining(None, None, None).unwrap();
        assert!((50.0..60.0).contains(&left), "{left}");
    }

    #[test]
    fn whole_epochs_hold_what_is_between_them() {
        let mut pace = Pace::default();
        // Six seconds of steps and four of evaluation, five epochs.
        for epoch in 0..3_u32 {
            let t = f64::from(epoch) * 10.0;
            pace.epoch_began(Some(t));
            for step in 0..=6_u32 {
                let part = (f64::from(epoch) + f64::from(step) / 6.0) / 5.0;
                pace.notice(Some(t + f64::from(step)), None, Some(part));
            }
        }
        assert_eq!(pace.remaining(None, None, Some(3.0)), Some(24.0));
    }
}
