//! What was told and still holds, over a restart of the patrol.
//!
//! Owns one small file beside the records. Where it can't be read or written, things are told
//! again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::model::ProcessId;
use crate::record::replace;

/// The file.
const FILE: &str = ".patrol-told.json";

/// A finding of a process, of this boot: start times count from it.
type Key = (String, u32, u64, String);

/// The list.
pub struct Told {
    path: Option<PathBuf>,
    boot: String,
    before: BTreeSet<Key>,
    now: BTreeSet<Key>,
}

impl Told {
    /// What the file below `root` says; without a root nothing is remembered.
    pub fn load(root: Option<&Path>) -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = boot.trim().to_owned();
        let path = root.map(|root| root.join(FILE));
        let text = path.as_ref().and_then(|path| fs::read(path).ok());
        let before: BTreeSet<Key> = text
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        Self {
            path,
            now: BTreeSet::new(),
            before: before.into_iter().filter(|key| key.0 == boot).collect(),
            boot,
        }
    }

    /// A finding of the job with this main process was raised; whether it was told before this
    /// patrol was started.
    pub fn raised(&mut self, main: ProcessId, finding: &str) -> bool {
        let key = self.key(main, finding);
        let known = self.before.contains(&key);
        if self.now.insert(key) {
            self.save();
        }
        known
    }

    /// It no longer holds; whether nobody was told of it by this patrol.
    pub fn cleared(&mut self, main: ProcessId, finding: &str) -> bool {
        let key = self.key(main, finding);
        let known = self.before.remove(&key);
        if self.now.remove(&key) || known {
            self.save();
        }
        known
    }

    /// The job is over.
    pub fn over(&mut self, main: ProcessId) {
        let other = |key: &Key| (key.1, key.2) != (main.pid, main.start);
        let n = self.now.len() + self.before.len();
        self.now.retain(other);
        self.before.retain(other);
        if self.now.len() + self.before.len() < n {
            self.save();
        }
    }

    fn key(&self, main: ProcessId, finding: &str) -> Key {
        (self.boot.clone(), main.pid, main.start, finding.to_owned())
    }

    fn save(&self) {
        let Some(path) = &self.path else { return };
        // What was told before may still hold and be found again.
        let all: Vec<&Key> = self.now.union(&self.before).collect();
        // Without it the worst is that something is told twice.
        if let Ok(text) = serde_json::to_vec(&all) {
            let _ = replace(path, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_known_after_a_restart_until_it_is_over() {
        let root = tempfile::tempdir().unwrap();
        let load = || Told::load(Some(root.path()));
        let main = ProcessId { pid: 7, start: 70 };
        let again = ProcessId { pid: 7, start: 71 };
        let mut told = load();
        assert!(!told.raised(main, "orphans") && !told.raised(main, "orphans"));
        let mut told = load();
        assert!(told.raised(main, "orphans"));
        assert!(!told.raised(main, "defunct") && !told.raised(again, "orphans"));
        assert!(told.cleared(main, "orphans"));
        told.over(again);
        let mut told = load();
        assert!(!told.raised(main, "orphans") && !told.raised(again, "orphans"));
        assert!(told.raised(main, "defunct"));
        // Without a place nothing is remembered.
        let mut told = Told::load(None);
        assert!(!told.raised(main, "defunct"));
    }
}
