//! From rows to samples: by column name, whatever else is in the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::SAMPLES;
use super::columns::{COLUMNS, Column, Labels};
use super::packed::{Rows, has_samples, open_rows};
use crate::model::{
    GpuInfo, GpuSample, HostSample, JobSample, Metric, ProgressState, Reading, Sample, Stamp,
    Throttle,
};
use crate::record::error::{CURE_READ, RecordError};
use crate::record::files::WholeLines;
use crate::record::tail::ReverseLines;

/// Reads ticks back. Rows with equal `elapsed_s` are one tick; unknown columns are ignored,
/// absent ones are missing, a torn line is skipped.
pub struct SampleReader<R> {
    csv: csv::Reader<WholeLines<R>>,
    path: PathBuf,
    /// Where each of our columns is in this file.
    places: [Option<usize>; COLUMNS.len()],
    width: usize,
    labels: Labels,
    row: csv::ByteRecord,
    /// The tick whose rows are being read.
    pending: Option<Sample>,
}

impl SampleReader<Rows> {
    /// Opens `samples.csv`, or `samples.csv.zst`, in a run's directory; `gpus` are those of its
    /// `run.json`.
    ///
    /// # Errors
    /// What the system refused.
    pub fn open(run_dir: &Path, gpus: &[GpuInfo]) -> Result<Self, RecordError> {
        let (rows, path) = open_rows(run_dir).map_err(|(error, path)| unread(&path, error))?;
        Self::new(rows, path, gpus)
    }
}

impl<R: Read> SampleReader<R> {
    /// Reads from anything; `path` is for messages.
    ///
    /// # Errors
    /// What the system refused.
    pub fn new(input: R, path: PathBuf, gpus: &[GpuInfo]) -> Result<Self, RecordError> {
        let mut csv = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            // No cell of ours needs quotes, and a stray one in a damaged line must not
            // swallow the lines after it.
            .quoting(false)
            .buffer_capacity(64 * 1024)
            .from_reader(WholeLines::new(input));
        let mut header = csv::ByteRecord::new();
        csv.read_byte_record(&mut header)
            .map_err(|e| unread(&path, e.into()))?;
        let place = |name: &&str| header.iter().position(|cell| bare(cell) == name.as_bytes());
        Ok(Self {
            places: std::array::from_fn(|i| place(&COLUMNS[i])),
            width: header.len(),
            csv,
            path,
            labels: Labels::new(gpus),
            row: csv::ByteRecord::new(),
            pending: None,
        })
    }

    /// Takes in the row that was read: gives the tick before it, if this row begins another.
    fn absorb(&mut self) -> Option<Sample> {
        let cells = Cells {
            row: &self.row,
            places: &self.places,
        };
        let elapsed_s = cells.number(Column::ElapsedS)?;
        let gpu = match cells.get(Column::Gpu) {
            b"" => None,
            cell => {
                let cell = String::from_utf8_lossy(cell);
                let known = self.labels.index(&cell);
                Some(known.unwrap_or_else(|| self.labels.learn(&cell)))
            }
        };
        let done = match &self.pending {
            Some(tick) if belongs(tick, elapsed_s, gpu) => None,
            _ => self.pending.replace(cells.tick(elapsed_s)),
        };
        if let (Some(index), Some(tick)) = (gpu, &mut self.pending) {
            cells.gpu(index, self.labels.of(index), tick);
        }
        done
    }
}

/// Whether a row is one more GPU of this tick. A GPU that is there already (or a row without
/// one) begins another tick, even within the same millisecond.
fn belongs(tick: &Sample, elapsed_s: f64, gpu: Option<u32>) -> bool {
    let same_time = tick.stamp.elapsed_s.to_bits() == elapsed_s.to_bits();
    let new_gpu = gpu.is_some_and(|index| tick.gpus.iter().all(|g| g.index != index));
    same_time && new_gpu && !tick.gpus.is_empty()
}

impl<R: Read> Iterator for SampleReader<R> {
    type Item = Result<Sample, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.csv.read_byte_record(&mut self.row) {
                Ok(true) if self.row.len() < self.width => {}
                Ok(true) => {
                    if let Some(tick) = self.absorb() {
                        return Some(Ok(tick));
                    }
                }
                Ok(false) => return self.pending.take().map(Ok),
                Err(e) => return Some(Err(unread(&self.path, e.into()))),
            }
        }
    }
}

