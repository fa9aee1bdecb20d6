//! Which runs are judged again.

use std::path::{Path, PathBuf};

use crate::cli::output::note;
use crate::cli::span::Since;
use crate::record::run_dir::RUN_JSON;
use crate::record::samples::has_samples;
use crate::record::{IndexEntry, RecordError, find, list, root_for_reading};

/// The runs' directories; what can't be had was said.
#[derive(Default)]
pub struct Found {
    /// Each run's.
    pub dirs: Vec<PathBuf>,
    /// Whether a run that was asked for can't be read.
    pub unread: bool,
}

impl Found {
    /// What these words name, in their order.
    pub fn named(words: &[String], root: Option<&Path>) -> Self {
        let mut found = Self::default();
        for word in words {
            match lookup(word, root) {
                Ok(dirs) => found.dirs.extend(dirs),
                Err(error) => {
                    note(&error);
                    found.unread = true;
                }
            }
        }
        found
    }

    /// Runs that ended since then, or haven't ended, the oldest first.
    ///
    /// # Errors
    /// The place of records can't be read.
    pub fn recent(since: Since, root: Option<&Path>) -> Result<Self, RecordError> {
        let Some(root) = root_for_reading(root)? else {
            return Ok(Self::default());
        };
        let keep = |entry: &IndexEntry| since.keeps(entry);
        let listing = list(&root, None, keep)?;
        listing.unreadable.iter().for_each(note);
        let dirs = listing.runs.iter().rev();
        Ok(Self {
            dirs: dirs.map(|run| PathBuf::from(&run.dir)).collect(),
            unread: !listing.unreadable.is_empty(),
        })
    }
}

/// The directories that a word names, in the order of their names.
fn lookup(word: &str, root: Option<&Path>) -> Result<Vec<PathBuf>, RecordError> {
    let dir = Path::new(word);
    if has_samples(dir) {
        return Ok(vec![dir.to_owned()]);
    }
    if dir.is_dir() && !dir.join(RUN_JSON).exists() {
        let mut inside: Vec<PathBuf> = dir
            .read_dir()
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| has_samples(path))
            .collect();
        inside.sort();
        if !inside.is_empty() {
            return Ok(inside);
        }
    }
    // A directory is found whatever becomes of the place for records.
    let root = match root_for_reading(root) {
        Err(_) if word.contains('/') => None,
        other => other?,
    };
    Ok(vec![find(root.as_deref(), word)?])
}
