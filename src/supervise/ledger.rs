//! What must be remembered of the GPUs from tick to tick. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Event, GpuChange, GpuInfo, GpuSample, Reading, Why};
use crate::nvml::attribute;

/// The counters of a GPU when they were first read: they don't start at zero.
#[derive(Clone, Copy, Default)]
struct Baseline {
    energy_j: Option<f64>,
    ecc: Option<u64>,
    /// Errors since then that were told of.
    told: u64,
}

/// The book.
#[derive(Default)]
pub struct Ledger {
    baselines: BTreeMap<u32, Baseline>,
    attribution: Option<String>,
    /// What the job's processes held at the last tick that told, MiB by PID.
    held: BTreeMap<u32, f64>,
}

impl Ledger {
    /// Energy in J and uncorrectable ECC errors since the run's first reading of them.
    pub fn since_start(&mut self, gpu: &GpuSample) -> (Reading<f64>, Reading<u64>) {
        let base = self.baselines.entry(gpu.index).or_default();
        base.energy_j = base.energy_j.or(gpu.energy_total_j.get());
        base.ecc = base.ecc.or(gpu.ecc_uncorrected_total.get());
        let (energy, ecc) = (
            base.energy_j.unwrap_or_default(),
            base.ecc.unwrap_or_default(),
        );
        // A counter that fell was reset with the driver: what it was is lost.
        (
            gpu.energy_total_j
                .clone()
                .map(|now| (now - energy).max(0.0)),
            gpu.ecc_uncorrected_total
                .clone()
                .map(|now| now.saturating_sub(ecc)),
        )
    }

    /// Memory errors since the last look, as an event: the driver doesn't report them everywhere.
    pub fn errors(&mut self, gpu: &GpuSample, since_start: &Reading<u64>) -> Option<Event> {
        let now = since_start.get()?;
        let base = self.baselines.get_mut(&gpu.index)?;
        (now > base.told).then(|| {
            base.told = now;
            Event::Gpu {
                gpu: gpu.label(),
                change: GpuChange::Ecc,
                code: Some(now),
            }
        })
    }

    /// Takes in who holds what. Returns how well the job can be told from others, where that
    /// has changed.
    pub fn attribute(&mut self, gpus: &[GpuSample], job: &BTreeSet<u32>) -> Option<String> {
        if !gpus.iter().all(|gpu| attribute::is_settled(&gpu.processes)) {
            return None;
        }
        self.held.clear();
        for process in gpus
            .iter()
            .filter_map(|gpu| gpu.processes.value())
            .flatten()
        {
            if let (true, Some(mib)) = (job.contains(&process.pid), process.mem_mib.get()) {
                *self.held.entry(process.pid).or_default() += mib;
            }
        }
        let now = attribute::attribution(gpus, job)?;
        // What was uncertain once stays so: the record is only as sure as its worst tick.
        let uncertain = self
            .attribution
            .as_deref()
            .is_some_and(|before| before != "exact");
        if uncertain || self.attribution.as_ref() == Some(&now) {
            return None;
        }
        self.attribution = Some(now.clone());
        Some(now)
    }

    /// What this process of the job held at last, MiB.
    pub fn held_by(&self, pid: u32) -> Option<f64> {
        self.held.get(&pid).copied()
    }
}

/// A watched GPU of which nothing was read.
pub fn unread(gpu: &GpuInfo) -> GpuSample {
    fn missing<T>() -> Reading<T> {
        Reading::Missing(Why::TimedOut)
    }
    GpuSample {
        index: gpu.index,
        mig: gpu.mig().map(str::to_owned),
        util_pct: missing(),
        mem_util_pct: missing(),
        mem_used_mib: missing(),
        mem_total_mib: missing(),
        temp_c: missing(),
        power_w: missing(),
        power_limit_w: missing(),
        energy_total_j: missing(),
        sm_clock_mhz: missing(),
        throttle: missing(),
        pcie_mb_s: missing(),
        ecc_uncorrected_total: missing(),
        sm_active_pct: missing(),
        tensor_active_pct: missing(),
        dram_active_pct: missing(),
        processes: missing(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GpuProcess;

    fn gpu(energy: Reading<f64>) -> GpuSample {
        GpuSample {
            index: 1,
            energy_total_j: energy,
            ..GpuSample::default()
        }
    }

    fn held(pid: u32, mem_mib: Reading<f64>) -> GpuSample {
        let process = GpuProcess {
            pid,
            mem_mib,
            sm_pct: Reading::Value(0.0),
            compute: true,
            mps_server: false,
        };
        GpuSample {
            processes: Reading::Value(vec![process]),
            ..GpuSample::default()
        }
    }

    #[test]
    fn energy_counts_from_the_first_reading_and_missing_stays_missing() {
        let mut ledger = Ledger::default();
        let missing = Reading::Missing(Why::NotSupported);
        assert_eq!(ledger.since_start(&gpu(missing.clone())).0, missing);
        assert_eq!(
            ledger.since_start(&gpu(Reading::Value(7015.0))).0,
            Reading::Value(0.0)
        );
        assert_eq!(
            ledger.since_start(&gpu(Reading::Value(7020.5))).0,
            Reading::Value(5.5)
        );
        assert_eq!(ledger.since_start(&gpu(missing.clone())).0, missing);
        assert_eq!(
            ledger.since_start(&gpu(Reading::Value(3.0))).0,
            Reading::Value(0.0)
        );
    }

    #[test]
    fn attribution_is_told_when_it_changes_and_never_gets_surer() {
        let mut ledger = Ledger::default();
        let job = BTreeSet::from([7]);
        let exact = held(7, Reading::Value(10.0));
        let vague = held(7, Reading::Missing(Why::NotSupported));
        assert_eq!(
            ledger
                .attribute(std::slice::from_ref(&exact), &job)
                .as_deref(),
            Some("exact")
        );
        assert_eq!(ledger.attribute(std::slice::from_ref(&exact), &job), None);
        assert_eq!(ledger.held_by(7), Some(10.0));
        let told = ledger.attribute(&[vague], &job).unwrap_or_default();
        assert!(told.starts_with("device-wide: "), "{told}");
        assert_eq!(ledger.attribute(&[exact], &job), None);
    }
}