/// Where a compressed file is damaged, its rights are not the matter.
fn unread(path: &Path, error: io::Error) -> RecordError {
    let cure = if error.kind() == ErrorKind::InvalidData {
        "put it back from a copy, or move the run away"
    } else {
        CURE_READ
    };
    RecordError::io("read", path, cure)(error)
}

struct Cells<'a> {
    row: &'a csv::ByteRecord,
    places: &'a [Option<usize>; COLUMNS.len()],
}

impl Cells<'_> {
    fn get(&self, column: Column) -> &[u8] {
        let place = self.places[column as usize];
        bare(place.and_then(|at| self.row.get(at)).unwrap_or_default())
    }

    fn number(&self, column: Column) -> Option<f64> {
        number(self.get(column)).filter(|x| x.is_finite())
    }

    fn reading(&self, column: Column) -> Reading<f64> {
        self.number(column).into()
    }

    fn whole<T: TryFrom<u64>>(&self, column: Column) -> Option<T> {
        whole(self.get(column)).and_then(|n| T::try_from(n).ok())
    }

    fn tick(&self, elapsed_s: f64) -> Sample {
        Sample {
            stamp: Stamp {
                time: String::from_utf8_lossy(self.get(Column::Time)).into_owned(),
                elapsed_s,
            },
            job: self.job(),
            host: HostSample {
                cpu_pct: self.reading(Column::HostCpuPct),
                io_pressure_pct: self.reading(Column::IoPressurePct),
                cpu_throttled_pct: self.reading(Column::CpuThrottledPct),
                mem_limit_mib: self.reading(Column::MemLimitMib),
            },
            out_bytes: self.whole(Column::OutBytes).unwrap_or_default(),
            progress: ProgressState {
                epoch: self.number(Column::Epoch),
                epochs: self.number(Column::Epochs),
                step: self.whole(Column::Step),
                steps: self.whole(Column::Steps),
                percent: self.number(Column::Percent),
                loss: number(self.get(Column::Loss)).map(Metric),
                rate: self.number(Column::Rate),
                overall_pct: self.number(Column::OverallPct),
                eta_s: self.number(Column::EtaS),
            },
            ..Sample::default()
        }
    }

    fn job(&self) -> JobSample {
        let count = |column| self.whole(column).into();
        JobSample {
            procs: count(Column::Procs),
            n_run: count(Column::NRun),
            n_sleep: count(Column::NSleep),
            n_disk: count(Column::NDisk),
            n_zombie: count(Column::NZombie),
            n_stopped: count(Column::NStopped),
            n_busy: count(Column::NBusy),
            cpu_cores: self.reading(Column::CpuCores),
            main_cores: self.reading(Column::MainCores),
            rss_mib: self.reading(Column::RssMib),
            anon_mib: self.reading(Column::AnonMib),
            shmem_mib: self.reading(Column::ShmemMib),
            read_mb_s: self.reading(Column::ReadMbS),
            write_mb_s: self.reading(Column::WriteMbS),
            majflt_s: self.reading(Column::MajfltS),
            forks: count(Column::Forks),
        }
    }

    fn gpu(&self, index: u32, mig: Option<&str>, tick: &mut Sample) {
        let throttle = std::str::from_utf8(self.get(Column::Throttle)).ok();
        tick.gpus.push(GpuSample {
            index,
            mig: mig.map(str::to_owned),
            util_pct: self.reading(Column::GpuUtilPct),
            mem_util_pct: self.reading(Column::MemUtilPct),
            mem_used_mib: self.reading(Column::MemUsedMib),
            mem_total_mib: self.reading(Column::MemTotalMib),
            temp_c: self.reading(Column::TempC),
            power_w: self.reading(Column::PowerW),
            power_limit_w: self.reading(Column::PowerLimitW),
            sm_clock_mhz: self.reading(Column::SmClockMhz),
            throttle: throttle.and_then(Throttle::from_text).into(),
            pcie_mb_s: self.reading(Column::PcieMbS),
            sm_active_pct: self.reading(Column::SmActivePct),
            tensor_active_pct: self.reading(Column::TensorActivePct),
            dram_active_pct: self.reading(Column::DramActivePct),
            ..GpuSample::default()
        });
        tick.job_mem_mib.push(self.reading(Column::JobMemMib));
        tick.job_sm_pct.push(self.reading(Column::JobSmPct));
        tick.energy_j.push(self.reading(Column::EnergyJ));
        tick.ecc_uncorrected
            .push(self.whole(Column::EccUncorrected).into());
    }
}

