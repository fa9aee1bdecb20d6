//! `gpuwatch-<run>.prom` in the directory of node_exporter's textfile collector.
//!
//! Owns the file: it is whole at every instant, readable by all, and gone at the end. What a
//! killed run left is swept by the next one of the same user. A file's lock is held by its
//! writer, so that one without a lock is nobody's.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::OFlags;

use super::Shelf;
use crate::export::{Format, render};
use crate::sys::fault;

/// A file that is being written is no older than this.
const HALF_DONE: Duration = Duration::from_secs(60);

/// The file.
#[derive(Debug)]
pub struct Textfile {
    dir: PathBuf,
    id: String,
    /// The one that is there now, locked.
    current: Option<File>,
    /// Its failure was said.
    said: bool,
}

impl Textfile {
    /// For the run (or whatever else there is one of) with this id, which may stand in a file's
    /// name. If nothing can be written there, the sentence about it.
    pub fn new(dir: &Path, id: &str) -> (Self, Option<String>) {
        let problem = match fs::metadata(dir) {
            Ok(found) if found.is_dir() => None,
            Ok(_) => Some(failed(dir, &io::Error::from(io::ErrorKind::NotADirectory))),
            Err(error) => Some(failed(dir, &error)),
        };
        let file = Self {
            dir: dir.to_owned(),
            id: id.to_owned(),
            current: None,
            said: problem.is_some(),
        };
        (file, problem)
    }

    /// Writes what lies on the shelf until that is closed, then takes the file away. The first
    /// failure is reported.
    pub fn keep(self, shown: &Arc<Shelf>, report: &dyn Fn(String)) {
        // Dropped last: until the file is gone.
        let _there = shown.writing();
        let mut file = self;
        sweep(&file.dir);
        let mut seen = 0;
        while let Some((number, scrape)) = shown.next(seen) {
            seen = number;
            fault::at("textfile");
            let text = render(&scrape, Format::Text);
            if let Err(error) = file.write(text.as_bytes())
                && !std::mem::replace(&mut file.said, true)
            {
                report(failed(&file.dir, &error));
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(format!("gpuwatch-{}.prom", self.id))
    }

    /// A name that the collector doesn't read.
    fn new_path(&self) -> PathBuf {
        self.dir.join(format!("gpuwatch-{}.prom.new", self.id))
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        let new = self.new_path();
        let written = write_new(&new, text).and_then(|file| {
            fs::rename(&new, self.path())?;
            Ok(file)
        });
        match written {
            Ok(file) => {
                // The lock of the one before goes only now, when it has no name any more.
                self.current = Some(file);
                Ok(())
            }
            Err(error) => {
                // Of no use, and the error says why.
                let _ = fs::remove_file(&new);
                Err(error)
            }
        }
    }
}

impl Drop for Textfile {
    fn drop(&mut self) {
        if self.current.is_some() {
            // Whoever can't remove it now can't later either; the next run sweeps it.
            let _ = fs::remove_file(self.path());
        }
    }
}

fn write_new(new: &Path, text: &[u8]) -> io::Result<File> {
    let open = || {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(new)
    };
    let mut file = match open() {
        // Ours, from a write that failed and could not be taken away.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(new)?;
            open()?
        }
        opened => opened?,
    };
    // Without locks, others can't sweep it, and that is all.
    let _ = file.try_lock();
    // The umask is for files that are nobody else's business.
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(text)?;
    Ok(file)
}

fn failed(dir: &Path, error: &io::Error) -> String {
    let cure = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "; make the directory",
        io::ErrorKind::PermissionDenied => "; make it writable, or name another one",
        _ => "",
    };
    format!(
        "metrics can't be written to {}: {error}{cure}",
        dir.display()
    )
}

/// Takes away what killed runs of this user left.
fn sweep(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return; // the first write says why
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some((name, is_new)) = name.to_str().and_then(ours) else {
            continue;
        };
        if is_run_id(name) {
            // What can't be opened or removed is left where it is.
            let _ = sweep_one(&entry.path(), is_new);
        }
    }
}

