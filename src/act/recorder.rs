//! What NCCL and PyTorch's flight recorder have written of the job's collectives.
//!
//! Owns where such files are looked for, and which of them are small enough to be copied: who
//! writes them again takes the old ones away. They are never read for what they say.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file up to this size is copied, and so much of all together.
const SMALL: u64 = 1 << 20;
const TOGETHER: u64 = 16 << 20;
/// So many files are told.
const FILES: usize = 64;
/// Folders that are on this machine: one on a dead server would not answer.
const HERE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dumps {
    /// A line a file.
    pub lines: Vec<String>,
    /// Copies: how the file is called, and its bytes.
    pub copies: Vec<(String, Vec<u8>)>,
}

/// Files whose path begins as one of `ours` does, in a folder that we write to, or as one of
/// `theirs`, of which only folders on this machine are looked into.
pub fn look(ours: &[PathBuf], theirs: &BTreeSet<PathBuf>, now: SystemTime) -> Dumps {
    let mut dumps = Dumps::default();
    let mut left = TOGETHER;
    let mut seen = BTreeSet::new();
    for prefix in ours {
        dumps.take(prefix, &mut left, &mut seen, now);
    }
    for prefix in theirs.difference(&ours.iter().cloned().collect()) {
        if HERE.iter().any(|folder| prefix.starts_with(folder)) {
            dumps.take(prefix, &mut left, &mut seen, now);
        } else {
            let text = format!("{}*: not looked at", prefix.display());
            dumps.lines.push(text);
        }
    }
    dumps
}

impl Dumps {
    fn take(
        &mut self,
        prefix: &Path,
        left: &mut u64,
        seen: &mut BTreeSet<PathBuf>,
        now: SystemTime,
    ) {
        for path in files(prefix) {
            let Ok(about) = fs::symlink_metadata(&path) else {
                continue;
            };
            if !about.is_file() || self.lines.len() == FILES || !seen.insert(path.clone()) {
                continue;
            }
            let age = about
                .modified()
                .ok()
                .and_then(|at| now.duration_since(at).ok());
            let age = age.map_or_else(String::new, |age| format!(", {} s old", age.as_secs()));
            let copy = (about.len() <= SMALL.min(*left))
                .then(|| bytes(&path))
                .flatten();
            let copied = if copy.is_some() { ", copied" } else { "" };
            let text = format!("{}: {} bytes{age}{copied}", path.display(), about.len());
            self.lines.push(text);
            if let Some((name, bytes)) = name(&path).zip(copy) {
                *left -= bytes.len() as u64;
                self.copies.push((name, bytes));
            }
        }
    }
}

fn name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// Files whose path begins so, in the order of their names.
fn files(prefix: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(begin)) = (prefix.parent(), name(prefix)) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| name(path).is_some_and(|name| name.starts_with(&begin)))
        .collect();
    found.sort();
    found
}

fn bytes(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(SMALL).read_to_end(&mut bytes))
        .ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_dumps_are_copied_and_large_ones_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("flight-recorder-0"), "small").unwrap();
        File::create(path("flight-recorder-1"))
            .unwrap()
            .set_len(SMALL + 1)
            .unwrap();
        fs::write(path("train.py"), "").unwrap();
        std::os::unix::fs::symlink("train.py", path("flight-recorder-2")).unwrap();
        let ours = [path("flight-recorder-")];
        let theirs = BTreeSet::from([ours[0].clone(), PathBuf::from("/mnt/nas/nccl_")]);
        let later = SystemTime::now() + std::time::Duration::from_secs(90);
        let dumps = look(&ours, &theirs, later);
        let copies = [("flight-recorder-0".to_owned(), b"small".to_vec())];
        assert_eq!(dumps.copies, copies);
        assert_eq!(dumps.lines.len(), 3, "{:?}", dumps.lines);
        assert!(
            dumps.lines[0].contains("flight-recorder-0: 5 bytes, 9"),
            "{:?}",
            dumps.lines
        );
        assert!(
            dumps.lines[0].ends_with("s old, copied"),
            "{:?}",
            dumps.lines
        );
        assert!(!dumps.lines[1].contains("copied"), "{:?}", dumps.lines);
        assert_eq!(dumps.lines[2], "/mnt/nas/nccl_*: not looked at");
        assert_eq!(
            look(&[path("no/such-")], &BTreeSet::new(), later),
            Dumps::default()
        );
    }
}
