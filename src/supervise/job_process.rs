//! A process of the job: how it is called before people, which rank it is, and how it alone is
//! signalled.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;

use crate::model::ProcessId;
use crate::observe::{self, JobTree, ProcFs, ProcessState};
use crate::plan::{argv, job_ids};
use crate::sys::signals;

/// So much of a command is shown.
const SHOWN: usize = 60;

/// A leftover's command line as it may be shown, else its short name.
pub fn command_of(left: &observe::Leftover) -> String {
    // Of a process that waits in the kernel nothing more can be asked.
    let line = if left.state == ProcessState::Disk {
        Vec::new()
    } else {
        let mut fs = ProcFs::default();
        let read = fs.read(format_args!("{}/cmdline", left.id.pid));
        read.map(<[u8]>::to_vec).unwrap_or_default()
    };
    let words = line.split(|byte| *byte == 0).filter(|w| !w.is_empty());
    let words: Vec<OsString> = words.map(|w| OsString::from_vec(w.to_vec())).collect();
    let text = argv::recorded(&words).join(" ");
    if text.is_empty() {
        return left.name.clone();
    }
    if text.chars().count() <= SHOWN {
        return text;
    }
    text.chars().take(SHOWN - 3).chain("...".chars()).collect()
}

/// The job of this supervisor. Where that is itself one of several ranks, what it started has a
/// rank's environment and is none.
pub fn tree(fs: ProcFs, supervisor: u32, main: Option<ProcessId>) -> JobTree {
    let tree = JobTree::new(fs, supervisor, BTreeSet::new(), main);
    let ours = job_ids(&|name| std::env::var(name).ok());
    if ours.rank.is_some() {
        tree
    } else {
        tree.tell_ranks(rank_of)
    }
}

/// The rank that an environment (`/proc/PID/environ`) is of.
fn rank_of(environment: &[u8]) -> Option<u32> {
    let set = |name: &str| {
        let mut all = environment.split(|byte| *byte == 0);
        let value = all.find_map(|v| v.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(String::from_utf8_lossy(value).into_owned())
    };
    job_ids(&set).rank
}

/// Sends this process, and nobody who has its PID by now, a signal; false where it is gone.
pub fn signal_exactly(who: ProcessId, signal: i32) -> io::Result<bool> {
    let mut fs = ProcFs::default();
    let mut is_it = || fs.identity(who.pid).is_ok_and(|now| now == who);
    signals::send_if(who.pid, signal, &mut is_it)
}

/// A stopped process doesn't answer a TERM; true where it was continued for that.
pub fn continue_if_stopped(who: ProcessId) -> bool {
    let stopped = ProcFs::default()
        .stat(who.pid)
        .is_ok_and(|(stat, _)| stat.start == who.start && stat.state == b'T');
    stopped && signal_exactly(who, libc::SIGCONT).is_ok_and(|sent| sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_tells_its_rank_in_any_launchers_words() {
        assert_eq!(rank_of(b""), None);
        assert_eq!(rank_of(b"RANKS=3\0HOME=/\0"), None);
        assert_eq!(rank_of(b"HOME=/\0RANK=3\0WORLD_SIZE=8\0"), Some(3));
        assert_eq!(rank_of(b"OMPI_COMM_WORLD_RANK=1\0"), Some(1));
    }
}
