//! The folder in which the ranks of a job on one machine share their book.
//!
//! Owns its place, its locks and its files. A rank is alive as long as its gpuwatch holds the
//! lock of its file, so none can be stale; one more lock lets one rank at a time at the book. Must
//! not know what the book means. Everything here may take as long as a file system takes.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};
use sha2::{Digest, Sha256};

use crate::model::Seat;

use super::ranks::{Book, Present};

/// Names another directory than `/tmp/gpuwatch-jobs-<uid>`.
pub const VARIABLE: &str = "GPUWATCH_JOBS";
/// How often a lock is tried that others hold for a moment, and the pause between.
const TRIES: (u32, Duration) = (100, Duration::from_millis(10));
/// Who has not looked into the book for so long doesn't speak, seconds.
const ASLEEP_S: f64 = 15.0;
/// The most folders of dead jobs that one rank tidies up.
const SWEEP: usize = 100;
/// A book is shorter than this.
const LONGEST: u64 = 16 << 20;

const TURN: &str = "turn";
const BOOK: &str = "book.json";
const RANK: &str = "rank-";

/// Seconds on a clock that all processes of the machine share and nobody sets.
pub fn machine_s() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Our place among the ranks, until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    me: u32,
    ours: File,
}

/// The book, ours alone until this is dropped.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
    /// What it says.
    pub book: Book,
    /// What it said.
    before: Book,
    /// Who is there.
    pub present: Present,
}

impl Folder {
    /// Joins the ranks of a job. A book that only dead ranks have written in is forgotten.
    ///
    /// # Errors
    /// There is no place that is ours alone, somebody has our rank's, or the system refused.
    pub fn join(seat: &Seat) -> io::Result<Self> {
        let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
        let base = named.map_or_else(
            || PathBuf::from(format!("/tmp/gpuwatch-jobs-{}", user())),
            PathBuf::from,
        );
        Self::join_in(&base, seat)
    }

    fn join_in(base: &Path, seat: &Seat) -> io::Result<Self> {
        private(base)?;
        let path = base.join(name(seat));
        sweep(base, &path);
        let _turn = take_turn(&path, true)?;
        let ours = open(&path.join(rank_file(seat.rank)), true)?;
        ours.try_lock()?;
        let folder = Self {
            path,
            me: seat.rank,
            ours,
        };
        if folder.present(machine_s())?.alive.is_empty() {
            remove(&folder.path.join(BOOK))?;
        }
        Ok(folder)
    }

    /// Takes the book.
    ///
    /// # Errors
    /// Others hold it for too long, or the system refused.
    pub fn turn(&self) -> io::Result<Turn> {
        let lock = take_turn(&self.path, false)?;
        let now_s = machine_s();
        self.ours.write_all_at(&now_s.to_le_bytes(), 0)?;
        let present = self.present(now_s)?;
        let book = match fs::read(self.path.join(BOOK)) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Book::default(),
            Err(e) => return Err(e),
        };
        Ok(Turn {
            _lock: lock,
            before: book.clone(),
            book,
            present,
        })
    }

    /// Puts the book back: whoever dies meanwhile leaves the old one or the new one.
    ///
    /// # Errors
    /// What the system refused.
    pub fn put_back(&self, turn: &Turn) -> io::Result<()> {
        if turn.book == turn.before {
            return Ok(());
        }
        let text = serde_json::to_vec(&turn.book)?;
        if text.len() as u64 > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let unfinished = self.path.join("book.new");
        fs::write(&unfinished, text)?;
        fs::rename(&unfinished, self.path.join(BOOK))
    }

    /// Takes the folder away; nobody is left in it.
    pub fn take_away(self, turn: Turn) {
        clear(&self.path);
        drop(turn);
    }

    fn present(&self, now_s: f64) -> io::Result<Present> {
        let mut present = Present::default();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let rank = name.to_str().and_then(|name| name.strip_prefix(RANK));
            let Some(rank) = rank.and_then(|rank| rank.parse().ok()) else {
                continue;
            };
            if rank == self.me {
                continue;
            }
            let mut file = open(&entry.path(), false)?;
            match file.try_lock_shared() {
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
            present.alive.insert(rank);
            let mut seen = [0; 8];
            // One that has just come has not written yet.
            let is_awake = match file.read_exact(&mut seen) {
                Ok(()) => now_s - f64::from_le_bytes(seen) < ASLEEP_S,
                Err(_) => true,
            };
            if is_awake {
                present.awake.insert(rank);
            }
        }
        Ok(present)
    }
}

