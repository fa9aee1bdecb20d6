//! From the driver's lists and samples to who is on a GPU.
//!
//! Pure: given what was read, says what may be believed of it.

use std::collections::{BTreeMap, BTreeSet};

use super::quirks::{Quirks, Told};
use crate::model::{GpuProcess, Reading, Why};
use crate::sys::nvml_raw::{RawProcess, RawUtilisation};

/// How far a sample's time may lie ahead of our clock, in microseconds.
const AHEAD_US: u64 = 5_000_000;
const MIB: f64 = 1024.0 * 1024.0;

/// What one poll read.
pub struct Read<'a> {
    /// Compute processes, MPS clients among them.
    pub compute: &'a [RawProcess],
    /// Graphics processes.
    pub graphics: &'a [RawProcess],
    /// Samples since the last poll.
    pub samples: Reading<&'a [RawUtilisation]>,
    /// The GPU's memory in bytes, if known.
    pub total: Option<u64>,
    /// Which of the processes are MPS servers.
    pub servers: &'a BTreeSet<u32>,
}

/// The processes on the GPU, each once, by PID.
pub fn processes(
    read: &Read<'_>,
    usage: &BTreeMap<u32, Reading<f64>>,
    quirks: Quirks,
) -> Vec<GpuProcess> {
    let mut found: BTreeMap<u32, (Vec<&RawProcess>, bool)> = BTreeMap::new();
    for (list, compute) in [(read.compute, true), (read.graphics, false)] {
        for entry in list.iter().filter(|p| p.pid != 0) {
            let (entries, is_compute) = found.entry(entry.pid).or_default();
            // A process in both lists is one, with the same memory in both.
            if compute || entries.is_empty() || !*is_compute {
                entries.push(entry);
            }
            *is_compute |= compute;
        }
    }
    found
        .into_iter()
        .map(|(pid, (entries, compute))| GpuProcess {
            pid,
            mem_mib: memory(&entries, read.total, quirks),
            sm_pct: match (&read.samples, usage.get(&pid)) {
                (Reading::Missing(why), _) => Reading::Missing(why.clone()),
                (Reading::Value(_), Some(used)) => used.clone(),
                // No sample says that it did nothing: a true zero.
                (Reading::Value(_), None) => Reading::Value(0.0),
            },
            compute,
            mps_server: read.servers.contains(&pid),
        })
        .collect()
}

/// Memory of one process, MiB: over MIG instances it adds up, the same entry twice doesn't.
fn memory(entries: &[&RawProcess], total: Option<u64>, quirks: Quirks) -> Reading<f64> {
    if quirks.told < Told::Memory {
        return Reading::Missing(Why::HostPids);
    }
    let mut by_instance: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for entry in entries {
        // What WSL2 and MIG without rights give: "not available".
        if entry.used == u64::MAX {
            return Reading::Missing(Why::NotSupported);
        }
        let most = by_instance.entry(entry.instance).or_default();
        *most = (*most).max(entry.used);
    }
    let bytes = by_instance
        .values()
        .fold(0_u64, |sum, n| sum.saturating_add(*n));
    if bytes > total.unwrap_or(1 << 50) {
        return Reading::Missing(Why::Garbage);
    }
    Reading::Value(bytes as f64 / MIB)
}

