//! Whether the low points of a memory rise from block to block: the statistics of a leak.
//!
//! Owns the blocks, at three lengths (1, 4 and 16 of them together), and the tests of DETECTION
//! section 4. What grew in a few steps and stayed, or grows ever more slowly, is no trend. Must
//! not know what a block is (an epoch, ten minutes) or whose memory it is.

use std::collections::VecDeque;

/// So many blocks are remembered at each length.
const REMEMBERED: usize = 16;
/// So many blocks of one length make one of the next.
const MERGED: u32 = 4;
/// Lengths.
const LENGTHS: usize = 3;
/// With fewer blocks nothing is certain.
const LEAST: usize = 8;
/// Of the last six steps so many must rise.
const RISING: (usize, usize) = (4, 6);
/// The normal deviate of Mann-Kendall's test: p < .01 on both sides.
const SIGNIFICANT: f64 = 2.576;
/// A trend is worth a word from so much a block: this share of the memory, and MiB.
const WORTH: (f64, f64) = (0.002, 32.0);
/// What slows down to less than this share of its own mean pace is filling, not leaking.
const STEADY: f64 = 0.7;
/// How far points may lie off the line, as a share of its whole rise: with few blocks, with all
/// that are remembered, and with the last eight of more. DETECTION's tests alone take the ups
/// and downs of an ordinary heap for a leak in four of five runs of 300 epochs (a first-order
/// process with a memory of five epochs), with this it is one in a hundred.
const CLEAR: (f64, f64, f64) = (0.06, 0.05, 0.015);
/// A trend is over when less than this share of it is left.
const OVER: f64 = 0.25;

/// A piece of time.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Its end, in units since the series began.
    at: f64,
    units: f64,
    seconds: f64,
    low: f64,
    high: f64,
    /// When it began, in seconds of the run.
    since_s: f64,
}

impl Block {
    fn with(self, next: Self) -> Self {
        Self {
            at: next.at,
            units: self.units + next.units,
            seconds: self.seconds + next.seconds,
            low: self.low.min(next.low),
            high: self.high.max(next.high),
            since_s: self.since_s,
        }
    }
}

/// Blocks of one length.
#[derive(Clone, Debug, Default)]
struct Length {
    blocks: VecDeque<Block>,
    /// The highest low point of those that are no longer remembered.
    before: f64,
    /// What becomes a block of the next length, and of how many it is made.
    next: Option<(Block, u32)>,
}

/// A memory that grows steadily.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// MiB a unit.
    pub per_unit: f64,
    /// Seconds that a unit takes.
    pub unit_s: f64,
    /// The low point from which it grew, MiB.
    pub from: f64,
    /// The highest point lately, MiB.
    pub high: f64,
    /// Since when, in seconds of the run.
    pub since_s: f64,
    length: usize,
}

/// The blocks so far.
#[derive(Clone, Debug)]
pub struct Series {
    /// What begins before so many units have passed is the start, and left out.
    skipped: f64,
    at: f64,
    lengths: [Length; LENGTHS],
}

impl Series {
    /// Nothing yet; what begins in the first `skipped` units is left out.
    pub fn new(skipped: f64) -> Self {
        Self {
            skipped,
            at: 0.0,
            lengths: std::array::from_fn(|_| Length::default()),
        }
    }

    /// Begins anew.
    pub fn reset(&mut self) {
        *self = Self::new(self.skipped);
    }

    /// The low point of the last block.
    pub fn last_low(&self) -> Option<f64> {
        self.lengths[0].blocks.back().map(|b| b.low)
    }

    /// A block is over that took so many units and seconds and began at `since_s`; `range` is
    /// the lowest and highest reading in it, if there was any.
    pub fn push(&mut self, range: Option<(f64, f64)>, units: f64, seconds: f64, since_s: f64) {
        let began = self.at;
        self.at += units;
        let Some((low, high)) = range.filter(|_| began >= self.skipped && units > 0.0) else {
            return;
        };
        let mut block = Block {
            at: self.at,
            units,
            seconds,
            low,
            high,
            since_s,
        };
        for length in &mut self.lengths {
            if length.blocks.len() == REMEMBERED
                && let Some(old) = length.blocks.pop_front()
            {
                length.before = length.before.max(old.low);
            }
            length.blocks.push_back(block);
            let (merged, n) = match length.next.take() {
                Some((before, n)) => (before.with(block), n + 1),
                None => (block, 1),
            };
            if n < MERGED {
                length.next = Some((merged, n));
                return;
            }
            block = merged;
        }
    }

    /// The trend, if there is one: that of the shortest blocks which show it.
    pub fn trend(&self) -> Option<Trend> {
        let mut lengths = self.lengths.iter().enumerate();
        lengths.find_map(|(i, length)| length.trend(i))
    }

    /// Whether a trend that was found goes on.
    pub fn goes_on(&self, trend: &Trend) -> bool {
        let blocks = &self.lengths[trend.length].blocks;
        let n = blocks.len();
        if n < LEAST {
            return false;
        }
        let half = LEAST / 2;
        let level = |from: usize| {
            let mut lows: Vec<f64> = blocks.range(from..from + half).map(|b| b.low).collect();
            median(&mut lows)
        };
        let (before, now) = (level(n - LEAST), level(n - half));
        let passed = blocks[n - half].at - blocks[n - LEAST].at;
        now - before >= OVER * trend.per_unit * passed
    }
}

