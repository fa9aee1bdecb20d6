//! A control group with a limit of memory, of either version.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::support::wait_longer;

/// It is removed when this is dropped.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// One of this name with so much memory; None where none may be made.
    pub fn new(name: &str, mib: u64) -> Option<Self> {
        let kinds = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        kinds.iter().find_map(|(root, limit)| {
            let folder = Path::new(root).join(format!("gpuwatch-{name}-{}", std::process::id()));
            std::fs::create_dir(&folder).ok()?;
            let made = Self(folder);
            std::fs::write(made.0.join(limit), format!("{}", mib << 20)).ok()?;
            Some(made)
        })
    }

    /// Words that put a command which follows into it.
    pub fn entered(&self) -> Vec<String> {
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
        ["sh", "-c", &enter, "sh"].map(str::to_owned).into()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The last process may take a moment to be gone.
        let gone = || std::fs::remove_dir(&self.0).is_ok();
        if std::thread::panicking() {
            std::thread::sleep(Duration::from_secs(1));
            let _ = gone();
        } else {
            wait_longer(Duration::from_secs(20), "the cgroup is empty", gone);
        }
    }
}
