//! Alerts that could not be sent by the end of a run, kept for `gpuwatch alert flush`.
//!
//! Owns the folder and its files, one an alert. No address and no secret is in them: a channel
//! is named, and found by its name again.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};

use super::letter::Letter;

/// More alerts than this aren't kept: the oldest go.
const MOST: usize = 500;
/// The version of the files.
const SCHEMA: u32 = 1;

/// One kept alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    schema: u32,
    /// The channel's name.
    pub channel: String,
    /// Its kind.
    pub kind: String,
    /// Why it was not sent.
    pub why: String,
    /// The alert, with the id that it was tried with.
    pub letter: Letter,
}

impl Kept {
    /// For a channel.
    pub fn new(channel: &str, kind: &str, why: &str, letter: Letter) -> Self {
        Self {
            schema: SCHEMA,
            channel: channel.to_owned(),
            kind: kind.to_owned(),
            why: why.to_owned(),
            letter,
        }
    }
}

/// What is kept, each with its file, and what can't be read.
pub type Listed = (Vec<(PathBuf, Kept)>, Vec<String>);

/// The folder.
#[derive(Clone, Debug)]
pub struct Outbox {
    folder: PathBuf,
}

impl Outbox {
    /// `$XDG_STATE_HOME/gpuwatch/outbox`, else in `~/.local/state`; `None` without a home.
    pub fn at_home() -> Option<Self> {
        let base = etcetera::base_strategy::Xdg::new().ok()?;
        let state = base.state_dir().filter(|dir| dir.is_absolute())?;
        Some(Self::at(&state.join("gpuwatch/outbox")))
    }

    /// This folder.
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps an alert: whoever looks finds it whole or not at all. The folder is made (0700)
    /// if it is missing; the file is 0600.
    ///
    /// # Errors
    /// What the system refused.
    pub fn keep(&self, kept: &Kept) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let name = format!(
            "{}-{}",
            plain(&kept.letter.alert.time),
            plain(&kept.letter.id)
        );
        // The same alert may wait for several channels.
        let name = format!("{name}-{}", plain(&kept.channel));
        let unfinished = self.folder.join(format!(".{name}"));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)?;
        let mut text = serde_json::to_vec_pretty(kept)?;
        text.push(b'\n');
        file.write_all(&text)?;
        fs::rename(&unfinished, self.folder.join(format!("{name}.json")))?;
        let files = self.files()?;
        for old in files.iter().rev().skip(MOST) {
            // Somebody else may have done it.
            let _ = fs::remove_file(old);
        }
        Ok(())
    }

    /// Everything that is kept, the oldest first. What can't be read is in the second list,
    /// each as one sentence.
    ///
    /// # Errors
    /// The folder can't be read; a missing one is empty.
    pub fn list(&self) -> io::Result<Listed> {
        let (mut kept, mut problems) = (Vec::new(), Vec::new());
        for path in self.files()? {
            let read = fs::read(&path).map_err(|e| e.kind().to_string());
            let parsed = read.and_then(|text| {
                serde_json::from_slice::<Kept>(&text)
                    .map_err(|_| "it is not a kept alert".to_owned())
            });
            match parsed {
                Ok(entry) => kept.push((path, entry)),
                Err(why) => problems.push(format!("{} can't be read: {why}", path.display())),
            }
        }
        Ok((kept, problems))
    }

    /// Takes the outbox for one sender; `None` while another one has it.
    ///
    /// # Errors
    /// What the system refused.
    pub fn lock(&self) -> io::Result<Option<File>> {
        if !self.folder.is_dir() {
            return Ok(None);
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.folder.join("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// The files, sorted by name, which is by time.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let hidden = path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if !hidden && path.extension().is_some_and(|e| e == "json") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

/// What a file may be called.
fn plain(text: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    text.chars().map(keep).take(80).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_kept_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let outbox = Outbox::at(&dir.path().join("state/outbox"));
        assert!(outbox.list().unwrap().0.is_empty());
        assert!(outbox.lock().unwrap().is_none(), "there is nothing to send");
        let kept = Kept::new("../team", "slack", "no answer", Letter::sample());
        outbox.keep(&kept).unwrap();
        outbox.keep(&kept).unwrap();
        let (found, problems) = outbox.list().unwrap();
        assert!(problems.is_empty());
        assert_eq!(found.len(), 1, "the same alert is kept once");
        assert_eq!(found[0].1, kept);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(outbox.folder()), mode(&found[0].0)), (0o700, 0o600));
        let lock = outbox.lock().unwrap();
        assert!(lock.is_some() && outbox.lock().unwrap().is_none());
        fs::write(outbox.folder().join("x.json"), "{").unwrap();
        assert_eq!(outbox.list().unwrap().1.len(), 1);
    }
}
