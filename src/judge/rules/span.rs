//! A value over the last so much time, in bounded memory.
//!
//! Owns how a window forgets: it is kept as at most a thousand stretches, of which each knows its
//! mean, its least and its most; a stretch is forgotten when all of it is older than the window.
//! Time is the judge's own, so a suspended job's window waits. Where there are fewer samples than
//! stretches nothing is lost. Must not know what the value means.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::Aggregate;

/// A window has at most so many stretches, and one that is just being forgotten.
const STRETCHES: f64 = 1000.0;
/// Sums of fractions of a second are off by less, seconds.
const NOTHING_S: f64 = 1e-6;
/// Of so much of a window the value must be known.
const KNOWN: f64 = 0.5;
/// A sum so many times another one has no digits left for it.
const DROWNS: f64 = 1e6;
/// In so much of the time the 95th percentile is exceeded.
const EXCEEDED: f64 = 0.05;

/// What is known of one value over one window.
#[derive(Clone, Debug)]
pub struct Span {
    how: Aggregate,
    window_s: f64,
    /// The oldest first; the last one may still grow.
    stretches: VecDeque<Stretch>,
    /// Of min, max and p95: what counts of each stretch and for how many seconds, ascending.
    ranked: Vec<(f64, f64)>,
    total: Total,
    /// Stretches that were begun since the sums were last added up from scratch.
    begun: usize,
}

/// Sums over stretches.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    /// Seconds for which the value is known.
    known_s: f64,
    /// Values times their seconds.
    sum: f64,
}

impl Total {
    fn and(self, more: Self) -> Self {
        Self {
            known_s: self.known_s + more.known_s,
            sum: self.sum + more.sum,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The times of its first and last sample.
    from_s: f64,
    to_s: f64,
    total: Total,
    least: f64,
    most: f64,
    first: f64,
    last: f64,
}

impl Span {
    /// A window that has seen nothing yet.
    pub fn new(how: Aggregate, window: Duration) -> Self {
        Self {
            how,
            window_s: window.as_secs_f64(),
            stretches: VecDeque::new(),
            ranked: Vec::new(),
            total: Total::default(),
            begun: 0,
        }
    }

    /// Takes in what one sample says at `own_s` of the `dt` own seconds before it.
    pub fn push(&mut self, own_s: f64, dt: f64, value: Option<f64>) {
        let mut anew = self.forget(own_s);
        if let Some(value) = value.filter(|v| v.is_finite() && dt > 0.0) {
            let now = Stretch::of(own_s, dt.min(self.window_s), value);
            self.total = self.total.and(now.total);
            let width_s = self.window_s / STRETCHES;
            match self.stretches.back().copied() {
                Some(last) if own_s - last.from_s < width_s => {
                    self.unrank(&last);
                    self.stretches.pop_back();
                    self.keep(last.with(&now));
                }
                _ => {
                    self.keep(now);
                    self.begun += 1;
                    anew |= self.begun > self.stretches.len();
                }
            }
        }
        if anew {
            self.begun = 0;
            let totals = self.stretches.iter().map(|s| s.total);
            self.total = totals.fold(Total::default(), Total::and);
        }
    }

    /// Takes away what is too old. Whether the sums must be added up anew: what was taken away was
    /// so much that what is left may have drowned in it.
    fn forget(&mut self, own_s: f64) -> bool {
        let begin_s = own_s - self.window_s + NOTHING_S;
        let old = |s: &Stretch| s.to_s <= begin_s;
        let mut drowned = false;
        while let Some(stretch) = self.stretches.front().copied().filter(old) {
            self.stretches.pop_front();
            self.unrank(&stretch);
            self.total.known_s -= stretch.total.known_s;
            self.total.sum -= stretch.total.sum;
            let (gone, left) = (stretch.total.sum.abs(), self.total.sum.abs());
            drowned |= !left.is_finite() || gone > DROWNS * left;
        }
        drowned
    }

    /// The aggregate `own_s` into the run. None before the run is as long as the window, and where
    /// the value is known for less than half of it.
    pub fn value(&self, own_s: f64) -> Option<f64> {
        let known_s = self.total.known_s;
        if own_s < self.window_s - NOTHING_S || known_s < KNOWN * self.window_s - NOTHING_S {
            return None;
        }
        let value = match self.how {
            Aggregate::Mean => self.total.sum / known_s,
            Aggregate::Min => self.ranked.first()?.0,
            Aggregate::Max => self.ranked.last()?.0,
            Aggregate::P95 => self.exceeded_by(EXCEEDED * known_s)?,
            Aggregate::Rise => self.stretches.back()?.last - self.stretches.front()?.first,
        };
        Some(value).filter(|v| v.is_finite())
    }

    /// How many stretches are kept.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.stretches.len().max(self.ranked.len())
    }

    /// The greatest value that is reached for more than so many seconds.
    fn exceeded_by(&self, seconds: f64) -> Option<f64> {
        let mut left = seconds + NOTHING_S;
        let reached = |(_, s): &&(f64, f64)| {
            left -= s;
            left < 0.0
        };
        let found = self.ranked.iter().rev().find(reached);
        found.or(self.ranked.first()).map(|(value, _)| *value)
    }

    fn keep(&mut self, stretch: Stretch) {
        self.stretches.push_back(stretch);
        if let Some(entry) = self.entry(&stretch) {
            let (Ok(at) | Err(at)) = self.rank(entry);
            self.ranked.insert(at, entry);
        }
    }

    fn unrank(&mut self, stretch: &Stretch) {
        if let Some(Ok(at)) = self.entry(stretch).map(|entry| self.rank(entry)) {
            self.ranked.remove(at);
        }
    }

    /// What of a stretch is ranked.
    fn entry(&self, stretch: &Stretch) -> Option<(f64, f64)> {
        let value = match self.how {
            Aggregate::Min => stretch.least,
            Aggregate::Max => stretch.most,
            Aggregate::P95 => stretch.total.sum / stretch.total.known_s,
            Aggregate::Mean | Aggregate::Rise => return None,
        };
        Some((value, stretch.total.known_s))
    }

    fn rank(&self, (value, seconds): (f64, f64)) -> Result<usize, usize> {
        let order = |(v, s): &(f64, f64)| v.total_cmp(&value).then(s.total_cmp(&seconds));
        self.ranked.binary_search_by(order)
    }
}

impl Stretch {
    fn of(own_s: f64, seconds: f64, value: f64) -> Self {
        Self {
            from_s: own_s,
            to_s: own_s,
            total: Total {
                known_s: seconds,
                sum: value * seconds,
            },
            least: value,
            most: value,
            first: value,
            last: value,
        }
    }

    fn with(self, later: &Self) -> Self {
        Self {
            from_s: self.from_s,
            to_s: later.to_s,
            total: self.total.and(later.total),
            least: self.least.min(later.least),
            most: self.most.max(later.most),
            first: self.first,
            last: later.last,
        }
    }
}
