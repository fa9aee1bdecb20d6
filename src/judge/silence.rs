//! How long a silence may last before it is one too long: learnt from the gaps seen so far.
//!
//! Owns the limits of DETECTION section 2, the same for both point processes (advances of
//! progress, moments of activity). Must not know what the events are.

use std::collections::VecDeque;

/// Gaps that are remembered.
const RECENT: usize = 256;
/// Long gaps (evaluations, checkpoints) that are remembered.
const LONG: usize = 32;
/// A gap of so many medians is a long one.
const LONG_MEDIANS: f64 = 4.0;
/// How often the median is computed anew, in gaps.
const MEDIAN_EVERY: u64 = 16;
/// No limit is shorter, seconds.
pub const FLOOR_S: f64 = 60.0;
/// The limit while nothing is known of long gaps, for who speaks often, seconds.
const LEARNING_S: f64 = 600.0;

/// The gaps of one point process; times are the judge's own seconds.
#[derive(Clone, Debug, Default)]
pub struct Silence {
    recent: VecDeque<f64>,
    /// Long gaps, and after how many gaps each came.
    long: VecDeque<(f64, u64)>,
    gaps: u64,
    first: Option<f64>,
    median: f64,
    longest: f64,
}

/// The limits of a silence, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Without waiting for the first long gap.
    pub learnt: f64,
    /// With it: nothing is known yet of long gaps, and there may be one.
    pub careful: f64,
    /// The median gap, 0 before there is one.
    pub median: f64,
}

impl Silence {
    /// The first event came after so many seconds.
    pub fn begin(&mut self, after: f64) {
        self.first.get_or_insert(after);
    }

    /// An event came so many seconds after the last one.
    pub fn push(&mut self, gap: f64) {
        let gap = gap.max(1e-3);
        self.gaps += 1;
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(gap);
        self.longest = self.longest.max(gap);
        if self.gaps < MEDIAN_EVERY || self.gaps.is_multiple_of(MEDIAN_EVERY) {
            self.median = median(&mut self.recent.iter().copied().collect::<Vec<_>>());
        }
        if self.gaps >= 3 && gap > LONG_MEDIANS * self.median {
            if self.long.len() == LONG {
                self.long.pop_front();
            }
            self.long.push_back((gap, self.gaps));
        }
    }

    /// The longest gap so far.
    pub fn longest(&self) -> f64 {
        self.longest
    }

    /// The median gap, as it was a few gaps ago; 0 before there is one.
    pub fn median(&self) -> f64 {
        self.median
    }

    /// How many gaps were seen.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// How long a silence may last now. Computed when asked for: silences are rare.
    pub fn limit(&self) -> Limit {
        self.limit_where(self.may_be_long(period(&self.long)))
    }

    /// The same if a long gap may come at any time, however regularly it came so far.
    pub fn limit_anytime(&self) -> Limit {
        self.limit_where(true)
    }

    /// The same if none may come: what is seen now was in none of them.
    pub fn limit_between(&self) -> Limit {
        self.limit_where(false)
    }

    fn limit_where(&self, may_be_long: bool) -> Limit {
        let start = self.first.unwrap_or_default() * 2.0;
        if self.gaps < 3 {
            let learnt = FLOOR_S.max(5.0 * self.longest).max(start);
            let median = self.longest.max(self.first.unwrap_or_default());
            return Limit {
                learnt,
                careful: learnt,
                median,
            };
        }
        let median = median(&mut self.recent.iter().copied().collect::<Vec<_>>());
        let tail = if may_be_long { tail(&self.long) } else { 0.0 };
        let learnt = FLOOR_S.max(body(&self.recent, self.gaps)).max(tail);
        let learning = self.long.is_empty() && median < 60.0;
        let careful = if learning {
            learnt.max(LEARNING_S)
        } else {
            learnt
        };
        Limit {
            learnt,
            careful,
            median,
        }
    }

    /// Where long gaps recur every so many events, whether one is due.
    fn may_be_long(&self, every: Option<u64>) -> bool {
        let (Some(every), Some((_, last))) = (every, self.long.back()) else {
            return true;
        };
        let since = self.gaps - last;
        let off = since % every;
        off.min(every - off) <= slack(every) || since < slack(every)
    }
}

