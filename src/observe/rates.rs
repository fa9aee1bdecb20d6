//! From two looks to a rate: (previous, current, elapsed) to a reading.
//!
//! Owns the arithmetic alone, so that whatever looks again at recorded counters computes the
//! same. Pure: must not know files or clocks. A counter that went back gives 0, never a
//! negative rate; two looks at the same instant give no rate at all.

use crate::model::{Reading, Why};

use super::parse::{CpuTimes, Quota};

/// A tick uses a core when it used this much of it: what a spinning thread reaches even where
/// clock ticks are counted in hundredths of a second and the sampler comes a little late.
pub const BUSY_CORES: f64 = 0.85;

/// Bytes of a MB as the record counts them.
const MB: f64 = 1e6;

/// What a counter gained.
pub fn gained(previous: u64, current: u64) -> u64 {
    current.saturating_sub(previous)
}

/// Hundredths of a second as clock ticks.
pub fn centis_to_ticks(centis: u64, ticks_per_s: u64) -> u64 {
    centis.saturating_mul(ticks_per_s) / 100
}

/// `amount` a second.
pub fn per_second(amount: f64, elapsed_s: f64) -> Reading<f64> {
    if elapsed_s > 0.0 {
        Reading::Value(amount / elapsed_s)
    } else {
        Reading::Missing(Why::NotYet)
    }
}

/// Cores: CPU seconds a second, of `ticks` at `ticks_per_s`.
pub fn cores(ticks: u64, ticks_per_s: u64, elapsed_s: f64) -> Reading<f64> {
    per_second(ticks as f64 / ticks_per_s.max(1) as f64, elapsed_s)
}

/// 10^6 bytes a second.
pub fn mb_per_second(bytes: u64, elapsed_s: f64) -> Reading<f64> {
    per_second(bytes as f64 / MB, elapsed_s)
}

/// The share of `elapsed_s` that passed in a state whose time is counted in microseconds, %.
pub fn time_share_pct(previous_us: u64, current_us: u64, elapsed_s: f64) -> Reading<f64> {
    // The counter is read a moment after the clock: a full second may count 1.001 s.
    per_second(gained(previous_us, current_us) as f64 / 1e6, elapsed_s)
        .map(|share| (share * 100.0).min(100.0))
}

/// Busy share of all cores, %.
pub fn busy_pct(previous: CpuTimes, current: CpuTimes) -> Reading<f64> {
    let busy = gained(previous.busy, current.busy) as f64;
    let idle = gained(previous.idle, current.idle) as f64;
    if busy + idle > 0.0 {
        Reading::Value(busy / (busy + idle) * 100.0)
    } else {
        Reading::Missing(Why::NotYet)
    }
}

/// The share of enforcement periods in which the quota ran out, %.
///
/// Periods, because the kernel's `throttled_usec` adds up over cores and may grow by many
/// seconds a second. No period passed means that nothing wanted to run: nothing was held back.
pub fn throttled_pct(previous: Quota, current: Quota) -> f64 {
    let periods = gained(previous.periods, current.periods);
    let throttled = gained(previous.throttled, current.throttled);
    if periods == 0 {
        0.0
    } else {
        (throttled as f64 / periods as f64 * 100.0).min(100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_cpu_seconds_a_second() {
        assert_eq!(cores(350, 100, 2.0), Reading::Value(1.75));
        assert_eq!(cores(350, 100, 0.0), Reading::Missing(Why::NotYet));
    }

    #[test]
    fn counters_that_went_back_gain_nothing() {
        assert_eq!(gained(10, 4), 0);
        let (before, after) = (
            CpuTimes { busy: 9, idle: 90 },
            CpuTimes { busy: 8, idle: 100 },
        );
        assert_eq!(busy_pct(before, after), Reading::Value(0.0));
        assert_eq!(busy_pct(after, after), Reading::Missing(Why::NotYet));
    }

    #[test]
    fn shares_stay_within_a_hundred() {
        assert_eq!(time_share_pct(0, 500_000, 1.0), Reading::Value(50.0));
        assert_eq!(time_share_pct(0, 1_001_000, 1.0), Reading::Value(100.0));
        let none = Quota::default();
        let some = Quota {
            periods: 10,
            throttled: 4,
        };
        assert!((throttled_pct(none, some) - 40.0).abs() < 1e-9);
        assert!(throttled_pct(some, some).abs() < 1e-9);
    }
}