impl Length {
    fn trend(&self, length: usize) -> Option<Trend> {
        let last = self.blocks.back()?;
        // What costs least first: most memories are flat.
        let steps = self.blocks.len().checked_sub(1 + RISING.1)?;
        let mut before = self.blocks[steps].low;
        let mut rising = 0;
        for block in self.blocks.range(steps + 1..) {
            rising += usize::from(block.low > before);
            before = block.low;
        }
        if rising < RISING.0 || last.low <= self.before {
            return None;
        }
        let blocks: Vec<Block> = self.blocks.iter().copied().collect();
        let clear = if blocks.len() < REMEMBERED {
            CLEAR.0
        } else {
            CLEAR.1
        };
        // What begins late is a trend of the last blocks alone.
        let late = blocks.len().saturating_sub(LEAST);
        let found = trend(&blocks, clear).or_else(|| trend(&blocks[late..], CLEAR.2))?;
        Some(Trend { length, ..found })
    }
}

/// The trend of these blocks, if they are this clear about it.
fn trend(blocks: &[Block], clear: f64) -> Option<Trend> {
    let n = blocks.len();
    let points: Vec<(f64, f64)> = blocks.iter().map(|b| (b.at, b.low)).collect();
    if n < LEAST || !rises_to_its_end(&points) {
        return None;
    }
    let units: f64 = blocks.iter().map(|b| b.units).sum();
    let seconds: f64 = blocks.iter().map(|b| b.seconds).sum();
    let slope = theil_sen(&points);
    let usual = median(&mut points.iter().map(|p| p.1).collect::<Vec<_>>());
    let worth = WORTH.1.max(WORTH.0 * usual);
    if slope * units / n as f64 <= worth
        || mann_kendall(&points) <= SIGNIFICANT
        || theil_sen(&points[n / 2..]) < STEADY * slope
        || scatter(&points, slope) > clear
    {
        return None;
    }
    let began = blocks
        .iter()
        .rposition(|b| b.low <= points[0].1 + slope * b.units);
    let began = &blocks[began.unwrap_or_default()];
    Some(Trend {
        per_unit: slope,
        unit_s: seconds / units,
        from: began.low,
        high: blocks[n - 2].high.max(blocks[n - 1].high),
        since_s: began.since_s,
        length: 0,
    })
}

/// Whether a new maximum was reached in the last third.
fn rises_to_its_end(points: &[(f64, f64)]) -> bool {
    let (early, late) = points.split_at(points.len() - points.len() / 3);
    let most = |part: &[(f64, f64)]| part.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    most(late) > most(early)
}

/// The median of the slopes of all pairs.
fn theil_sen(points: &[(f64, f64)]) -> f64 {
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (i, a) in points.iter().enumerate() {
        slopes.extend(points[i + 1..].iter().map(|b| (b.1 - a.1) / (b.0 - a.0)));
    }
    median(&mut slopes)
}

/// How far the points lie off their line, as a share of its whole rise: the root of the mean
/// square without the worst one, which may be a moment's.
fn scatter(points: &[(f64, f64)], slope: f64) -> f64 {
    let mut offsets: Vec<f64> = points.iter().map(|p| p.1 - slope * p.0).collect();
    let middle = median(&mut offsets);
    let mut squares: Vec<f64> = offsets.iter().map(|o| (o - middle).powi(2)).collect();
    squares.sort_unstable_by(f64::total_cmp);
    squares.pop();
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    mean.sqrt() / (slope * (points[points.len() - 1].0 - points[0].0))
}

/// Mann and Kendall's test for a rise, as a normal deviate, corrected for ties.
fn mann_kendall(points: &[(f64, f64)]) -> f64 {
    let n = points.len();
    let mut sum = 0_i32;
    for (i, a) in points.iter().enumerate() {
        for b in &points[i + 1..] {
            sum += i32::from(b.1 > a.1) - i32::from(b.1 < a.1);
        }
    }
    let term = |n: usize| (n * (n - 1) * (2 * n + 5)) as f64;
    let mut values: Vec<f64> = points.iter().map(|p| p.1).collect();
    values.sort_by(f64::total_cmp);
    let ties: f64 = values
        .chunk_by(|a, b| a.total_cmp(b).is_eq())
        .map(|g| term(g.len()))
        .sum();
    let variance = (term(n) - ties) / 18.0;
    if variance <= 0.0 {
        return 0.0;
    }
    f64::from(sum - sum.signum()) / variance.sqrt()
}

