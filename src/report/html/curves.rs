//! A run's samples as curves of bounded size: the least and the most of each pixel column.
//!
//! Owns downsampling and what is a gap. A missing reading leaves a gap, never a zero. Pure.

use crate::model::{GpuInfo, GpuSample, Reading, Sample};

/// Pixel columns of a plot, for at most eight GPUs; fewer where there are more.
const COLUMNS: usize = 640;

/// A pause between samples this much longer than usual is a gap.
const PAUSE: f64 = 5.0;

/// One pixel column of a curve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// The least and the most; nothing where there is no reading.
    pub range: Option<(f64, f64)>,
    /// A reading is missing here.
    pub has_hole: bool,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Per pixel column.
    pub cells: Vec<Cell>,
    /// Sum of the readings.
    sum: f64,
    /// How many readings there are.
    pub n: u64,
    /// How many are missing.
    pub missing: u64,
}

impl Curve {
    fn new(columns: usize) -> Self {
        Self {
            cells: vec![Cell::default(); columns],
            sum: 0.0,
            n: 0,
            missing: 0,
        }
    }

    fn add(&mut self, column: usize, value: Option<f64>) {
        let cell = &mut self.cells[column];
        let Some(x) = value.filter(|x| x.is_finite()) else {
            cell.has_hole = true;
            self.missing += 1;
            return;
        };
        let (low, high) = cell.range.unwrap_or((x, x));
        cell.range = Some((low.min(x), high.max(x)));
        self.sum += x;
        self.n += 1;
    }

    /// Mean of the readings.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }

    /// The least and the most of all.
    pub fn range(&self) -> Option<(f64, f64)> {
        let ranges = self.cells.iter().filter_map(|cell| cell.range);
        ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}

/// What is plotted of a GPU, in this order.
pub const OF_GPU: usize = 6;
/// What is plotted of the job, in this order.
pub const OF_JOB: usize = 6;

/// All curves of a run.
#[derive(Clone, Debug)]
pub struct Curves {
    /// Seconds from the plot's left edge to its right one.
    pub span_s: f64,
    columns: usize,
    /// Per GPU its label and: use, use by the job, memory used, memory of the job (GiB),
    /// power, temperature.
    pub gpus: Vec<(String, [Curve; OF_GPU])>,
    /// Processor cores, main memory (GiB), bytes read, bytes written, steps a second, loss.
    pub job: [Curve; OF_JOB],
    /// Whether no sample stands between this column and the one before it although there should.
    pub pauses: Vec<bool>,
    /// When an epoch's number rose, and to what.
    pub epochs: Vec<(f64, f64)>,
    /// How many ticks there were.
    pub ticks: u64,
    last_s: Option<f64>,
    usual_s: Option<f64>,
    epoch: Option<f64>,
}

fn gib(mib: f64) -> f64 {
    mib / 1024.0
}

/// So many epochs are marked at most; then only every second one stays, and so on.
const MARKS: usize = 400;

impl Curves {
    /// Nothing yet of a run of these GPUs that lasted so long.
    pub fn new(gpus: &[GpuInfo], duration_s: Option<f64>) -> Self {
        let columns = (COLUMNS * 8 / gpus.len().max(8)).max(64);
        let gpu = |info: &GpuInfo| (info.label(), [(); OF_GPU].map(|()| Curve::new(columns)));
        Self {
            span_s: duration_s.filter(|s| *s > 0.0).unwrap_or(1.0),
            columns,
            gpus: gpus.iter().map(gpu).collect(),
            job: [(); OF_JOB].map(|()| Curve::new(columns)),
            pauses: vec![false; columns],
            epochs: Vec::new(),
            ticks: 0,
            last_s: None,
            usual_s: None,
            epoch: None,
        }
    }