/// Per PID the mean of its believable samples newer than `since_us`; garbage where it has no
/// other ones. Also the newest time that was believed, to ask from the next time.
pub fn usage(
    samples: &[RawUtilisation],
    since_us: u64,
    now_us: u64,
) -> (BTreeMap<u32, Reading<f64>>, u64) {
    let mut sums: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
    let mut newest = since_us;
    for sample in samples {
        if sample.timestamp_us <= since_us || sample.timestamp_us > now_us + AHEAD_US {
            continue;
        }
        newest = newest.max(sample.timestamp_us);
        let (sum, n) = sums.entry(sample.pid).or_default();
        if sample.sm <= 100 {
            *sum += f64::from(sample.sm);
            *n += 1;
        }
    }
    let usage = sums
        .into_iter()
        .map(|(pid, (sum, n))| match n {
            0 => (pid, Reading::Missing(Why::Garbage)),
            n => (pid, Reading::Value(sum / f64::from(n))),
        })
        .collect();
    (usage, newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvml::quirks::quirks;

    const GIB: u64 = 1 << 30;
    const NONE: (u32, u32) = (u32::MAX, u32::MAX);

    fn entry(pid: u32, used: u64) -> RawProcess {
        RawProcess {
            pid,
            used,
            instance: NONE,
        }
    }

    fn sample(pid: u32, timestamp_us: u64, sm: u32) -> RawUtilisation {
        RawUtilisation {
            pid,
            timestamp_us,
            sm,
        }
    }

    fn good() -> Quirks {
        quirks(Some("580.95.05"), false)
    }

    fn listed(compute: &[RawProcess], graphics: &[RawProcess]) -> Vec<GpuProcess> {
        let read = Read {
            compute,
            graphics,
            samples: Reading::Value(&[]),
            total: Some(80 * GIB),
            servers: &BTreeSet::new(),
        };
        processes(&read, &BTreeMap::new(), good())
    }

    #[test]
    fn memory_is_a_value_or_a_reason_and_never_a_false_one() {
        let list = listed(
            &[
                entry(1, GIB),
                entry(2, u64::MAX),
                entry(3, 81 * GIB),
                entry(4, 0),
            ],
            &[],
        );
        let memory: Vec<_> = list.iter().map(|p| p.mem_mib.clone()).collect();
        assert_eq!(
            memory,
            [
                Reading::Value(1024.0),
                Reading::Missing(Why::NotSupported),
                Reading::Missing(Why::Garbage),
                Reading::Value(0.0),
            ]
        );
    }

    #[test]
    fn a_pid_is_listed_once() {
        let list = listed(
            &[entry(1, GIB), entry(1, GIB), entry(0, GIB)],
            &[entry(1, GIB), entry(9, GIB)],
        );
        let seen: Vec<_> = list
            .iter()
            .map(|p| (p.pid, p.mem_mib.get(), p.compute))
            .collect();
        assert_eq!(seen, [(1, Some(1024.0), true), (9, Some(1024.0), false)]);
        let on = |gi| RawProcess {
            instance: (gi, 0),
            ..entry(1, GIB)
        };
        assert_eq!(
            listed(&[on(1), on(2)], &[])[0].mem_mib,
            Reading::Value(2048.0)
        );
    }

    #[test]
    fn no_sample_is_a_true_zero_but_no_answer_is_none() {
        let with = |samples| {
            let read = Read {
                compute: &[entry(1, GIB)],
                graphics: &[],
                samples,
                total: None,
                servers: &BTreeSet::new(),
            };
            processes(&read, &BTreeMap::new(), good())[0].sm_pct.clone()
        };
        assert_eq!(with(Reading::Value(&[])), Reading::Value(0.0));
        assert_eq!(
            with(Reading::Missing(Why::NotSupported)),
            Reading::Missing(Why::NotSupported)
        );
    }

    #[test]
    fn only_believable_samples_count() {
        let now = 100_000_000;
        let (used, newest) = usage(
            &[
                sample(1, now - 10, 40),
                sample(1, now - 5, 60),
                sample(2, now - 5, 37_100),
                sample(3, now - 2_000_000, 90),
                sample(4, now + AHEAD_US + 1, 90),
                sample(5, now - 5, 101),
                sample(5, now - 4, 20),
            ],
            now - 1_000_000,
            now,
        );
        assert_eq!(newest, now - 4);
        assert_eq!(used.get(&1), Some(&Reading::Value(50.0)));
        assert_eq!(used.get(&2), Some(&Reading::Missing(Why::Garbage)));
        assert_eq!(used.get(&3), None);
        assert_eq!(used.get(&4), None);
        assert_eq!(used.get(&5), Some(&Reading::Value(20.0)));
    }
}
