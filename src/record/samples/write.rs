//! From samples to rows.

use std::io::{self, Write};
use std::path::Path;

use super::SAMPLES;
use super::columns::{COLUMNS, Labels};
use super::round::rounded;
use crate::model::{GpuInfo, Metric, Reading, Sample};
use crate::record::error::{CURE_WRITE, RecordError};
use crate::record::files::Lines;

/// Appends samples, one write a tick.
#[derive(Debug)]
pub struct SampleWriter {
    lines: Lines,
    labels: Labels,
    /// The rows of one tick; kept for its memory.
    rows: Vec<u8>,
}

impl SampleWriter {
    /// Makes `samples.csv` in a run's directory, and its first line.
    ///
    /// # Errors
    /// What the system refused.
    pub fn create(run_dir: &Path) -> Result<Self, RecordError> {
        let mut writer = Self {
            lines: Lines::create(run_dir.join(SAMPLES))?,
            labels: Labels::default(),
            rows: Vec::new(),
        };
        writer
            .lines
            .append(format!("{}\n", COLUMNS.join(",")).as_bytes())?;
        Ok(writer)
    }

    /// Says which GPUs are watched, so that MIG devices go by their names.
    pub fn name_gpus(&mut self, gpus: &[GpuInfo]) {
        self.labels = Labels::new(gpus);
    }

    /// Appends a tick, rounded as [`rounded`] does: all of its rows or none.
    ///
    /// # Errors
    /// What the system refused: this tick is lost, later ones may be written.
    pub fn append(&mut self, sample: &Sample) -> Result<(), RecordError> {
        self.rows.clear();
        let rows = std::mem::take(&mut self.rows);
        self.rows = rows_of(&rounded(sample), &self.labels, rows).map_err(RecordError::io(
            "write",
            Path::new(SAMPLES),
            CURE_WRITE,
        ))?;
        self.lines.append(&self.rows)
    }
}

fn rows_of(sample: &Sample, labels: &Labels, buffer: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut csv = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(buffer);
    let mut row = Row::default();
    // What repeats on each GPU's row is made once.
    let mut after = Row::default();
    after.job_host(sample);
    after.progress(sample);
    for position in 0..sample.gpus.len().max(1) {
        row.clear();
        row.text(&sample.stamp.time);
        row.number(Some(sample.stamp.elapsed_s));
        row.gpu(sample, position, labels);
        csv.write_record(row.cells().chain(after.cells()))?;
    }
    csv.into_inner().map_err(csv::IntoInnerError::into_error)
}

/// Cells under construction, end to end in one buffer.
#[derive(Default)]
struct Row {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Row {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn cells(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(from, to)| &self.text[from..*to])
    }

    fn text(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
        self.ends.push(self.text.len());
    }

    fn shown(&mut self, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            // Writing into memory can't fail.
            let _ = write!(self.text, "{value}");
        }
        self.ends.push(self.text.len());
    }

    /// The shortest text that reads back as the same number; 400, not 400.0.
    fn number(&mut self, value: Option<f64>) {
        match value {
            Some(x) if x != 0.0 && !(1e-7..1e16).contains(&x.abs()) && x.is_finite() => {
                self.shown(Some(format_args!("{x:e}")));
            }
            other => self.shown(other),
        }
    }

    fn reading(&mut self, value: Option<&Reading<f64>>) {
        self.number(value.and_then(Reading::get));
    }

    fn gpu(&mut self, sample: &Sample, position: usize, labels: &Labels) {
        let Some(g) = sample.gpus.get(position) else {
            let gpu_columns = super::columns::Column::Procs as usize - self.ends.len();
            (0..gpu_columns).for_each(|_| self.text(""));
            return;
        };
        match labels.of(g.index) {
            Some(label) => self.text(label),
            None => self.shown(Some(g.index)),
        }
        self.reading(Some(&g.util_pct));
        self.reading(Some(&g.mem_util_pct));
        self.reading(Some(&g.mem_used_mib));
        self.reading(Some(&g.mem_total_mib));
        self.reading(sample.job_mem_mib.get(position));
        self.reading(sample.job_sm_pct.get(position));
        self.reading(Some(&g.temp_c));
        self.reading(Some(&g.power_w));
        self.reading(Some(&g.power_limit_w));
        self.reading(sample.energy_j.get(position));
        self.reading(Some(&g.sm_clock_mhz));
        self.shown(g.throttle.get().map(crate::model::Throttle::text));
        self.reading(Some(&g.pcie_mb_s));
        self.shown(sample.ecc_uncorrected.get(position).and_then(Reading::get));
        self.reading(Some(&g.sm_active_pct));
        self.reading(Some(&g.tensor_active_pct));
        self.reading(Some(&g.dram_active_pct));
    }

    fn job_host(&mut self, sample: &Sample) {
        let (job, host) = (&sample.job, &sample.host);
        for counted in [
            &job.procs,
            &job.n_run,
            &job.n_sleep,
            &job.n_disk,
            &job.n_zombie,
            &job.n_stopped,
            &job.n_busy,
        ] {
            self.shown(counted.get());
        }
        for measured in [
            &job.cpu_cores,
            &job.main_cores,
            &job.rss_mib,
            &job.anon_mib,
            &job.shmem_mib,
            &job.read_mb_s,
            &job.write_mb_s,
            &job.majflt_s,
        ] {
            self.reading(Some(measured));
        }
        self.shown(job.forks.get());
        for measured in [
            &host.cpu_pct,
            &host.io_pressure_pct,
            &host.cpu_throttled_pct,
            &host.mem_limit_mib,
        ] {
            self.reading(Some(measured));
        }
    }

    fn progress(&mut self, sample: &Sample) {
        let p = &sample.progress;
        self.shown(Some(sample.out_bytes));
        self.number(p.epoch);
        self.number(p.epochs);
        self.shown(p.step);
        self.shown(p.steps);
        self.number(p.percent);
        match p.loss {
            Some(Metric(x)) if x.is_nan() => self.text("nan"),
            other => self.number(other.map(|Metric(x)| x)),
        }
        self.number(p.rate);
        self.number(p.overall_pct);
        self.number(p.eta_s);
    }
}
