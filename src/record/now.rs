//! A run in progress as its record tells it: the last tick, and the findings that hold.
//!
//! Owns reading no more of the samples than their end. Never writes.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;

use super::error::{CURE_READ, RecordError};
use super::findings::FindingRecord;
use super::list::list;
use super::load::{is_alive, load_brief};
use super::output_log::parts;
use super::samples::{SAMPLES, SampleReader};
use super::tail::ReverseLines;
use crate::model::{GpuInfo, Origin, Reading, RunState, Sample};

/// Rows beyond one a GPU that are read, for torn and damaged ones.
const SPARE: usize = 8;

/// One run in progress, as `ps --json` lists it. Null is "not known", never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunNow {
    /// The run's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub user: Option<String>,
    /// The main process.
    pub pid: Option<u32>,
    /// The watched GPUs, as they are called in the record.
    pub gpus: Vec<String>,
    /// RFC 3339.
    pub started: String,
    /// Seconds from the start to the last sample.
    pub elapsed_s: Option<f64>,
    /// Epoch as displayed.
    pub epoch: Option<f64>,
    /// Total epochs.
    pub epochs: Option<f64>,
    /// Step as displayed.
    pub step: Option<u64>,
    /// Total steps.
    pub steps: Option<u64>,
    /// Percent of the whole run.
    pub overall_pct: Option<f64>,
    /// Remaining seconds.
    pub eta_s: Option<f64>,
    /// Mean of the job's own use of its GPUs, %.
    pub job_sm_pct: Option<f64>,
    /// Mean use of its GPUs by anybody, %.
    pub gpu_util_pct: Option<f64>,
    /// What the job holds on all of its GPUs together, MiB.
    pub job_mem_mib: Option<f64>,
    /// The memory of its GPUs together, MiB.
    pub gpu_mem_mib: Option<f64>,
    /// Seconds since output was last recorded.
    pub output_age_s: Option<f64>,
    /// Findings that hold.
    pub findings: Vec<FindingRecord>,
}

/// The runs in progress, newest start first, and what couldn't be read.
#[derive(Debug, Default)]
pub struct Running {
    /// The runs.
    pub runs: Vec<RunNow>,
    /// Records that can't be read, in part or in whole.
    pub problems: Vec<RecordError>,
}

/// The runs below `root` whose supervisor lives on this host.
///
/// # Errors
/// `root` can't be read.
pub fn running(root: &Path, host: Option<&str>, now: SystemTime) -> Result<Running, RecordError> {
    let open = |state| matches!(state, RunState::Running | RunState::Cancelled);
    let here = |of: Option<&str>| host.is_none() || of.is_none() || of == host;
    let listing = list(root, None, |entry| {
        // A machine is looked at, not run.
        let is_run = entry.origin != Some(Origin::Machine);
        is_run && open(entry.state) && entry.ended.is_none() && here(entry.host.as_deref())
    })?;
    let mut all = Running {
        runs: Vec::new(),
        problems: listing.unreadable,
    };
    for entry in listing.runs {
        let dir = root.join(&entry.id);
        match load_brief(&dir) {
            Ok(run) if run.record.ended.is_none() && is_alive(&dir) => {
                let (record, mut told) = (run.record, RunNow::default());
                match last_sample(&dir, &record.gpus) {
                    Ok(Some(sample)) => told.take(&sample),
                    Ok(None) => {}
                    Err(error) => all.problems.push(error),
                }
                told.output_age_s = output_age(&dir, now);
                told.gpus = record.gpus.iter().map(GpuInfo::label).collect();
                told.gpu_mem_mib = memory(&record.gpus);
                let holds = |finding: &FindingRecord| finding.cleared_s.is_none();
                told.findings = run.findings.into_iter().filter(holds).collect();
                (told.id, told.name) = (record.id, record.name);
                (told.user, told.pid) = (record.user, record.pid);
                told.started = record.started;
                all.runs.push(told);
                all.problems.extend(run.problems);
            }
            // It has ended since.
            Ok(_) => {}
            Err(error) => all.problems.push(error),
        }
    }
    Ok(all)
}

impl RunNow {
    fn take(&mut self, sample: &Sample) {
        let progress = &sample.progress;
        self.elapsed_s = Some(sample.stamp.elapsed_s);
        (self.epoch, self.epochs) = (progress.epoch, progress.epochs);
        (self.step, self.steps) = (progress.step, progress.steps);
        (self.overall_pct, self.eta_s) = (progress.overall_pct, progress.eta_s);
        self.job_sm_pct = together(sample.job_sm_pct.iter()).map(|(sum, n)| sum / n);
        self.gpu_util_pct =
            together(sample.gpus.iter().map(|gpu| &gpu.util_pct)).map(|(sum, n)| sum / n);
        self.job_mem_mib = together(sample.job_mem_mib.iter()).map(|(sum, _)| sum);
    }
}

/// The sum and how many; None where one is missing, or there is none.
fn together<'a>(readings: impl Iterator<Item = &'a Reading<f64>>) -> Option<(f64, f64)> {
    let values: Vec<f64> = readings.map(Reading::get).collect::<Option<_>>()?;
    (!values.is_empty()).then(|| (values.iter().sum(), values.len() as f64))
}

/// The memory of these GPUs together; None where one's is not known, or there is none.
fn memory(gpus: &[GpuInfo]) -> Option<f64> {
    let all: Option<u64> = gpus.iter().map(|gpu| gpu.memory_mib).sum();
    all.filter(|&mib| mib > 0).map(|mib| mib as f64)
}

/// The last whole tick of `samples.csv`, read from its end.
///
/// # Errors
/// What the system refused.
pub fn last_sample(dir: &Path, gpus: &[GpuInfo]) -> Result<Option<Sample>, RecordError> {
    let path = dir.join(SAMPLES);
    let read = || -> io::Result<Vec<u8>> {
        let mut file = BufReader::new(File::open(&path)?);
        let mut text = Vec::new();
        (&mut file).take(64 * 1024).read_until(b'\n', &mut text)?;
        let rows = ReverseLines::new(file.into_inner())?.take(gpus.len() + SPARE);
        let mut rows = rows.collect::<io::Result<Vec<_>>>()?;
        rows.reverse();
        for row in rows {
            text.extend_from_slice(&row);
            text.push(b'\n');
        }
        Ok(text)
    };
    let text = match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(RecordError::io("read", &path, CURE_READ))?,
    };
    let mut last = None;
    for sample in SampleReader::new(Cursor::new(text), path, gpus)? {
        last = Some(sample?);
    }
    Ok(last)
}

fn output_age(dir: &Path, now: SystemTime) -> Option<f64> {
    let files = parts(dir).ok()?;
    let logs = files.iter().filter_map(|path| fs::metadata(path).ok());
    // Of a command that hasn't printed yet nothing is known.
    let written = logs.filter(|log| log.len() > 0);
    let newest = written.filter_map(|log| log.modified().ok()).max()?;
    let age = now.duration_since(newest).ok()?;
    Some((age.as_secs_f64() * 10.0).round() / 10.0)
}