/// The id in a file's name, and whether it was still being written.
fn ours(name: &str) -> Option<(&str, bool)> {
    let name = name.strip_prefix("gpuwatch-")?;
    match name.strip_suffix(".prom") {
        Some(id) => Some((id, false)),
        None => Some((name.strip_suffix(".prom.new")?, true)),
    }
}

/// `YYYYMMDD-HHMMSS-<name>-<4 hex>`: nobody else calls a file so.
fn is_run_id(id: &str) -> bool {
    let digits = |text: Option<&str>, n: usize| {
        text.is_some_and(|text| text.len() == n && text.bytes().all(|b| b.is_ascii_digit()))
    };
    let salt = id.rsplit('-').next().unwrap_or_default();
    digits(id.get(..8), 8)
        && digits(id.get(9..15), 6)
        && id.len() > 20
        && salt.len() == 4
        && salt.bytes().all(|b| b.is_ascii_hexdigit())
}

fn sweep_one(path: &Path, is_new: bool) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    let found = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if !found.is_file() || found.uid() != own {
        return Ok(());
    }
    if is_new && found.modified()?.elapsed().unwrap_or_default() < HALF_DONE {
        return Ok(());
    }
    match file.try_lock() {
        Ok(()) => {}
        // Its run lives, or nobody can tell.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return Ok(()),
    }
    // It may have been replaced meanwhile by one that is locked.
    let now = fs::symlink_metadata(path)?;
    if (now.dev(), now.ino()) == (found.dev(), found.ino()) {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_are_told_from_others() {
        for name in [
            "gpuwatch-20261130-091502-train-7f3a.prom",
            "gpuwatch-20261130-091502-a-b.c-0001.prom.new",
        ] {
            let (id, _) = ours(name).unwrap();
            assert!(is_run_id(id), "{name}");
        }
        for name in [
            "gpuwatch-patrol.prom",
            "gpuwatch-2026113-0091502-train-7f3a.prom",
            "gpuwatch-20261130-091502-train-7f3z.prom",
            "gpuwatch-20261130-091502-train.prom",
            "gpuwatch-日本語日本語日本語.prom",
            "node-20261130-091502-train-7f3a.prom",
            "gpuwatch-20261130-091502-train-7f3a.txt",
        ] {
            assert!(!ours(name).is_some_and(|(id, _)| is_run_id(id)), "{name}");
        }
    }

    #[test]
    fn what_nobody_holds_is_swept_and_what_lives_stays() {
        let dir = tempfile::tempdir().unwrap();
        let id = |n: u32| format!("20261130-091502-train-{n:04x}");
        let (mut live, problem) = Textfile::new(dir.path(), &id(1));
        assert_eq!(problem, None);
        live.write(b"a 1\n").unwrap();
        live.write(b"a 2\n").unwrap();
        let dead = dir.path().join(format!("gpuwatch-{}.prom", id(2)));
        fs::write(&dead, "a 3\n").unwrap();
        let half = dir.path().join(format!("gpuwatch-{}.prom.new", id(3)));
        fs::write(&half, "a").unwrap();
        let foreign = dir.path().join("gpuwatch-mine.prom");
        fs::write(&foreign, "a 4\n").unwrap();
        let link = dir.path().join(format!("gpuwatch-{}.prom", id(4)));
        std::os::unix::fs::symlink(&foreign, &link).unwrap();
        sweep(dir.path());
        assert!(!dead.exists());
        assert!(live.path().exists() && half.exists() && foreign.exists() && link.exists());
        assert_eq!(fs::read(live.path()).unwrap(), b"a 2\n");
        let old = File::options().write(true).open(&half).unwrap();
        old.set_modified(std::time::SystemTime::now() - 2 * HALF_DONE)
            .unwrap();
        drop(old);
        sweep(dir.path());
        assert!(!half.exists());
        let path = live.path();
        drop(live);
        assert!(!path.exists());
    }
}
