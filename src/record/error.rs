//! What can go wrong with records, each in one sentence: what, where, what to do.
//!
//! Owns the wording. Must not know who prints it: paths are given as they are, and whoever
//! shows them to a person replaces control characters.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a record can't be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The system refused.
    #[error("cannot {doing} {}: {}; {cure}", path.display(), plain(source))]
    Io {
        /// A verb: `create`, `write`, `read`.
        doing: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// What a person can do.
        cure: &'static str,
        /// The system's word.
        source: io::Error,
    },
    /// A place for records that somebody else could control.
    #[error("{} is not a private directory of this user: remove it, or give another place with --dir", path.display())]
    NotPrivate {
        /// The place.
        path: PathBuf,
    },
    /// Neither a home nor a temporary directory can hold records.
    #[error(
        "no place for a record (neither the home directory nor /tmp can be written): give one with --dir, or use --no-record"
    )]
    NoPlace,
    /// A run with this id is there already.
    #[error("{} exists already: use another id", path.display())]
    Taken {
        /// Its directory.
        path: PathBuf,
    },
    /// A file isn't what its name says.
    #[error("{} is not a run record ({why}): its samples.csv and output.log may still be readable", path.display())]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// Where and why parsing stopped.
        why: String,
    },
    /// Somebody held the index for longer than we wait.
    #[error("{} was locked for over {waited_s} s, so this run is not in it: nothing is lost, `gpuwatch runs` finds the run by its directory", path.display())]
    IndexBusy {
        /// The index.
        path: PathBuf,
        /// How long was waited, in seconds.
        waited_s: u64,
    },
    /// Nothing has been recorded there.
    #[error(
        "no run is recorded in {place}: start one with `gpuwatch run -- CMD`, or give the place with --dir"
    )]
    NoRuns {
        /// The place that was looked at.
        place: String,
    },
    /// No run answers to this.
    #[error("no run '{what}' in {}: {hint}", path.display())]
    NotFound {
        /// What was asked for.
        what: String,
        /// Where it was looked for.
        path: PathBuf,
        /// Near matches, or what to do.
        hint: String,
    },
    /// More than one run answers to this.
    #[error("'{what}' fits {n} runs: write more of one of {candidates}")]
    Ambiguous {
        /// What was asked for.
        what: String,
        /// How many fit.
        n: usize,
        /// A few of them.
        candidates: String,
    },
}

impl RecordError {
    /// Whether the place is right and only has no room or no hands now: a run goes on without
    /// its record then, where a wrong place is said before anything starts.
    pub fn is_passing(&self) -> bool {
        const PASSING: [i32; 6] = [
            libc::ENOSPC,
            libc::EDQUOT,
            libc::EMFILE,
            libc::ENFILE,
            libc::ENOMEM,
            libc::EIO,
        ];
        match self {
            Self::Io { source, .. } => source
                .raw_os_error()
                .is_some_and(|code| PASSING.contains(&code)),
            _ => false,
        }
    }

    /// For `map_err`: the system refused to do this to that.
    pub(super) fn io(
        doing: &'static str,
        path: &Path,
        cure: &'static str,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            cure,
            source,
        }
    }
}

/// What to do where a file of a run can't be written.
pub(super) const CURE_WRITE: &str = "the run goes on without it; free space or use --dir";
/// What to do where a file of a run can't be read.
pub(super) const CURE_READ: &str = "check that it exists and that this user may read it";

/// The system's word without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_where_and_what_to_do() {
        let error = RecordError::io("create", Path::new("/srv/runs"), "give another with --dir")(
            io::Error::from_raw_os_error(13),
        );
        assert_eq!(
            error.to_string(),
            "cannot create /srv/runs: Permission denied; give another with --dir"
        );
    }
}
