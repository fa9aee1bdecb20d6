//! The timestamped log of `gpuwatch gpus --csv`.
//!
//! Columns are named as in `samples.csv`; an empty field is a missing reading.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::document::{local_time, number};
use crate::model::{GpuSample, Inventory, Reading};

const COLUMNS: [&str; 14] = [
    "time",
    "gpu",
    "uuid",
    "name",
    "gpu_util_pct",
    "mem_util_pct",
    "mem_used_mib",
    "mem_total_mib",
    "temp_c",
    "power_w",
    "power_limit_w",
    "sm_clock_mhz",
    "throttle",
    "pids",
];

/// An open log.
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Opens the file to append, with a line of names if it is new. The error is in words.
    pub fn open(path: &Path) -> Result<Self, String> {
        let cannot = |e| refused(path, &e);
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(path);
        let mut log = Self {
            path: path.to_owned(),
            file: file.map_err(cannot)?,
        };
        // A terminal or a pipe has no length and is always new.
        if log.file.metadata().map_err(cannot)?.len() == 0 {
            log.write(&[COLUMNS.map(str::to_owned)])?;
        }
        Ok(log)
    }

    /// Appends a row a GPU and MIG device; false if nobody reads any more.
    pub fn append(&mut self, inventory: &Inventory, samples: &[GpuSample]) -> Result<bool, String> {
        let time = local_time(jiff::Timestamp::now().as_millisecond() as f64 / 1e3);
        let time = time.unwrap_or_default();
        let unread = GpuSample::default();
        let rows: Vec<_> = inventory
            .devices()
            .map(|info| {
                let read = samples.iter().find(|s| s.is_of(info));
                let mut row = row(read.unwrap_or(&unread));
                row[0].clone_from(&time);
                row[1] = info.label();
                row[2] = info.uuid.clone().unwrap_or_default();
                row[3] = info.name.clone().unwrap_or_default();
                row
            })
            .collect();
        self.write(&rows)
    }

    fn write(&mut self, rows: &[[String; COLUMNS.len()]]) -> Result<bool, String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in rows {
            writer.write_record(row).map_err(|e| e.to_string())?;
        }
        let bytes = writer.into_inner().map_err(|e| e.to_string())?;
        match self.file.write_all(&bytes) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(e) => Err(refused(&self.path, &e)),
        }
    }
}

/// What stands in the way, and what to do.
fn refused(path: &Path, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "make its directory, or give another file with --csv",
        io::ErrorKind::IsADirectory => "name a file in it",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space, or give a file elsewhere with --csv"
        }
        _ => "give a file that can be written with --csv",
    };
    let text = error.to_string();
    let why = text.split(" (os error").next().unwrap_or(&text);
    format!("cannot write {}: {why}; {advice}", path.display())
}

/// The readings of a row; the first four columns are the caller's.
fn row(read: &GpuSample) -> [String; COLUMNS.len()] {
    let text = |reading: &Reading<f64>, parts| {
        number(reading, parts).map_or_else(String::new, |n| n.to_string())
    };
    let throttle = read.throttle.value().map(|t| t.text());
    let pids = read.processes.value().map(|list| {
        let pids: Vec<_> = list.iter().map(|p| p.pid.to_string()).collect();
        pids.join("+")
    });
    let none = String::new;
    [
        none(),
        none(),
        none(),
        none(),
        text(&read.util_pct, 1.0),
        text(&read.mem_util_pct, 1.0),
        text(&read.mem_used_mib, 1.0),
        text(&read.mem_total_mib, 1.0),
        text(&read.temp_c, 1.0),
        text(&read.power_w, 10.0),
        text(&read.power_limit_w, 10.0),
        text(&read.sm_clock_mhz, 1.0),
        throttle.unwrap_or_default(),
        // An empty list is nobody, not a missing reading.
        pids.map_or_else(none, |p| if p.is_empty() { "none".to_owned() } else { p }),
    ]
}
