//! Many runs with what each GPU was used for, from the index where it tells.
//!
//! Owns what is computed from a record where the index lacks it. Never writes.

use std::path::Path;

use super::error::RecordError;
use super::index::IndexEntry;
use super::list::{Listing, list};
use super::load::{load_brief, usage_of};

/// All runs of which `keep` is true, each with its usage. Those whose usage can't be read are among
/// the unreadable ones, too.
///
/// # Errors
/// `root` can't be read.
pub fn history(root: &Path, keep: impl Fn(&IndexEntry) -> bool) -> Result<Listing, RecordError> {
    let mut listing = list(root, None, keep)?;
    for entry in &mut listing.runs {
        if entry.usage.is_some() || entry.gpus.is_empty() {
            continue;
        }
        let usage = load_brief(Path::new(&entry.dir)).and_then(|run| usage_of(&run));
        match usage {
            Ok(usage) => entry.usage = Some(usage),
            Err(e) => listing.unreadable.push(e),
        }
    }
    Ok(listing)
}
