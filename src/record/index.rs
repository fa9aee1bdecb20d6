//! `index.jsonl` beside the runs: one line a finished run, so that the newest of many are
//! found without looking at all.
//!
//! Owns the lines and their lock. The directories are the truth: what the index lacks is
//! found by them. Must not know how runs are searched for.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::{CURE_READ, CURE_WRITE, RecordError};
use super::files::{self, Lines, Locked};
use super::tail::ReverseLines;
use super::usage::GpuUsage;
use crate::model::{Exit, Origin, Outcome, RunRecord, RunState, Summary};

/// The file's name.
pub const INDEX: &str = "index.jsonl";

/// How long the end of a run may wait for the index.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many of the last lines must be unreadable for the index to count as corrupt: one or
/// two may be torn.
const CORRUPT_AFTER: usize = 16;

/// One run in `runs --json` and one line of the index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// The run's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whose it was.
    #[serde(default)]
    pub user: Option<String>,
    /// Where it ran.
    #[serde(default)]
    pub host: Option<String>,
    /// The git work tree's root, else the working directory.
    #[serde(default)]
    pub project: Option<String>,
    /// The command.
    #[serde(default)]
    pub argv: Vec<String>,
    /// RFC 3339.
    pub started: String,
    /// RFC 3339; null while it runs.
    #[serde(default)]
    pub ended: Option<String>,
    /// Where it stands.
    pub state: RunState,
    /// How the child ended.
    #[serde(default)]
    pub exit: Exit,
    /// The verdict's outcome.
    #[serde(default)]
    pub outcome: Option<Outcome>,
    /// The verdict's cause.
    #[serde(default)]
    pub cause: Option<String>,
    /// NVML indices of the watched GPUs.
    #[serde(default)]
    pub gpus: Vec<u32>,
    /// Names of the findings that were raised.
    #[serde(default)]
    pub findings: Vec<String>,
    /// The run in numbers.
    #[serde(default)]
    pub summary: Summary,
    /// What each GPU was used for; absent where only the record tells (it was lost, still runs, or
    /// was indexed by an older version).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Vec<GpuUsage>>,
    /// What it is a record of, if no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The run's directory.
    #[serde(default)]
    pub dir: String,
}

impl IndexEntry {
    /// What runs are ordered by: the start in milliseconds, then the id. Where the start can't
    /// be read, the id tells its second.
    pub fn order(&self) -> (Option<i64>, &str) {
        let started: Option<jiff::Timestamp> = self.started.parse().ok();
        let second = || start_in_id(&self.id)?.checked_mul(1000);
        let started = started.map(jiff::Timestamp::as_millisecond);
        (started.or_else(second), &self.id)
    }

    /// Its end in milliseconds; `None` while it runs, or where it can't be read.
    pub fn ended_ms(&self) -> Option<i64> {
        let ended: jiff::Timestamp = self.ended.as_ref()?.parse().ok()?;
        Some(ended.as_millisecond())
    }

    /// The second of its start by the clock of its place, as its id tells it.
    pub(super) fn local_second(&self) -> Option<i64> {
        let local = self.started.get(..19).and_then(local_second);
        local.or_else(|| start_in_id(&self.id))
    }

    /// The entry of a run; `findings` are the names of those that were raised.
    pub fn new(record: &RunRecord, findings: Vec<String>, dir: &Path) -> Self {
        Self {
            id: record.id.clone(),
            name: record.name.clone(),
            tags: record.tags.clone(),
            user: record.user.clone(),
            host: record.host.clone(),
            project: record.project.clone(),
            argv: record.argv.clone(),
            started: record.started.clone(),
            ended: record.ended.clone(),
            state: record.state,
            exit: record.exit,
            outcome: record.verdict.outcome,
            cause: record.verdict.cause.clone(),
            gpus: record.gpus.iter().map(|gpu| gpu.index).collect(),
            findings,
            summary: record.summary.clone(),
            usage: None,
            origin: record.origin,
            dir: dir.to_string_lossy().into_owned(),
        }
    }
}

/// The second of the start that an id tells, by the clock of its place (as if that were UTC).
pub(super) fn start_in_id(id: &str) -> Option<i64> {
    let b = id.as_bytes();
    let part = |from, to| {
        id.get(from..to)
            .filter(|p| p.bytes().all(|b| b.is_ascii_digit()))
    };
    let (date, time) = (part(0, 8)?, part(9, 15)?);
    if (b.get(8), b.get(15)) != (Some(&b'-'), Some(&b'-')) {
        return None;
    }
    local_second(&format!("{date}T{time}"))
}

fn local_second(text: &str) -> Option<i64> {
    let at: jiff::Timestamp = format!("{text}Z").parse().ok()?;
    Some(at.as_second())
}

/// Appends a finished run's entry to the index of `root`, waiting at most 2 s for whoever
/// holds its lock.
///
/// An index of which nothing can be read is set aside first; its new name is given back, to
/// be said.
///
/// # Errors
/// [`RecordError::IndexBusy`], or what the system refused. The run is found by its directory
/// all the same.
pub fn append(root: &Path, entry: &IndexEntry) -> Result<Option<PathBuf>, RecordError> {
    let path = root.join(INDEX);
    let refused = RecordError::io("write", &path, CURE_WRITE);
    let mut line = match serde_json::to_vec(entry) {
        Ok(line) => line,
        Err(e) => return Err(refused(e.into())),
    };
    line.push(b'\n');
    let Some(mut file) = open_locked(&path).map_err(RecordError::io("open", &path, CURE_WRITE))?
    else {
        return Err(RecordError::IndexBusy {
            path,
            waited_s: PATIENCE.as_secs(),
        });
    };
    let set_aside = || -> io::Result<Option<(PathBuf, File)>> {
        if !is_corrupt(&file)? {
            return Ok(None);
        }
        let aside = free_name(&path);
        fs::rename(&path, &aside)?;
        // Others that wait for the old file's lock see that it is no longer the index.
        Ok(open_locked(&path)?.map(|new| (aside, new)))
    };
    let mut aside = None;
    if let Some((name, new)) = set_aside().map_err(RecordError::io("read", &path, CURE_READ))? {
        (aside, file) = (Some(name), new);
    }
    // The lock ends with the file.
    Lines::shared(file, path.clone())
        .map_err(refused)?
        .append(&line)?;
    Ok(aside)
}

