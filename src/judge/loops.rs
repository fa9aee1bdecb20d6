//! Whether more happens than that each rank keeps one core busy.
//!
//! Owns since when it doesn't, and how long that took so far: a loop that waits for a lock looks
//! like an evaluation on one core, and only lasts longer. Judges nothing.

use super::gauge::follow;
use super::signals::{Moment, Steady};

/// What one loop takes at the least and at the most, cores.
pub const LEAST_CORES: f64 = 0.7;
/// As above.
pub const MOST_CORES: f64 = 1.25;

/// The busy cores of the job beside everything else it does.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    /// Whether more than they is active now.
    pub more: bool,
    /// When more last was, or progress; the start, before there was any.
    pub since: Moment,
    longest_s: f64,
    cores: Option<f64>,
    weak: Steady,
}

impl Loops {
    /// Takes in one sample: the cores in use, the ranks, whether anything but cores is active,
    /// and how strongly the job is active with them.
    pub fn look(
        &mut self,
        now: Moment,
        cores: Option<f64>,
        ranks: usize,
        other: bool,
        strength: u8,
    ) {
        follow(&mut self.cores, cores);
        let ranks = ranks as f64;
        let one_each = LEAST_CORES * ranks..=MOST_CORES * ranks;
        // The mean tells it from noise; the reading, since when.
        let in_range = |c: Option<f64>| c.is_some_and(|c| one_each.contains(&c));
        let only_loops = !other && ranks > 0.0 && (in_range(cores) || in_range(self.cores));
        self.more = self.weak.is_active(if only_loops { 0 } else { strength });
        if self.more {
            self.end(now);
        }
    }

    /// It ended, or the job made progress: then a core a rank is all that it takes.
    pub fn end(&mut self, now: Moment) {
        self.longest_s = self.longest_s.max(self.lasted(now));
        self.since = now;
    }

    /// Seconds without more and without progress.
    pub fn lasted(&self, now: Moment) -> f64 {
        now.own_s - self.since.own_s
    }

    /// The longest of such times that ended, seconds.
    pub fn longest_s(&self) -> f64 {
        self.longest_s
    }
}
