//! Claims: which run has which GPU, among the runs of all users of this machine.
//!
//! A claim is an exclusive lock (flock(2)) on a file that stands for the GPU, in a directory that
//! everybody may write and nobody may tidy up for others. The lock goes with the process that
//! holds it, so none can be stale. Owns that directory and those files; must not know what a
//! GPU does.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, fchmod, fstat, mkdir, open, openat};
use rustix::io::Errno;
use thiserror::Error;

use super::locks::{self, Lock};
use crate::model::GpuInfo;
use crate::sys::process::stat_field;

/// Where claims are, the first that can be had. All users must agree on it.
const PLACES: [&str; 2] = ["/var/lock/gpuwatch", "/tmp/gpuwatch-claims"];

/// Names another directory: one that containers of a machine share, for example.
pub const VARIABLE: &str = "GPUWATCH_CLAIMS";

/// How everybody may put files into a directory and nobody take out another's.
const STICKY: u32 = 0o1777;

/// A file that another user is just making isn't everybody's to read yet.
const BEING_MADE: (u32, Duration) = (20, Duration::from_millis(5));

/// Why there are no claims.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// The directory can't be trusted.
    #[error("the directory of claims {path} {what}: {cure}")]
    Unsafe {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
        /// What to do.
        cure: &'static str,
    },
    /// No place at all, or a file in it that can't be used.
    #[error(
        "claims can't be made in {path}: {error}; set {VARIABLE} to a directory with mode 1777"
    )]
    Unusable {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// The directory of claims.
#[derive(Debug)]
pub struct Claims {
    dir: File,
    path: PathBuf,
}

/// A GPU of ours, until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct Claim {
    _locked: File,
}

impl Claims {
    /// Opens the directory, making it if there is none.
    ///
    /// # Errors
    /// It is a link, or somebody could tidy up in it, or none can be made.
    pub fn open() -> Result<Self, ClaimError> {
        if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            return Self::at(Path::new(&path));
        }
        let [first, second] = PLACES.map(Path::new);
        match Self::at(first) {
            // Not there and not to be made: that is so for everybody without rights.
            Err(ClaimError::Unusable { .. }) => Self::at(second),
            other => other,
        }
    }

    /// Looks at the claims that there are, and makes nothing.
    pub fn look() -> Option<Self> {
        if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            return Self::opened(Path::new(&path), false).ok();
        }
        let mut places = PLACES.iter().map(Path::new);
        places.find_map(|path| Self::opened(path, false).ok())
    }

    fn at(path: &Path) -> Result<Self, ClaimError> {
        match mkdir(path, Mode::from_bits_retain(STICKY)) {
            Ok(()) => Self::opened(path, true),
            Err(Errno::EXIST) => Self::opened(path, false),
            Err(error) => Err(ClaimError::Unusable {
                path: path.to_owned(),
                error: error.into(),
            }),
        }
    }

    fn opened(path: &Path, made: bool) -> Result<Self, ClaimError> {
        let unusable = |error: Errno| ClaimError::Unusable {
            path: path.to_owned(),
            error: error.into(),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = open(path, flags, Mode::empty()).map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => untrusted(path, "is a link or no directory"),
            error => unusable(error),
        })?;
        if made {
            // The umask has taken something away.
            fchmod(&dir, Mode::from_bits_retain(STICKY)).map_err(unusable)?;
        }
        let permissions = fstat(&dir).map_err(unusable)?.st_mode;
        if permissions & STICKY != STICKY {
            return Err(untrusted(path, "is not sticky and open to all (mode 1777)"));
        }
        Ok(Self {
            dir: dir.into(),
            path: path.to_owned(),
        })
    }

    /// Claims a GPU. None: somebody else has it.
    ///
    /// # Errors
    /// Its file can't be used.
    pub fn take(&self, gpu: &str) -> Result<Option<Claim>, ClaimError> {
        let file = self.file(gpu)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Claim { _locked: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(self.unusable(gpu, error)),
        }
    }

    /// Who has claimed this GPU, without getting in anybody's way. A claim whose holder can't
    /// be seen from here is one, too.
    pub fn claimed(&self, gpu: &str) -> Option<Claimed> {
        let held = locks::held(Path::new("/proc")).unwrap_or_default();
        self.holder_in(&held, gpu)
    }

    fn holder_in(&self, held: &[Lock], gpu: &str) -> Option<Claimed> {
        let path = self.path.join(file_name(gpu));
        let file = fs::symlink_metadata(&path).ok()?;
        held.iter()
            .find(|lock| lock.exclusive && is_of(lock, &file, &path))
            .map(|lock| Claimed { pid: lock.pid })
    }

    /// Joins the line of those that wait for GPUs, at its end.
    ///
    /// # Errors
    /// Its file can't be used.
    pub fn line_up(&self) -> Result<Line, ClaimError> {
        let file = self.file(LINE)?;
        file.lock_shared()
            .map_err(|error| self.unusable(LINE, error))?;
        Ok(Line {
            _locked: file,
            path: self.path.join(file_name(LINE)),
        })
    }

    /// Never made new where it is there, so that `fs.protected_regular` doesn't matter, and
    /// never removed, so that everybody locks the same one.
    fn file(&self, gpu: &str) -> Result<File, ClaimError> {
        let (mut tries, pause) = BEING_MADE;
        loop {
            match self.open_or_make(gpu) {
                Err(Errno::ACCESS | Errno::NOENT | Errno::EXIST) if tries > 0 => {
                    tries -= 1;
                    std::thread::sleep(pause);
                }
                Err(Errno::LOOP) => {
                    let path = self.path.join(file_name(gpu));
                    return Err(untrusted(&path, "is a link"));
                }
                Err(error) => return Err(self.unusable(gpu, error.into())),
                Ok(file) => return self.regular(gpu, file),
            }
        }
    }

    fn open_or_make(&self, gpu: &str) -> Result<File, Errno> {
        // A FIFO that somebody put there must not hold us up.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let name = file_name(gpu);
        match openat(&self.dir, &name, flags, Mode::empty()) {
            Ok(file) => Ok(file.into()),
            Err(Errno::NOENT) => {
                let mode = Mode::from_bits_retain(0o644);
                let make = flags | OFlags::CREATE | OFlags::EXCL;
                let file = openat(&self.dir, &name, make, mode)?;
                fchmod(&file, mode)?;
                Ok(file.into())
            }
            Err(error) => Err(error),
        }
    }

    fn regular(&self, gpu: &str, file: File) -> Result<File, ClaimError> {
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(file),
            Ok(_) => Err(untrusted(
                &self.path.join(file_name(gpu)),
                "is no plain file",
            )),
            Err(error) => Err(self.unusable(gpu, error)),
        }
    }

    fn unusable(&self, gpu: &str, error: io::Error) -> ClaimError {
        ClaimError::Unusable {
            path: self.path.join(file_name(gpu)),
            error,
        }
    }
}