/// `max(3*md, min(md*e^(6*sigma), c*max d))`, sigma from the median absolute deviation of the
/// gaps' logarithms.
fn body(recent: &VecDeque<f64>, gaps: u64) -> f64 {
    let n = gaps as f64;
    let mut logs: Vec<f64> = recent.iter().map(|d| d.ln()).collect();
    let middle = median(&mut logs);
    let mut off: Vec<f64> = logs.iter().map(|l| (l - middle).abs()).collect();
    let sigma = (1.4826 * median(&mut off)).max(0.10) * (1.0 + 4.0 / n);
    let c = match gaps {
        ..8 => 5.0,
        8..32 => 3.0,
        _ if sigma > 0.5 => 3.0,
        _ => 2.5,
    };
    let longest = recent.iter().copied().fold(0.0, f64::max);
    let md = middle.exp();
    (3.0 * md).max((md * (6.0 * sigma).exp()).min(c * longest))
}

/// `max L * {5, 4 | 3 (k 3-5) | 2.5 (6-15) | 2 (>= 16)}`.
fn tail(long: &VecDeque<(f64, u64)>) -> f64 {
    let factor = match long.len() {
        0 | 1 => 5.0,
        2 => 4.0,
        3..=5 => 3.0,
        6..=15 => 2.5,
        _ => 2.0,
    };
    factor * long.iter().map(|(gap, _)| *gap).fold(0.0, f64::max)
}

/// After how many events a long gap comes, if it comes regularly: the start counts as one, as
/// long as it is remembered.
fn period(long: &VecDeque<(f64, u64)>) -> Option<u64> {
    let start = (long.len() < LONG).then_some(0);
    let ends = start.into_iter().chain(long.iter().map(|(_, at)| *at));
    let mut steps: Vec<u64> = ends.clone().zip(ends.skip(1)).map(|(a, b)| b - a).collect();
    if steps.len() < 2 {
        return None;
    }
    steps.sort_unstable();
    let every = steps[steps.len() / 2];
    let regular = steps.iter().all(|s| s.abs_diff(every) <= slack(every));
    (every >= 8 && regular).then_some(every)
}

/// How far off a multiple a long gap may come.
fn slack(every: u64) -> u64 {
    (every / 10).max(2)
}

/// The middle one (the lower of two), 0 of none.
fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = (values.len() - 1) / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "numbers that are exact")]
mod tests {
    use super::*;

    fn of(gaps: &[f64]) -> Silence {
        let mut silence = Silence::default();
        silence.begin(gaps[0]);
        for gap in gaps {
            silence.push(*gap);
        }
        silence
    }

    #[test]
    fn few_gaps_are_given_time() {
        assert_eq!(of(&[40.0]).limit().learnt, 200.0);
        assert_eq!(of(&[1.0]).limit().learnt, 60.0);
        let mut first = Silence::default();
        first.begin(3600.0);
        assert_eq!(first.limit().learnt, 7200.0);
    }

    #[test]
    fn steady_steps_have_the_floor_and_careful_learning() {
        let limit = of(&[2.0; 100]).limit();
        assert_eq!(
            (limit.learnt, limit.careful, limit.median),
            (60.0, 600.0, 2.0)
        );
        let slow = of(&[190.0; 40]).limit();
        // min(190 * e^(6 * .1 * 1.1), 2.5 * 190) is below three medians.
        assert_eq!(slow.learnt, 570.0);
        assert_eq!(slow.careful, slow.learnt);
    }

    #[test]
    fn an_evaluation_stretches_the_limit() {
        let mut silence = of(&[2.0; 100]);
        silence.push(60.0);
        assert_eq!(silence.limit().careful, 300.0);
        silence.push(2.0);
        silence.push(50.0);
        // Two of them, at no regular distance.
        assert_eq!(silence.limit().careful, 240.0);
    }

    #[test]
    fn regular_evaluations_stretch_it_only_where_one_is_due() {
        let push = |silence: &mut Silence, n| {
            for _ in 0..n {
                silence.push(2.0);
            }
        };
        let mut silence = Silence::default();
        silence.begin(2.0);
        for _ in 0..4 {
            push(&mut silence, 300);
            silence.push(60.0);
        }
        push(&mut silence, 100);
        assert_eq!(silence.limit().careful, 60.0);
        push(&mut silence, 200);
        assert_eq!(silence.limit().careful, 180.0);
    }
}
