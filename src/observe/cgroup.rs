//! The control groups that hold a process, in both versions and their mixture.
//!
//! Owns where they lie below their root and what their files say about limits. Formats: the
//! kernel's `admin-guide/cgroup-v2.rst` and `admin-guide/cgroup-v1/memory.rst`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::parse::{self, Quota};
use super::proc_fs::ProcFs;

/// Levels from a process's own cgroup up to the root, nearest first; both empty where no cgroup
/// can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups {
    memory: Levels,
    cpu: Levels,
}

/// The directories of one controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Levels {
    unified: bool,
    directories: Vec<PathBuf>,
}

impl Cgroups {
    /// Finds those of `who` (`self`, or a PID) below `root`, usually `/sys/fs/cgroup`.
    pub fn of(fs: &mut ProcFs, who: &str, root: &Path) -> Self {
        let Ok(text) = fs.read(format_args!("{who}/cgroup")) else {
            return Self::default();
        };
        let text = String::from_utf8_lossy(text).into_owned();
        Self {
            memory: levels(&text, root, "memory"),
            cpu: levels(&text, root, "cpu"),
        }
    }

    /// The smallest memory limit on the way up, in bytes; `None` where none is set.
    pub fn memory_limit(&self) -> Option<u64> {
        let file = if self.memory.unified {
            "memory.max" // `max` where there is none: not a number
        } else {
            "memory.limit_in_bytes" // a number close to 2^63 where there is none
        };
        let limits = self.memory.directories.iter();
        limits
            .filter_map(|level| parse::number(fs::read(level.join(file)).ok()?.trim_ascii()))
            .min()
    }

    /// The levels whose CPU time is limited by a quota.
    pub fn with_quota(&self) -> Vec<PathBuf> {
        let limited = |level: &&PathBuf| {
            if self.cpu.unified {
                fs::read(level.join("cpu.max")).is_ok_and(|text| !text.starts_with(b"max"))
            } else {
                fs::read(level.join("cpu.cfs_quota_us")).is_ok_and(|text| !text.starts_with(b"-"))
            }
        };
        self.cpu
            .directories
            .iter()
            .filter(limited)
            .cloned()
            .collect()
    }

    /// Whether the CPU controller can be seen at all.
    pub fn shows_cpu(&self) -> bool {
        let file = if self.cpu.unified {
            "cpu.max"
        } else {
            "cpu.cfs_quota_us"
        };
        let mut levels = self.cpu.directories.iter();
        levels.any(|level| level.join(file).exists())
    }

    /// The file that counts processes of this cgroup (and those below) which the out-of-memory
    /// killer took, under the key `oom_kill`.
    pub fn oom_file(&self) -> Option<PathBuf> {
        let name = if self.memory.unified {
            "memory.events"
        } else {
            "memory.oom_control"
        };
        let path = self.memory.directories.first()?.join(name);
        path.exists().then_some(path)
    }
}

/// The quota's counters of one level.
pub fn quota(level: &Path) -> io::Result<Quota> {
    let text = fs::read(level.join("cpu.stat"))?;
    parse::quota(&text).ok_or_else(super::proc_fs::not_understood)
}

/// The levels of one controller. Lines of `/proc/PID/cgroup` are `id:controllers:path`; the
/// unified hierarchy is `0::path`, and has the controllers that no other line names.
fn levels(text: &str, root: &Path, controller: &str) -> Levels {
    let mut unified = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            unified = Some(path);
        } else if controllers.split(',').any(|c| c == controller) {
            // Mounted under all its names (`cpu,cpuacct`), which are linked to each name alone.
            let bases = [root.join(controllers), root.join(controller)];
            let base = bases.into_iter().find(|base| base.is_dir());
            return Levels {
                unified: false,
                directories: base.map_or_else(Vec::new, |base| upwards(&base, path)),
            };
        }
    }
    // Beside version 1, version 2 is mounted one below.
    let mixed = root.join("unified");
    let base = if mixed.is_dir() { mixed } else { root.into() };
    Levels {
        unified: true,
        directories: unified.map_or_else(Vec::new, |path| upwards(&base, path)),
    }
}

/// `base/path` and what lies above it, up to `base`.
///
/// Inside a container the path may name directories of the host (or begin with `/..`): what is
/// mounted at the base is then the container's own cgroup.
fn upwards(base: &Path, path: &str) -> Vec<PathBuf> {
    let relative = path.trim_start_matches('/');
    let own = base.join(relative);
    if relative.split('/').any(|part| part == "..") || !own.is_dir() {
        return vec![base.to_owned()];
    }
    own.ancestors()
        .take_while(|level| level.starts_with(base))
        .map(Path::to_owned)
        .collect()
}