    /// Takes in one tick.
    pub fn absorb(&mut self, sample: &Sample) {
        let now = sample.stamp.elapsed_s.clamp(0.0, self.span_s);
        let column = ((now / self.span_s * self.columns as f64) as usize).min(self.columns - 1);
        self.ticks += 1;
        self.pause(now, column);
        for (position, gpu) in sample.gpus.iter().enumerate() {
            self.gpu(sample, position, gpu, column);
        }
        let (job, progress) = (&sample.job, &sample.progress);
        let values = [
            job.cpu_cores.get(),
            job.rss_mib.get().map(gib),
            job.read_mb_s.get(),
            job.write_mb_s.get(),
            progress.rate,
            progress.loss.map(|loss| loss.0),
        ];
        for (curve, value) in self.job.iter_mut().zip(values) {
            curve.add(column, value);
        }
        if let Some(epoch) = progress.epoch.map(f64::floor) {
            if self.epoch.is_some_and(|before| epoch > before) {
                self.mark(now, epoch);
            }
            self.epoch = Some(epoch);
        }
    }

    fn gpu(&mut self, sample: &Sample, position: usize, gpu: &GpuSample, column: usize) {
        let label = |known: &&mut (String, _)| match &gpu.mig {
            Some(mig) => known.0 == *mig,
            None => known.0.parse() == Ok(gpu.index),
        };
        let Some((_, curves)) = self.gpus.iter_mut().find(label) else {
            return;
        };
        let at = |list: &[Reading<f64>]| list.get(position).and_then(Reading::get);
        let values = [
            gpu.util_pct.get(),
            at(&sample.job_sm_pct),
            gpu.mem_used_mib.get().map(gib),
            at(&sample.job_mem_mib).map(gib),
            gpu.power_w.get(),
            gpu.temp_c.get(),
        ];
        for (curve, value) in curves.iter_mut().zip(values) {
            curve.add(column, value);
        }
    }

    fn pause(&mut self, now: f64, column: usize) {
        if let Some(step) = self.last_s.map(|last| now - last) {
            match self.usual_s {
                Some(usual) if step > PAUSE * usual.max(0.2) => self.pauses[column] = true,
                Some(usual) => self.usual_s = Some(usual + (step - usual) / 8.0),
                None => self.usual_s = Some(step),
            }
        }
        self.last_s = Some(now);
    }

    fn mark(&mut self, now: f64, epoch: f64) {
        if self.epochs.len() >= MARKS {
            let mut n = 0;
            self.epochs.retain(|_| {
                n += 1;
                n % 2 == 0
            });
        }
        self.epochs.push((now, epoch));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Stamp;

    fn tick(elapsed_s: f64, util: Option<f64>) -> Sample {
        Sample {
            stamp: Stamp {
                time: String::new(),
                elapsed_s,
            },
            gpus: vec![GpuSample {
                util_pct: util.into(),
                ..GpuSample::default()
            }],
            ..Sample::default()
        }
    }

    #[test]
    fn a_column_keeps_least_and_most_and_a_missing_reading_is_a_hole() {
        let mut curves = Curves::new(&[GpuInfo::default()], Some(640.0));
        for (at, util) in [
            (0.1, Some(3.0)),
            (0.5, Some(90.0)),
            (1.5, None),
            (2.5, Some(50.0)),
        ] {
            curves.absorb(&tick(at, util));
        }
        let util = &curves.gpus[0].1[0];
        assert_eq!(util.cells[0].range, Some((3.0, 90.0)));
        assert!(util.cells[1].has_hole && util.cells[1].range.is_none());
        assert_eq!((util.n, util.missing), (3, 1));
        assert_eq!(util.mean(), Some(143.0 / 3.0));
        assert_eq!(curves.gpus[0].1[4].n, 0);
        assert_eq!(curves.gpus[0].1[4].range(), None);
    }

    #[test]
    fn a_long_pause_is_marked() {
        let mut curves = Curves::new(&[GpuInfo::default()], Some(640.0));
        for at in [1.0, 2.0, 3.0, 4.0, 60.0, 61.0] {
            curves.absorb(&tick(at, Some(1.0)));
        }
        let marked: Vec<usize> = (0..640).filter(|n| curves.pauses[*n]).collect();
        assert_eq!(marked, [60]);
    }
}
