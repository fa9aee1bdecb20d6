//! Many runs: the index as far back as needed, and the directories that it lacks.
//!
//! Owns which runs there are and their order (newest start first). Never writes.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use super::error::{CURE_READ, RecordError};
use super::findings::names;
use super::index::{IndexEntry, newest_first, start_in_id};
use super::load::load_brief;
use super::run_dir::RUN_JSON;

/// The index is in the order of ends, a list in the order of starts: how many more entries
/// are read than asked for. What lies further back is found by its directory.
const OVERLAP: usize = 64;

/// How far the clock that ids are written by may jump back (summer's end), in seconds.
const CLOCK_BACK: i64 = 3600;

/// The runs that were asked for.
#[derive(Debug, Default)]
pub struct Listing {
    /// Newest start first.
    pub runs: Vec<IndexEntry>,
    /// Records that are there and can't be read.
    pub unreadable: Vec<RecordError>,
}

/// The newest `limit` runs (all of them if `None`) of which `keep` is true.
///
/// Runs whose directory is gone, or holds no `run.json`, aren't listed; running and lost ones are.
///
/// # Errors
/// `root` can't be read.
pub fn list(
    root: &Path,
    limit: Option<usize>,
    keep: impl Fn(&IndexEntry) -> bool,
) -> Result<Listing, RecordError> {
    let enough = limit.map_or(usize::MAX, |n| n.saturating_add(OVERLAP));
    let mut seen = HashSet::new();
    let mut indexed = Vec::new();
    for entry in newest_first(root) {
        if indexed.len() >= enough {
            break;
        }
        // A second line of the same run is older, and a run is a directory.
        if seen.insert(entry.id.clone())
            && keep(&entry)
            && root.join(&entry.id).join(RUN_JSON).exists()
        {
            indexed.push(entry);
        }
    }
    sort(&mut indexed);
    let oldest = limit.and_then(|n| indexed.get(n.checked_sub(1)?));
    let oldest = oldest.and_then(IndexEntry::local_second);
    let mut unseen = directories(root, |name| match (start_in_id(name), oldest) {
        (Some(start), Some(oldest)) => start >= oldest - CLOCK_BACK,
        // A directory with a name of its own doesn't tell its start.
        _ => true,
    })?;
    unseen.retain(|name| !seen.contains(name));
    let mut listing = Listing::default();
    read_unindexed(root, unseen, limit, &indexed, &keep, &mut listing);
    listing.runs.extend(indexed);
    sort(&mut listing.runs);
    listing.runs.truncate(limit.unwrap_or(usize::MAX));
    Ok(listing)
}

fn sort(runs: &mut [IndexEntry]) {
    runs.sort_by(|a, b| b.order().cmp(&a.order()));
}

/// The names of the directories in `root` that are wanted.
pub(super) fn directories(
    root: &Path,
    wanted: impl Fn(&str) -> bool,
) -> Result<HashSet<String>, RecordError> {
    let read = || -> io::Result<HashSet<String>> {
        let mut names = HashSet::new();
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string()
                && wanted(&name)
                && !entry.file_type()?.is_file()
            {
                names.insert(name);
            }
        }
        Ok(names)
    };
    read().map_err(RecordError::io("read", root, CURE_READ))
}

/// Reads the runs that the index lacks, newest first, until there are enough newer ones.
fn read_unindexed(
    root: &Path,
    unseen: HashSet<String>,
    limit: Option<usize>,
    indexed: &[IndexEntry],
    keep: &impl Fn(&IndexEntry) -> bool,
    listing: &mut Listing,
) {
    let mut dated: Vec<(Option<i64>, String)> = unseen
        .into_iter()
        .map(|name| (start_in_id(&name), name))
        .collect();
    // A directory with a name of its own comes first: it is always looked at.
    dated.sort_by_key(|(start, _)| std::cmp::Reverse(start.unwrap_or(i64::MAX)));
    for (start, name) in dated {
        if let (Some(start), Some(limit)) = (start, limit) {
            let later = start + CLOCK_BACK;
            let is_newer = |entry: &&IndexEntry| entry.local_second().is_some_and(|s| s > later);
            let known = indexed.iter().chain(&listing.runs).filter(is_newer);
            if known.take(limit).count() >= limit {
                break;
            }
        }
        read_one(root, &name, keep, listing);
    }
}

fn read_one(root: &Path, name: &str, keep: &impl Fn(&IndexEntry) -> bool, listing: &mut Listing) {
    match load_brief(&root.join(name)) {
        Ok(run) => {
            let entry = IndexEntry::new(&run.record, names(&run.findings), &run.dir);
            if keep(&entry) {
                listing.runs.push(entry);
            }
        }
        // Not a run, or one that is just being made.
        Err(RecordError::Io { source, .. }) if is_absent(&source) => {}
        Err(e) => listing.unreadable.push(e),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