/// The middle one, 0 of none; of an even number the mean of the two.
fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    f64::midpoint(values[(n - 1) / 2], values[n / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of one unit and 100 s with these low points.
    fn of(lows: &[f64]) -> Series {
        let mut series = Series::new(2.0);
        for (i, low) in lows.iter().enumerate() {
            series.push(Some((*low, low + 50.0)), 1.0, 100.0, 100.0 * i as f64);
        }
        series
    }

    fn rising(lows: &[f64]) -> Option<f64> {
        of(lows).trend().map(|t| t.per_unit.round())
    }

    /// Two blocks of the start, and these.
    fn after(lows: impl IntoIterator<Item = f64>) -> Vec<f64> {
        [0.0, 0.0].into_iter().chain(lows).collect()
    }

    fn noise(i: u32) -> f64 {
        f64::from((i * 7919) % 101) / 101.0 - 0.5
    }

    #[test]
    fn eight_rising_blocks_after_the_start_are_a_trend() {
        let lows = after((0..8).map(|i| 20_000.0 + 256.0 * f64::from(i)));
        assert_eq!(rising(&lows), Some(256.0));
        assert_eq!(rising(&lows[..9]), None);
        let trend = of(&lows).trend().unwrap();
        assert!((trend.unit_s - 100.0).abs() < 1e-9);
        assert!((trend.high - 21_842.0).abs() < 1e-9);
        assert!((trend.since_s - 300.0).abs() < 1e-9);
    }

    #[test]
    fn too_little_is_no_trend() {
        let by = |mib: f64, base: f64| after((0..30).map(move |i| base + mib * f64::from(i)));
        assert_eq!(rising(&by(40.0, 3000.0)[..10]), Some(40.0));
        assert_eq!(rising(&by(30.0, 3000.0)[..10]), None);
        // 0.2 % of 60 GiB are 123 MiB.
        assert_eq!(rising(&by(100.0, 61_440.0)[..10]), None);
        // What is small a block shows in blocks of four.
        assert!(rising(&by(10.0, 3000.0)).is_none());
        let long = after((0..60).map(|i| 3000.0 + 10.0 * f64::from(i)));
        assert_eq!(rising(&long), Some(10.0));
    }

    #[test]
    fn steps_that_stay_and_what_slows_down_are_no_trend() {
        for steps in [
            [0.0, 900.0, 900.0, 900.0, 1500.0, 1500.0, 1500.0, 1500.0],
            [0.0, 500.0, 900.0, 1200.0, 1400.0, 1500.0, 1550.0, 1560.0],
            [0.0, 300.0, 0.0, 310.0, 5.0, 305.0, 0.0, 312.0],
            [0.0, 400.0, 800.0, 1200.0, 1600.0, 1600.0, 1600.0, 1600.0],
        ] {
            assert_eq!(
                rising(&after(steps.map(|s| 20_000.0 + s))),
                None,
                "{steps:?}"
            );
        }
        // Filled like a cache that is read at random.
        let full = |i: u32| 20_000.0 * (1.0 - (-f64::from(i) / 3.0).exp());
        for n in 8..40 {
            assert_eq!(rising(&after((0..n).map(full))), None, "{n}");
        }
    }

    #[test]
    fn noise_hides_neither_a_trend_nor_makes_one() {
        let leak = |i| 20_000.0 + 256.0 * f64::from(i) + 400.0 * noise(i);
        let found = rising(&after((0..16).map(leak))).unwrap();
        assert!((220.0..290.0).contains(&found), "{found}");
        for n in 8..200 {
            let flat = after((0..n).map(|i| 20_000.0 + 2000.0 * noise(i)));
            assert_eq!(rising(&flat), None, "{n}");
        }
    }

    #[test]
    fn a_late_trend_has_its_own_pace() {
        let late = |i: u32| 20_000.0 + 300.0 * f64::from(i.saturating_sub(40));
        let found = (0..60).find(|n| rising(&after((0..*n).map(late))).is_some());
        assert!(found.is_some_and(|n| n <= 50), "{found:?}");
        let pace = rising(&after((0..50).map(late)));
        assert_eq!(pace, Some(300.0));
    }

    #[test]
    fn a_trend_is_over_when_it_stays_or_falls() {
        let leak: Vec<f64> = after((0..12).map(|i| 20_000.0 + 256.0 * f64::from(i)));
        let mut series = of(&leak);
        let trend = series.trend().unwrap();
        assert!(series.goes_on(&trend));
        let mut blocks = 0;
        while series.goes_on(&trend) {
            series.push(Some((22_816.0, 23_000.0)), 1.0, 100.0, 0.0);
            blocks += 1;
        }
        assert!((4..8).contains(&blocks), "{blocks}");
        let mut series = of(&leak);
        for _ in 0..4 {
            series.push(Some((15_000.0, 23_000.0)), 1.0, 100.0, 0.0);
        }
        assert!(!series.goes_on(&trend));
        series.reset();
        assert!(!series.goes_on(&trend));
    }

    #[test]
    fn blocks_without_readings_leave_a_gap() {
        let mut series = Series::new(0.0);
        for i in 0..12 {
            let low = 20_000.0 + 200.0 * f64::from(i);
            let range = (i % 4 != 3).then_some((low, low));
            series.push(range, 1.0, 100.0, 0.0);
        }
        let found = series.trend().map(|t| t.per_unit);
        assert_eq!(found, Some(200.0));
    }
}