/// The index, locked; `None` where somebody held it all the time.
fn open_locked(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = files::open_append(path)?;
        if files::lock_within(&file, PATIENCE) == Locked::Busy {
            return Ok(None);
        }
        // While we waited the file may have been replaced by another.
        let ours = file.metadata()?;
        if fs::metadata(path).is_ok_and(|m| (m.dev(), m.ino()) == (ours.dev(), ours.ino())) {
            return Ok(Some(file));
        }
    }
}

/// Whether none of the last lines can be read.
fn is_corrupt(file: &File) -> io::Result<bool> {
    let mut unreadable = 0;
    for line in ReverseLines::new(file.try_clone()?)?.take(CORRUPT_AFTER) {
        if serde_json::from_slice::<IndexEntry>(&line?).is_ok() {
            return Ok(false);
        }
        unreadable += 1;
    }
    Ok(unreadable == CORRUPT_AFTER)
}

fn free_name(path: &Path) -> PathBuf {
    let mut n = 1_u32;
    loop {
        let mut name = OsString::from(path);
        name.push(format!(".corrupt-{n}"));
        if !Path::new(&name).exists() {
            return name.into();
        }
        n += 1;
    }
}

/// The entries of an index, the last appended first; reads only as far back as it is asked.
/// A missing or unreadable index has none, torn lines are skipped. Each entry's `dir` is
/// where the run would be now, beside the index.
pub fn newest_first(root: &Path) -> impl Iterator<Item = IndexEntry> {
    let lines = File::open(root.join(INDEX)).and_then(ReverseLines::new);
    let root = root.to_owned();
    lines
        .into_iter()
        .flatten()
        .map_while(Result::ok)
        .filter_map(move |line| {
            let mut entry: IndexEntry = serde_json::from_slice(&line).ok()?;
            // An id is the name of a directory here, and no way to another place.
            if entry.id.contains('/') || matches!(entry.id.as_str(), "" | "." | "..") {
                return None;
            }
            entry.dir = root.join(&entry.id).to_string_lossy().into_owned();
            Some(entry)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str) -> IndexEntry {
        let record = RunRecord {
            id: id.to_owned(),
            name: "train".to_owned(),
            ..RunRecord::default()
        };
        IndexEntry::new(&record, Vec::new(), Path::new("/elsewhere"))
    }

    #[test]
    fn entries_come_back_newest_first_beside_their_index() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(newest_first(root.path()).count(), 0);
        for id in ["a", "b"] {
            assert_eq!(append(root.path(), &entry(id)).unwrap(), None);
        }
        let read: Vec<_> = newest_first(root.path()).collect();
        assert_eq!((read[0].id.as_str(), read[1].id.as_str()), ("b", "a"));
        assert_eq!(read[0].dir, root.path().join("b").to_string_lossy());
    }

    #[test]
    fn lines_of_an_older_version_are_read() {
        let old = r#"{"id":"a","name":"t","started":"","state":"finished","findings":["oom"]}"#;
        let read: IndexEntry = serde_json::from_str(old).unwrap();
        assert_eq!((read.usage, read.findings), (None, vec!["oom".to_owned()]));
        let mut new = entry("a");
        new.usage = Some(vec![GpuUsage::default()]);
        let line = serde_json::to_string(&new).unwrap();
        assert_eq!(serde_json::from_str::<IndexEntry>(&line).unwrap(), new);
    }

    #[test]
    fn runs_are_ordered_by_their_start() {
        let at = |id: &str, started: &str| IndexEntry {
            started: started.into(),
            ..entry(id)
        };
        let a = at("20261130-091502-z-7f3a", "2026-11-30T09:15:02.100+08:00");
        let b = at("20261130-091502-a-7f3a", "2026-11-30T09:15:02.200+08:00");
        let c = at("20261130-011502-a-7f3a", "2026-11-30T01:15:02.150Z");
        let d = at("20261130-011501-a-7f3a", "");
        assert!(a.order() < b.order() && a.order() < c.order() && c.order() < b.order());
        assert!(d.order() < a.order());
        assert_eq!(c.local_second(), start_in_id(&c.id));
        assert_eq!(d.local_second(), start_in_id(&d.id));
        for odd in [
            "",
            "20261130-091502",
            "20261330-091502-a",
            "2026113é-091502-a",
        ] {
            assert_eq!(start_in_id(odd), None, "{odd}");
        }
    }

    #[test]
    fn an_index_of_garbage_is_set_aside_and_named() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(INDEX);
        fs::write(&path, "\0\0\0\n".repeat(100)).unwrap();
        let aside = append(root.path(), &entry("a")).unwrap().unwrap();
        assert_eq!(aside, root.path().join("index.jsonl.corrupt-1"));
        assert_eq!(fs::read(&aside).unwrap().len(), 400);
        assert_eq!(newest_first(root.path()).count(), 1);
        // Two torn lines are not corruption.
        fs::write(&path, "{\"id\":\n{\"to").unwrap();
        assert_eq!(append(root.path(), &entry("b")).unwrap(), None);
        assert_eq!(newest_first(root.path()).count(), 1);
    }
}
