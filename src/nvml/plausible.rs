//! What may be believed of what NVML answers.
//!
//! Pure. Owns the limits of what can be true and the meaning of NVML's errors.

use std::time::Instant;

use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;

use crate::model::{Reading, Why};

const MIB: f64 = 1024.0 * 1024.0;
/// Limits of what can be true, far beyond any GPU there is: °C, W, MHz.
pub const HOTTEST: f64 = 200.0;
pub const MOST_W: f64 = 20_000.0;
pub const FASTEST: f64 = 20_000.0;

/// PCIe byte counters as last read.
#[derive(Clone, Copy, Debug)]
pub struct PcieCounters {
    /// From the GPU.
    pub sent: Count,
    /// To the GPU.
    pub received: Count,
    /// When.
    pub at: Instant,
}

/// A counter, and how wide the driver says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// 32 bits: wraps within seconds.
    Narrow(u32),
    /// 64 bits.
    Wide(u64),
}

/// The reason that a failure stands for.
pub fn why(error: &NvmlError) -> Why {
    match error {
        NvmlError::NotSupported
        | NvmlError::FunctionNotFound
        | NvmlError::FailedToLoadSymbol(_) => Why::NotSupported,
        NvmlError::NoPermission => Why::NoPermission,
        NvmlError::GpuLost => Why::Lost,
        NvmlError::Timeout => Why::TimedOut,
        other => Why::Failed(other.to_string()),
    }
}

/// A value that can't be true is none.
pub fn within(reading: Reading<f64>, most: f64) -> Reading<f64> {
    match reading {
        Reading::Value(v) if !(0.0..=most).contains(&v) => Reading::Missing(Why::Garbage),
        other => other,
    }
}

/// A percentage of GPM, which rounds and so may exceed 100 a little.
pub fn activity(value: Result<f64, NvmlError>) -> Reading<f64> {
    match value {
        Ok(v) if v > 100.0 && v <= 101.0 => Reading::Value(100.0),
        Ok(v) => within(Reading::Value(v), 100.0),
        Err(error) => Reading::Missing(why(&error)),
    }
}

/// NVML's own "not available" in a counter is no number.
pub fn believable(reading: Reading<u64>) -> Reading<u64> {
    match reading {
        Reading::Value(u64::MAX) => Reading::Missing(Why::Garbage),
        other => other,
    }
}

/// Total and used memory in MiB.
pub fn mib(memory: Reading<(u64, u64)>) -> (Reading<f64>, Reading<f64>) {
    match memory {
        Reading::Missing(why) => (Reading::Missing(why.clone()), Reading::Missing(why)),
        // A GPU without memory of its own (GB10) may answer with zeros instead of an error.
        Reading::Value((0, _)) => (
            Reading::Missing(Why::NotSupported),
            Reading::Missing(Why::NotSupported),
        ),
        Reading::Value((total, used)) => {
            let total = within(Reading::Value(total as f64 / MIB), 1e9);
            let most = total.get().unwrap_or(0.0);
            (total, within(Reading::Value(used as f64 / MIB), most))
        }
    }
}

/// The counter in a field's value; None if it isn't one.
pub fn count(value: &SampleValue) -> Option<Count> {
    match value {
        SampleValue::U32(n) => Some(Count::Narrow(*n)),
        SampleValue::U64(n) => Some(Count::Wide(*n)),
        SampleValue::I64(n) => u64::try_from(*n).ok().map(Count::Wide),
        SampleValue::F64(_) => None,
    }
}

/// How far a counter went; a narrow one wraps, a wide one that went back was reset.
fn step(old: Count, new: Count) -> Option<u64> {
    match (old, new) {
        (Count::Narrow(old), Count::Narrow(new)) => Some(new.wrapping_sub(old).into()),
        (Count::Wide(old), Count::Wide(new)) => new.checked_sub(old),
        _ => None,
    }
}

/// 10^6 bytes a second between two looks.
pub fn rate(old: &PcieCounters, new: &PcieCounters) -> Reading<f64> {
    let seconds = new.at.duration_since(old.at).as_secs_f64();
    match (step(old.sent, new.sent), step(old.received, new.received)) {
        (Some(sent), Some(received)) if seconds > 0.0 => {
            // No PCIe link moves 10 TB/s.
            within(
                Reading::Value((sent + received) as f64 / 1e6 / seconds),
                1e7,
            )
        }
        _ => Reading::Missing(Why::NotYet),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_numbers_are_garbage_and_zero_is_a_number() {
        assert_eq!(within(Reading::Value(0.0), 100.0), Reading::Value(0.0));
        let garbage = Reading::Missing(Why::Garbage);
        assert_eq!(within(Reading::Value(37_100.0), 100.0), garbage);
        assert_eq!(
            believable(Reading::Value(u64::MAX)),
            Reading::Missing(Why::Garbage)
        );
        let (total, used) = mib(Reading::Value((80 << 30, u64::MAX)));
        assert_eq!(total, Reading::Value(81_920.0));
        assert_eq!(used, garbage);
        let (total, used) = mib(Reading::Value((0, 0)));
        assert_eq!((total.get(), used.get()), (None, None));
    }

    #[test]
    fn counters_wrap_as_wide_as_they_are() {
        assert_eq!(
            step(Count::Narrow(u32::MAX - 9), Count::Narrow(10)),
            Some(20)
        );
        assert_eq!(step(Count::Wide(5), Count::Wide(25)), Some(20));
        assert_eq!(step(Count::Wide(25), Count::Wide(5)), None);
    }

    #[test]
    fn failures_have_names() {
        for (error, reason) in [
            (NvmlError::NotSupported, Why::NotSupported),
            (NvmlError::FailedToLoadSymbol("x".into()), Why::NotSupported),
            (NvmlError::GpuLost, Why::Lost),
            (NvmlError::NoPermission, Why::NoPermission),
            (
                NvmlError::UnexpectedVariant(27),
                Why::Failed("unexpected enum variant value: 27".into()),
            ),
        ] {
            assert_eq!(why(&error), reason);
        }
    }
}
