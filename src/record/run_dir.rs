//! One run's directory while it is written.
//!
//! Owns the directory, its lock and `run.json`. Must not know what the other files hold.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::error::{CURE_WRITE, RecordError};
use super::files::{self, Locked};
use crate::model::RunRecord;

/// The file whose lock says that the run's supervisor lives.
pub const LOCK: &str = "lock";
/// The file in which the command may say its progress itself (`GPUWATCH_PROGRESS`).
pub const PROGRESS_FILE: &str = "progress.jsonl";
/// The file that says what the run was.
pub const RUN_JSON: &str = "run.json";

/// A run's directory, locked for as long as this value lives.
///
/// The lock belongs to this process: its descriptor is close-on-exec, so neither the child
/// nor a helper keeps a dead run alive.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    id: String,
    _lock: File,
}

impl RunDir {
    /// Makes `root/id` (0700) and takes its lock.
    ///
    /// # Errors
    /// [`RecordError::Taken`] where the id is in use (take another salt), else what the
    /// system refused.
    pub fn create(root: &Path, id: &str) -> Result<Self, RecordError> {
        let path = root.join(id);
        let refused = |e: io::Error| {
            if e.kind() == io::ErrorKind::AlreadyExists {
                RecordError::Taken { path: path.clone() }
            } else {
                RecordError::io("create", &path, CURE_WRITE)(e)
            }
        };
        files::create_dirs(root).map_err(refused)?;
        files::create_dir(&path).map_err(refused)?;
        match take_lock(&path.join(LOCK)) {
            Ok(lock) => Ok(Self {
                path,
                id: id.to_owned(),
                _lock: lock,
            }),
            Err(e) => {
                let _ = take_away(&path);
                Err(refused(e))
            }
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run's id: the directory's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Writes `run.json`: whoever reads it at any instant finds the old or the new one whole.
    ///
    /// # Errors
    /// What the system refused; the old one is still there.
    pub fn write_run(&self, record: &RunRecord) -> Result<(), RecordError> {
        let path = self.path.join(RUN_JSON);
        json_text(record)
            .and_then(|text| files::replace(&path, text.as_bytes()))
            .map_err(RecordError::io("write", &path, CURE_WRITE))
    }

    /// Makes the empty file in which the command may say its progress.
    ///
    /// # Errors
    /// What the system refused.
    pub fn create_progress_file(&self) -> Result<PathBuf, RecordError> {
        let path = self.path.join(PROGRESS_FILE);
        files::create_new(&path).map_err(RecordError::io("create", &path, CURE_WRITE))?;
        Ok(path)
    }

    /// Takes the directory away: the command couldn't be started, so there was no run.
    ///
    /// # Errors
    /// What the system refused.
    pub fn remove(self) -> Result<(), RecordError> {
        take_away(&self.path).map_err(RecordError::io("remove", &self.path, "remove it by hand"))
    }
}

/// Writes `evidence/<name>` in a run's directory and gives the path relative to that.
///
/// # Errors
/// What the system refused.
pub fn write_evidence(run_dir: &Path, name: &str, content: &[u8]) -> Result<String, RecordError> {
    let relative = format!("evidence/{}", super::id::safe_name(name));
    let path = run_dir.join(&relative);
    files::create_dirs(&run_dir.join("evidence"))
        .and_then(|()| files::replace(&path, content))
        .map_err(RecordError::io("write", &path, CURE_WRITE))?;
    Ok(relative)
}

/// The page of `gpuwatch report` in a run's directory.
pub const REPORT: &str = "report.html";

/// Puts the page into a run's directory and gives its path.
///
/// # Errors
/// What the system refused.
pub fn write_report(run_dir: &Path, page: &[u8]) -> Result<PathBuf, RecordError> {
    let path = run_dir.join(REPORT);
    let cure = "give another place with -o";
    files::replace(&path, page).map_err(RecordError::io("write", &path, cure))?;
    Ok(path)
}

/// Removes a directory in which hardly anything was written yet.
fn take_away(path: &Path) -> io::Result<()> {
    // What makes a start fail may be that there is no descriptor left to list it by.
    for name in [PROGRESS_FILE, RUN_JSON, LOCK] {
        let _ = fs::remove_file(path.join(name));
    }
    fs::remove_dir(path).or_else(|_| fs::remove_dir_all(path))
}

fn take_lock(path: &Path) -> io::Result<File> {
    let file = files::create_new(path)?;
    // Nobody knows of it yet; a reader that came across it lets go at once.
    match files::lock_within(&file, Duration::from_secs(1)) {
        // Without locks a run that was killed can't be told from one that lives: no reason
        // to have no record.
        Locked::Yes | Locked::Unsupported => Ok(file),
        Locked::Busy => Err(io::ErrorKind::ResourceBusy.into()),
    }
}

/// A document as all of ours are laid out: one space a level, a newline at the end.
pub fn json_text<T: Serialize>(document: &T) -> io::Result<String> {
    let mut out = Vec::new();
    let layout = serde_json::ser::PrettyFormatter::with_indent(b" ");
    document.serialize(&mut serde_json::Serializer::with_formatter(
        &mut out, layout,
    ))?;
    out.push(b'\n');
    String::from_utf8(out).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_lives_as_long_as_the_value() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "20261130-091502-train-7f3a").unwrap();
        let lock = File::open(run.path().join(LOCK)).unwrap();
        assert!(lock.try_lock_shared().is_err());
        assert!(matches!(
            RunDir::create(root.path(), run.id()),
            Err(RecordError::Taken { .. })
        ));
        drop(run);
        assert!(lock.try_lock_shared().is_ok());
    }

    #[test]
    fn a_run_that_never_was_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "20261130-091502-train-7f3a").unwrap();
        run.write_run(&RunRecord::default()).unwrap();
        assert_eq!(
            write_evidence(run.path(), "../stacks 18.txt", b"x").unwrap(),
            "evidence/stacks-18.txt"
        );
        run.remove().unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
