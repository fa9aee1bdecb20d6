//! Where the job stands still: stacks, wait channels, what is open, as a bundle and as a few lines.
//!
//! Owns what is looked at, in which order and for how long. It looks and changes nothing: no
//! process is stopped or signalled. That goes for `faulthandler`, too: whether a signal that a
//! program catches is its, or would end a job of Slurm's, can't be seen from outside.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::model::{OwnProcesses, Stamp};

use super::bundle::text;
use super::descriptors::Open;
use super::digest::digest;
use super::proc_files::Identity;
pub use super::proc_files::Subject;
use super::pyspy;
use super::recorder;
use super::seen::Seen;

/// An answer is there after this long, and a little: an alarm waits at most 5 s for it.
pub const WITHIN: Duration = Duration::from_secs(4);
/// Of that for what is open: stacks say more.
const OPEN_WITHIN: Duration = Duration::from_secs(1);
/// py-spys at a time: the job may need its cores.
const AT_ONCE: usize = 2;
/// Processes of which anything is said: a job has its loaders, seldom more.
pub const PROCESSES: usize = 256;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// When, for the file's name and head.
    pub at: Stamp,
    /// What it is asked for: a finding's name.
    pub about: String,
    /// The job's processes, the main one first, then those that hold GPU memory.
    pub subjects: Vec<Subject>,
    /// What the GPUs do, a line each.
    pub gpus: Vec<String>,
    /// The last lines that the job printed, cleaned of control characters.
    pub last_lines: Vec<String>,
    /// How files begin in which collectives are recorded, in folders of ours.
    pub dumps: Vec<PathBuf>,
    /// Whether a file system of this type (`nfs4`) reaches over a network.
    pub is_network: fn(&[u8]) -> bool,
    /// `/proc`; tests give another.
    pub proc_root: PathBuf,
}

impl Request {
    /// About the processes of the job on this machine, and nothing else.
    pub fn new(at: Stamp, about: &str, subjects: Vec<Subject>) -> Self {
        Self {
            at,
            about: about.to_owned(),
            subjects,
            gpus: Vec::new(),
            last_lines: Vec::new(),
            dumps: Vec::new(),
            is_network: |_| false,
            proc_root: "/proc".into(),
        }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Names and contents, for the run's `evidence` folder: `stacks-612.txt` is the whole in
    /// words, after it come copies of other files.
    pub files: Vec<(String, Vec<u8>)>,
    /// At most five lines for an alert: the rank that differs, the function in which each
    /// Python process sits, then what the others wait for.
    pub digest: Vec<String>,
}

/// Collects on a thread of its own, and hands the answer over there.
///
/// A process that hangs in the kernel may make the thread hang with it; then there is no answer,
/// and nothing else is held up.
///
/// # Errors
/// No thread can be had.
pub fn start(
    request: Request,
    own: OwnProcesses,
    deliver: impl FnOnce(Evidence) + Send + 'static,
) -> std::io::Result<()> {
    thread::Builder::new()
        .name("stacks".to_owned())
        .spawn(move || deliver(collect(&request, &own)))
        .map(drop)
}

/// Collects within [`WITHIN`].
pub fn collect(request: &Request, own: &OwnProcesses) -> Evidence {
    let begun = Instant::now();
    let mut seen: Vec<Seen> = request
        .subjects
        .iter()
        .take(PROCESSES)
        .filter_map(|subject| Seen::look(&request.proc_root, *subject))
        .collect();
    let pids: Vec<u32> = seen.iter().map(|one| one.pid).collect();
    let open = Open::look(&request.proc_root, &pids, begun + OPEN_WITHIN);
    let path = std::env::var_os("PATH");
    ask(
        &mut seen,
        begun + WITHIN,
        |identity| pyspy::find(&identity.tools, path.as_deref()),
        own,
    );
    let theirs: BTreeSet<PathBuf> = seen
        .iter()
        .filter_map(|one| one.identity.dumps.clone())
        .collect();
    let dumps = recorder::look(&request.dumps, &theirs, SystemTime::now());
    let stem = format!("stacks-{:.0}", request.at.elapsed_s);
    let whole = text(request, &seen, &open, &dumps.lines).into_bytes();
    let mut files = vec![(format!("{stem}.txt"), whole)];
    let copies = dumps.copies.into_iter();
    files.extend(copies.map(|(name, bytes)| (format!("{stem}-{name}"), bytes)));
    Evidence {
        files,
        digest: digest(&seen),
    }
}

/// Asks py-spy about Python processes, a few at a time: ranks, then the main one, then others.
fn ask(
    seen: &mut [Seen],
    deadline: Instant,
    find: impl Fn(&Identity) -> Option<PathBuf>,
    own: &OwnProcesses,
) {
    let mut questions = Vec::new();
    for one in seen.iter_mut().filter(|s| s.identity.python) {
        if matches!(one.standing.state, 'Z' | 'D') {
            continue; // no memory, or none that can be read without waiting
        }
        match find(&one.identity) {
            Some(program) => questions.push((program, one)),
            None => one.dump = Some(Err(INSTALL.to_owned())),
        }
    }
    questions.sort_by_key(|(_, one)| one.rank.is_none());
    let questions = Mutex::new(questions.into_iter());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = questions
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .next();
                    let Some((program, one)) = next else { break };
                    let left = deadline.saturating_duration_since(Instant::now());
                    one.dump = Some(if left.is_zero() {
                        Err("no time was left to ask py-spy".to_owned())
                    } else {
                        pyspy::dump(&program, one.pid, left, own)
                    });
                }
            });
        }
    });
}

const INSTALL: &str =
    "no Python stack: install py-spy in the job's environment ('pip install py-spy')";

/// Names of functions and files come from the job: nothing in them may drive a terminal.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() && c != '\n' { '?' } else { c })
        .collect()
}

#[cfg(test)]
#[path = "stacks_tests.rs"]
mod tests;