/// Makes a directory that nobody else may enter, or finds that it is one.
fn private(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(dir)?;
    if found.is_dir() && found.uid() == user() && found.mode() & 0o777 == 0o700 {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A job's folder: what it is called by is no file name.
fn name(seat: &Seat) -> String {
    let mut hash = Sha256::new();
    for word in &seat.job {
        hash.update(word.len().to_le_bytes());
        hash.update(word);
    }
    let hash = hash.finalize();
    let word = |bytes: &[u8]| bytes.iter().fold(0, |n, b| n << 8 | u128::from(*b));
    format!("{:032x}", word(&hash[..16]))
}

fn rank_file(rank: u32) -> String {
    format!("{RANK}{rank}")
}

fn open(path: &Path, make: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(make)
        .truncate(false)
        .mode(0o600)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path)
}

/// The lock of a job's book. A folder that is taken away while it is waited for is made again
/// by who joins.
fn take_turn(folder: &Path, joins: bool) -> io::Result<File> {
    let path = folder.join(TURN);
    let (tries, pause) = TRIES;
    for _ in 0..tries {
        if joins {
            private(folder)?;
        }
        match open(&path, joins) {
            Ok(file) => match file.try_lock() {
                Ok(()) if is_at(&file, &path) => return Ok(file),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            },
            Err(error) if joins && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        thread::sleep(pause);
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn is_at(file: &File, path: &Path) -> bool {
    let both = file.metadata().ok().zip(fs::symlink_metadata(path).ok());
    both.is_some_and(|(open, there)| (open.dev(), open.ino()) == (there.dev(), there.ino()))
}

/// Folders whose ranks were all killed.
fn sweep(base: &Path, but: &Path) {
    let Ok(folders) = fs::read_dir(base) else {
        return;
    };
    for folder in folders.flatten().take(SWEEP).map(|entry| entry.path()) {
        if folder == but {
            continue;
        }
        let Ok(lock) = open(&folder.join(TURN), false) else {
            continue;
        };
        let free = |path: &Path| open(path, false).is_ok_and(|file| file.try_lock_shared().is_ok());
        if lock.try_lock().is_err() || !is_at(&lock, &folder.join(TURN)) {
            continue;
        }
        let mut ranks = files(&folder).into_iter().filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(RANK))
        });
        if ranks.all(|path| free(&path)) {
            clear(&folder);
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The lock goes last: who waits for it sees that it is another one's.
fn clear(folder: &Path) {
    let turn = folder.join(TURN);
    for path in files(folder).iter().filter(|path| **path != turn) {
        // What can't be removed now is swept later.
        let _ = fs::remove_file(path);
    }
    let _ = fs::remove_file(&turn);
    let _ = fs::remove_dir(folder);
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn seat(rank: u32) -> Seat {
        Seat {
            job: vec!["SLURM_PROCID".into(), "4711".into(), "0".into()],
            rank,
        }
    }

    #[test]
    fn ranks_see_each_other_for_as_long_as_they_live() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("jobs");
        let zero = Folder::join_in(&base, &seat(0)).unwrap();
        assert!(zero.turn().unwrap().present.alive.is_empty());
        assert!(
            Folder::join_in(&base, &seat(0)).is_err(),
            "the seat is taken"
        );
        let one = Folder::join_in(&base, &seat(1)).unwrap();
        let mut turn = one.turn().unwrap();
        assert_eq!(turn.present.awake, BTreeSet::from([0]));
        turn.book.started = true;
        one.put_back(&turn).unwrap();
        drop(turn);
        let turn = zero.turn().unwrap();
        assert!(turn.book.started);
        assert_eq!(turn.present.alive, BTreeSet::from([1]));
        drop((turn, one));
        assert!(zero.turn().unwrap().present.alive.is_empty());
    }

    #[test]
    fn what_dead_ranks_wrote_is_forgotten_and_swept() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("jobs");
        let zero = Folder::join_in(&base, &seat(0)).unwrap();
        let mut turn = zero.turn().unwrap();
        turn.book.started = true;
        zero.put_back(&turn).unwrap();
        drop((turn, zero));
        let zero = Folder::join_in(&base, &seat(0)).unwrap();
        assert!(!zero.turn().unwrap().book.started);
        let path = zero.path.clone();
        drop(zero);
        let other = Seat {
            job: vec!["another".into()],
            rank: 0,
        };
        let other = Folder::join_in(&base, &other).unwrap();
        assert!(!path.exists(), "swept");
        let turn = other.turn().unwrap();
        other.take_away(turn);
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
    }

    #[test]
    fn a_place_that_others_may_enter_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("jobs");
        fs::create_dir(&base).unwrap();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Folder::join_in(&base, &seat(0)).is_err());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(Folder::join_in(&link, &seat(0)).is_err());
    }
}
