//! How many of a patrol's own records stay.
//!
//! Owns removing the oldest. Runs, and records that are still written, are left alone.

use std::fs;
use std::path::{Path, PathBuf};

use crate::model::{Origin, RunRecord};
use crate::plan::profile::Record;
use crate::record::run_dir::RUN_JSON;

/// Seconds of a day.
const DAY_S: f64 = 86_400.0;
/// Bytes of a MiB.
const MIB: f64 = 1_048_576.0;

/// A record that may go.
#[derive(Debug)]
struct Old {
    dir: PathBuf,
    ended_s: f64,
    bytes: f64,
}

/// Removes what is more than the settings allow; `now_s` is in seconds since 1970.
pub fn prune(root: &Path, keep: &Record, now_s: f64) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    let mut all: Vec<Old> = entries.flatten().filter_map(|e| old(e.path())).collect();
    all.sort_by(|a, b| b.ended_s.total_cmp(&a.ended_s));
    for dir in surplus(&all, keep, now_s) {
        // What can't be removed is tried again in an hour.
        let _ = fs::remove_dir_all(dir);
    }
}

/// Of these, the newest first, those that go.
fn surplus<'a>(all: &'a [Old], keep: &Record, now_s: f64) -> Vec<&'a Path> {
    let (mut kept, mut bytes) = (0, 0.0);
    all.iter()
        .filter(|old| {
            bytes += old.bytes;
            let young = now_s - old.ended_s <= keep.keep_days as f64 * DAY_S;
            let stays = young && kept < keep.keep_runs && bytes <= keep.keep_mib * MIB;
            kept += 1;
            !stays
        })
        .map(|old| old.dir.as_path())
        .collect()
}

/// A record that a patrol wrote and that is finished.
fn old(dir: PathBuf) -> Option<Old> {
    let text = fs::read(dir.join(RUN_JSON)).ok()?;
    let record: RunRecord = serde_json::from_slice(&text).ok()?;
    let ours = matches!(record.origin, Some(Origin::Found | Origin::Machine));
    let ended: jiff::Timestamp = record.ended.filter(|_| ours)?.parse().ok()?;
    let files = fs::read_dir(&dir).ok()?.flatten();
    let sizes = files.filter_map(|file| Some(file.metadata().ok()?.len()));
    Some(Old {
        ended_s: ended.as_millisecond() as f64 / 1000.0,
        bytes: sizes.sum::<u64>() as f64,
        dir,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_by_age_number_or_size() {
        let all: Vec<Old> = (0..6)
            .map(|i| Old {
                dir: PathBuf::from(i.to_string()),
                ended_s: -f64::from(i) * DAY_S,
                bytes: 10.0 * MIB,
            })
            .collect();
        let gone = |days, runs, mib| {
            let keep = Record {
                keep_days: days,
                keep_runs: runs,
                keep_mib: mib,
                ..Record::default()
            };
            surplus(&all, &keep, 0.0).len()
        };
        assert_eq!(gone(90, 100, 1000.0), 0);
        assert_eq!(gone(3, 100, 1000.0), 2);
        assert_eq!(gone(90, 2, 1000.0), 4);
        assert_eq!(gone(90, 100, 35.0), 3);
    }

    #[test]
    fn runs_and_open_records_stay() {
        let root = tempfile::tempdir().unwrap();
        for (name, origin, ended) in [
            ("run", None, Some("2020-01-01T00:00:00Z")),
            ("open", Some(Origin::Found), None),
            ("old", Some(Origin::Found), Some("2020-01-01T00:00:00Z")),
        ] {
            let record = RunRecord {
                origin,
                ended: ended.map(str::to_owned),
                ..RunRecord::default()
            };
            fs::create_dir(root.path().join(name)).unwrap();
            let text = serde_json::to_string(&record).unwrap();
            fs::write(root.path().join(name).join(RUN_JSON), text).unwrap();
        }
        prune(root.path(), &Record::default(), 4e9);
        let mut left: Vec<_> = fs::read_dir(root.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["open", "run"]);
    }
}
