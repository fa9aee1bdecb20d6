//! A run in numbers. Pure, and a function of what is in `samples.csv` alone.
//!
//! Owns how means and percentiles are taken. Must not know clocks or files.

use std::collections::BTreeMap;

use super::samples::finite;
use crate::model::{ProgressState, Reading, Sample, Summary};

/// Utilisation is counted in steps of 0.1 %.
const BINS: usize = 1001;

/// Folds samples into a [`Summary`] in bounded memory.
///
/// A sum over GPUs counts only at ticks where every watched GPU gave a value: what is
/// missing isn't zero.
#[derive(Clone, Debug)]
pub struct SummaryBuilder {
    util_bins: Vec<u64>,
    util: Mean,
    power: Mean,
    job_mem_max: Option<f64>,
    /// Per GPU the last energy known; `None` until there is one.
    energy: BTreeMap<u32, Option<f64>>,
}

/// A running mean.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    n: u64,
}

impl Mean {
    fn add(&mut self, x: f64) {
        self.sum += x;
        self.n += 1;
    }

    fn value(self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }
}

impl Default for SummaryBuilder {
    fn default() -> Self {
        Self {
            util_bins: vec![0; BINS],
            util: Mean::default(),
            power: Mean::default(),
            job_mem_max: None,
            energy: BTreeMap::new(),
        }
    }
}

impl SummaryBuilder {
    /// Takes in one tick, as read back from `samples.csv` (see [`super::rounded`]).
    pub fn absorb(&mut self, sample: &Sample) {
        for (position, gpu) in sample.gpus.iter().enumerate() {
            if let Some(util) = gpu.util_pct.get() {
                self.util.add(util);
                let bin = (util * 10.0).round().clamp(0.0, (BINS - 1) as f64);
                self.util_bins[bin as usize] += 1;
            }
            let energy = sample.energy_j.get(position).and_then(Reading::get);
            let known = self.energy.entry(gpu.index).or_default();
            *known = energy.or(*known);
        }
        let n = sample.gpus.len();
        if let Some(watts) = together(sample.gpus.iter().map(|g| &g.power_w), n) {
            self.power.add(watts);
        }
        if let Some(mib) = together(sample.job_mem_mib.iter(), n) {
            self.job_mem_max = Some(self.job_mem_max.map_or(mib, |max| max.max(mib)));
        }
    }

    /// The summary: `duration_s` from start to end, and progress as it stood at the end.
    pub fn finish(&self, duration_s: Option<f64>, progress: &ProgressState) -> Summary {
        let energy: Option<Vec<f64>> = self.energy.values().copied().collect();
        let energy = energy.filter(|list| !list.is_empty());
        let round = |x: Option<f64>, decimals| x.and_then(|x| finite(x, decimals));
        Summary {
            duration_s: round(duration_s, 3),
            gpu_util_pct_mean: round(self.util.value(), 2),
            gpu_util_pct_p95: self.p95(),
            job_mem_mib_max: round(self.job_mem_max, 1),
            power_w_mean: round(self.power.value(), 2),
            energy_j: round(energy.map(|list| list.iter().sum()), 1),
            epoch: progress.epoch,
            epochs: progress.epochs,
            step: progress.step,
            steps: progress.steps,
            overall_pct: round(progress.overall_pct, 1),
            time: None,
        }
    }

    /// The smallest value that at least 95 % of the readings don't exceed.
    fn p95(&self) -> Option<f64> {
        let rank = (self.util.n * 95).div_ceil(100);
        let mut seen = 0;
        let bin = self.util_bins.iter().position(|n| {
            seen += n;
            seen >= rank
        })?;
        (rank > 0).then_some(bin as f64 / 10.0)
    }
}

/// The sum of the readings of all `n` GPUs.
fn together<'a>(readings: impl Iterator<Item = &'a Reading<f64>>, n: usize) -> Option<f64> {
    let values: Option<Vec<f64>> = readings.map(Reading::get).collect();
    values
        .filter(|list| n > 0 && list.len() == n)
        .map(|list| list.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GpuSample, Why};

    fn tick(gpus: &[(Option<f64>, Option<f64>, Option<f64>)]) -> Sample {
        Sample {
            gpus: gpus
                .iter()
                .zip(0..)
                .map(|((util, power, _), index)| GpuSample {
                    index,
                    util_pct: (*util).into(),
                    power_w: (*power).into(),
                    ..GpuSample::default()
                })
                .collect(),
            job_mem_mib: gpus.iter().map(|(_, _, mem)| (*mem).into()).collect(),
            energy_j: gpus.iter().map(|(_, power, _)| (*power).into()).collect(),
            ..Sample::default()
        }
    }

    #[test]
    fn nothing_read_is_nothing_known() {
        let mut builder = SummaryBuilder::default();
        let none = builder.finish(Some(31.4), &ProgressState::default());
        assert_eq!(
            none,
            Summary {
                duration_s: Some(31.4),
                ..Summary::default()
            }
        );
        builder.absorb(&Sample::default());
        builder.absorb(&tick(&[(None, None, None)]));
        assert_eq!(builder.finish(Some(31.4), &ProgressState::default()), none);
    }

    #[test]
    fn p95_is_by_nearest_rank() {
        let mut builder = SummaryBuilder::default();
        for i in 1..=100 {
            builder.absorb(&tick(&[(Some(f64::from(i) / 2.0), None, None)]));
        }
        let s = builder.finish(None, &ProgressState::default());
        assert_eq!(s.gpu_util_pct_p95, Some(47.5));
        assert_eq!(s.gpu_util_pct_mean, Some(25.25));
    }

    #[test]
    fn sums_need_every_gpu() {
        let mut builder = SummaryBuilder::default();
        builder.absorb(&tick(&[
            (Some(10.0), Some(100.0), Some(1000.0)),
            (Some(30.0), Some(200.0), Some(500.0)),
        ]));
        let mut lost = tick(&[(Some(10.0), Some(110.0), Some(9000.0)), (None, None, None)]);
        lost.gpus[1].power_w = Reading::Missing(Why::Lost);
        builder.absorb(&lost);
        let s = builder.finish(None, &ProgressState::default());
        assert_eq!(s.power_w_mean, Some(300.0));
        assert_eq!(s.job_mem_mib_max, Some(1500.0));
        assert_eq!(s.energy_j, Some(310.0));
        assert_eq!(s.gpu_util_pct_mean, Some(16.67));
    }
}