/// A cell without the quotes and spaces that another tool may have put around it.
fn bare(cell: &[u8]) -> &[u8] {
    match cell {
        [b' ' | b'"', ..] | [.., b' ' | b'"'] => {
            let trimmed = cell.trim_ascii();
            let inner = trimmed.strip_prefix(b"\"").unwrap_or(trimmed);
            inner.strip_suffix(b"\"").unwrap_or(inner)
        }
        plain => plain,
    }
}

/// A number of at most 15 digits is exact as an integer divided by a power of ten; the
/// standard library reads the rest.
fn number(cell: &[u8]) -> Option<f64> {
    let (sign, digits) = match cell {
        [b'-', rest @ ..] => (-1.0, rest),
        rest => (1.0, rest),
    };
    if digits.is_empty() || digits.len() > 16 {
        return slow_number(cell);
    }
    let (mut value, mut seen, mut scale) = (0_u64, 0, None);
    for byte in digits {
        match byte {
            b'0'..=b'9' => {
                value = value * 10 + u64::from(byte - b'0');
                seen += 1;
                scale = scale.map(|s: f64| s * 10.0);
            }
            b'.' if scale.is_none() => scale = Some(1.0),
            _ => return slow_number(cell),
        }
    }
    if seen == 0 || seen > 15 {
        return slow_number(cell);
    }
    Some(sign * (value as f64 / scale.unwrap_or(1.0)) + 0.0)
}

fn slow_number(cell: &[u8]) -> Option<f64> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

/// A whole number; one that another tool wrote as `200.0` too.
fn whole(cell: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(cell).ok()?;
    text.parse().ok().or_else(|| {
        let x = number(cell)?;
        ((0.0..9e15).contains(&x) && x.fract() == 0.0).then_some(x as u64)
    })
}

/// When a record ends.
#[derive(Clone, Debug, PartialEq)]
pub struct LastTick {
    /// RFC 3339.
    pub time: String,
    /// Seconds since the run's start.
    pub elapsed_s: f64,
}

/// The last whole row's time, read from the file's end where it isn't compressed; `None` where
/// there is no row.
///
/// # Errors
/// What the system refused.
pub fn last_tick(run_dir: &Path) -> Result<Option<LastTick>, RecordError> {
    let path = run_dir.join(SAMPLES);
    if !path.exists() && has_samples(run_dir) {
        let mut last = None;
        for sample in SampleReader::open(run_dir, &[])? {
            let stamp = sample?.stamp;
            last = Some(LastTick {
                time: stamp.time,
                elapsed_s: stamp.elapsed_s,
            });
        }
        return Ok(last);
    }
    let read = || -> io::Result<Option<LastTick>> {
        let mut file = BufReader::new(File::open(&path)?);
        let mut header = String::new();
        (&mut file).take(64 * 1024).read_line(&mut header)?;
        let names: Vec<&[u8]> = header
            .trim_end()
            .split(',')
            .map(|n| bare(n.as_bytes()))
            .collect();
        let place = |name: &str| names.iter().position(|n| *n == name.as_bytes());
        let (Some(time), Some(elapsed)) = (place("time"), place("elapsed_s")) else {
            return Ok(None);
        };
        for line in ReverseLines::new(file.into_inner())? {
            let line = line?;
            let cells: Vec<&[u8]> = line.split(|b| *b == b',').map(bare).collect();
            if cells.len() < names.len() {
                continue;
            }
            if let Some(elapsed_s) = number(cells[elapsed]).filter(|x| x.is_finite()) {
                let time = String::from_utf8_lossy(cells[time]).into_owned();
                return Ok(Some(LastTick { time, elapsed_s }));
            }
        }
        Ok(None)
    };
    read().map_err(RecordError::io("read", &path, CURE_READ))
}
