//! Many runs: the index as far back as needed, and the directories that it lacks.
//!
//! Owns which runs there are and their order (newest start first). Never writes.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use super::error::{CURE_READ, RecordError};
use super::findings::names;
use super::index::{IndexEntry, newest_first};
use super::load::load_brief;

/// The index is in the order of ends, a list in the order of starts: how many more entries
/// are read than asked for. What lies further back is found by its directory.
const OVERLAP: usize = 64;

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
/// Runs whose directory is gone aren't listed; running and lost ones are.
///
/// # Errors
/// `root` can't be read.
pub fn list(
    root: &Path,
    limit: Option<usize>,
    keep: impl Fn(&IndexEntry) -> bool,
) -> Result<Listing, RecordError> {
    // To look at every directory once is cheaper than to ask for each, and dearer than to
    // ask for a few.
    let all = match limit {
        Some(_) => None,
        None => Some(directories(root, |_| true)?),
    };
    let is_there = |id: &str| match &all {
        Some(names) => names.contains(id),
        None => root.join(id).is_dir(),
    };
    let enough = limit.map_or(usize::MAX, |n| n.saturating_add(OVERLAP));
    let mut seen = HashSet::new();
    let mut indexed = Vec::new();
    for entry in newest_first(root) {
        if indexed.len() >= enough {
            break;
        }
        // A second line of the same run is older, and a run is a directory.
        if seen.insert(entry.id.clone()) && keep(&entry) && is_there(&entry.id) {
            indexed.push(entry);
        }
    }
    sort(&mut indexed);
    let oldest = limit.and_then(|n| indexed.get(n.checked_sub(1)?));
    let mut unseen = match all {
        Some(names) => names,
        None => directories(root, |name| {
            !is_id(name) || oldest.is_none_or(|entry| name > entry.id.as_str())
        })?,
    };
    unseen.retain(|name| !seen.contains(name));
    let mut listing = Listing::default();
    read_unindexed(root, unseen, limit, &indexed, &keep, &mut listing);
    listing.runs.extend(indexed);
    sort(&mut listing.runs);
    listing.runs.truncate(limit.unwrap_or(usize::MAX));
    Ok(listing)
}

fn sort(runs: &mut [IndexEntry]) {
    runs.sort_by(|a, b| b.id.cmp(&a.id));
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
    let (mut dated, odd): (Vec<String>, Vec<String>) = unseen.into_iter().partition(|n| is_id(n));
    // A directory with a name of its own doesn't tell its start: it is always looked at.
    for name in odd {
        read_one(root, &name, keep, listing);
    }
    let odd = listing.runs.len();
    sort(&mut listing.runs);
    dated.sort_by(|a, b| b.cmp(a));
    for name in dated {
        let is_newer = |entry: &IndexEntry| entry.id > name;
        // Among those found here, the dated ones come newest first.
        let odd_newer = listing.runs[..odd].partition_point(is_newer);
        let dated_newer = listing.runs.len() - odd;
        let known = indexed.partition_point(is_newer) + odd_newer + dated_newer;
        if limit.is_some_and(|limit| known >= limit) {
            break;
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

/// Whether a directory's name has the form of an id (then names sort by start).
fn is_id(name: &str) -> bool {
    let b = name.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        b.get(range)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    digits(0..8) && b.get(8) == Some(&b'-') && digits(9..15) && b.get(15) == Some(&b'-')
}