fn untrusted(path: &Path, what: &'static str) -> ClaimError {
    ClaimError::Unsafe {
        path: path.to_owned(),
        what,
        cure: "have its owner (or root) remove it, or set GPUWATCH_CLAIMS to another directory",
    }
}

/// Another run's claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The gpuwatch that holds it; None where it can't be seen from here.
    pub pid: Option<u32>,
}

/// A place in the line of those that wait, kept until this is dropped or the process ends.
#[derive(Debug)]
pub struct Line {
    _locked: File,
    path: PathBuf,
}

const LINE: &str = "line";

impl Line {
    /// Whether nobody in the line has waited for longer than we. Those that can't be seen from
    /// here can't be waited for.
    pub fn is_our_turn(&self) -> bool {
        let held = locks::held(Path::new("/proc")).unwrap_or_default();
        let Ok(file) = fs::symlink_metadata(&self.path) else {
            return true;
        };
        let waiting = held
            .iter()
            .filter(|lock| !lock.exclusive && is_of(lock, &file, &self.path))
            .filter_map(|lock| lock.pid);
        // Who waits does so from its start on.
        let us = std::process::id();
        let Some(ours) = started(us) else { return true };
        waiting
            .filter(|pid| *pid != us)
            .filter_map(|pid| Some((started(pid)?, pid)))
            .all(|theirs| theirs > (ours, us))
    }
}

/// The processes that we descend from, as far as they can be seen from here.
pub fn above_us() -> BTreeSet<u32> {
    let mut above = BTreeSet::new();
    let mut next = parent(std::process::id());
    while let Some(pid) = next.filter(|pid| *pid != 0 && above.insert(*pid)) {
        next = parent(pid);
    }
    above
}

/// Field 4 of `/proc/PID/stat`.
fn parent(pid: u32) -> Option<u32> {
    stat_field(pid, 4)?.parse().ok()
}

/// Field 22 of `/proc/PID/stat`: clock ticks from boot to the start.
fn started(pid: u32) -> Option<u64> {
    stat_field(pid, 22)?.parse().ok()
}

/// Whether a lock is on this file. Some file systems (btrfs, overlays) count another device
/// in stat(2) than in the list of locks; there the holder's open files tell.
fn is_of(lock: &Lock, file: &fs::Metadata, path: &Path) -> bool {
    if lock.inode != file.ino() {
        return false;
    }
    let device = file.dev();
    if lock.device == (rustix::fs::major(device), rustix::fs::minor(device)) {
        return true;
    }
    lock.pid.is_some_and(|pid| has_open(pid, path))
}

fn has_open(pid: u32, path: &Path) -> bool {
    let Ok(links) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    links
        .flatten()
        .any(|link| fs::read_link(link.path()).is_ok_and(|to| to == path))
}

/// How a GPU is called among the claims: by what doesn't change with the order of the bus.
pub fn key(gpu: &GpuInfo) -> String {
    let uuid = gpu.uuid.clone();
    uuid.unwrap_or_else(|| format!("index-{}", gpu.index))
}

/// A GPU's name as a file's: what isn't a letter, a digit or a hyphen becomes an underscore.
fn file_name(gpu: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    gpu.chars().take(120).map(plain).collect()
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
