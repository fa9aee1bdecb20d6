//! Where the job stands still: stacks, wait channels and states, as a file and as a few lines.
//!
//! Owns what is looked at, in which order and for how long, and both texts. It looks and changes
//! nothing: no process is stopped or signalled.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::model::{OwnProcesses, Stamp};

pub use super::proc_files::Subject;
use super::proc_files::{self, Identity, Standing};
use super::pyspy::{self, Dump};

/// An answer is there after this long, and a little: an alarm waits at most 5 s for it.
pub const WITHIN: Duration = Duration::from_secs(4);
/// Processes whose stacks py-spy is asked for: each question costs up to a second of a core.
const STACKS: usize = 8;
/// py-spys at a time: the job may need its cores.
const AT_ONCE: usize = 2;
/// Processes of which anything is said: a job has its loaders, seldom more.
const PROCESSES: usize = 256;
/// Lines of the digest.
const DIGEST_LINES: usize = 5;
/// Characters of one line of it.
const DIGEST_WIDTH: usize = 160;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// When, for the file's name and head.
    pub at: Stamp,
    /// What it is asked for: a finding's name.
    pub about: String,
    /// The job's processes, the main one first, then those that hold GPU memory.
    pub subjects: Vec<Subject>,
    /// The last lines that the job printed, cleaned of control characters.
    pub last_lines: Vec<String>,
    /// `/proc`; tests give another.
    pub proc_root: PathBuf,
}

impl Request {
    /// About the job on this machine.
    pub fn new(at: Stamp, about: &str, subjects: Vec<Subject>, last_lines: Vec<String>) -> Self {
        Self {
            at,
            about: about.to_owned(),
            subjects,
            last_lines,
            proc_root: "/proc".into(),
        }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// `stacks-612.txt`, for the run's `evidence` folder.
    pub file_name: String,
    /// The whole.
    pub text: Vec<u8>,
    /// At most five lines for an alert: the function in which each Python process sits, then
    /// what the others wait for.
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
    let deadline = Instant::now() + WITHIN;
    let mut seen: Vec<Seen> = request
        .subjects
        .iter()
        .take(PROCESSES)
        .filter_map(|subject| Seen::look(&request.proc_root, *subject))
        .collect();
    let path = std::env::var_os("PATH");
    ask(
        &mut seen,
        deadline,
        |identity| pyspy::find(&identity.tools, path.as_deref()),
        own,
    );
    Evidence {
        file_name: format!("stacks-{:.0}.txt", request.at.elapsed_s),
        text: text(request, &seen).into_bytes(),
        digest: digest(&seen),
    }
}

/// One process.
struct Seen {
    pid: u32,
    standing: Standing,
    identity: Identity,
    /// Its Python stack, or why there is none; `None` where none was asked for.
    dump: Option<Result<Dump, String>>,
}

impl Seen {
    fn look(root: &Path, subject: Subject) -> Option<Self> {
        let standing = proc_files::standing(root, subject)?;
        Some(Self {
            pid: subject.pid,
            identity: proc_files::identity(root, subject, &standing),
            standing,
            dump: None,
        })
    }

    /// `waits in futex_wait_queue`, `state D, waits in ...`
    fn waits(&self) -> String {
        let state = match self.standing.state {
            'R' => "runs",
            'D' => "waits for a device (D)",
            'T' | 't' => "is stopped",
            'Z' => "has ended (zombie)",
            _ => "sleeps",
        };
        let place = [&self.standing.syscall, &self.standing.wchan];
        let place: Vec<&str> = place.into_iter().flatten().map(String::as_str).collect();
        if place.is_empty() {
            state.to_owned()
        } else {
            format!("{state} in {}", place.join(", "))
        }
    }
}

/// Asks py-spy about the first Python processes, a few at a time.
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
        if questions.len() == STACKS {
            break;
        }
        match find(&one.identity) {
            Some(program) => questions.push((program, one)),
            None => one.dump = Some(Err(INSTALL.to_owned())),
        }
    }
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

fn text(request: &Request, seen: &[Seen]) -> String {
    let mut out = format!(
        "Where the job stood at {}, {:.1} s into the run ({}).\n",
        request.at.time, request.at.elapsed_s, request.about
    );
    let mut line = |text: &str| {
        out.push_str(&clean(text));
        out.push('\n');
    };
    for one in seen {
        let threads = one.standing.threads;
        let threads = threads.map_or_else(String::new, |n| format!(", {n} threads"));
        line("");
        line(&format!(
            "== {} {}{threads}: {}",
            one.pid,
            one.standing.name,
            one.waits()
        ));
        match &one.dump {
            Some(Ok(dump)) => dump.text.lines().for_each(&mut line),
            Some(Err(why)) => line(why),
            None => {}
        }
        if let Some(stack) = &one.standing.stack {
            line("kernel stack:");
            stack.lines().for_each(&mut line);
        }
    }
    let left_out = request.subjects.len().saturating_sub(PROCESSES);
    if left_out > 0 {
        line(&format!("\n{left_out} more processes were not looked at"));
    }
    if !request.last_lines.is_empty() {
        line("");
        line("== the last lines of output");
        request.last_lines.iter().for_each(|text| line(text));
    }
    out
}

/// Processes that stand at the same place share a line; Python's first.
fn digest(seen: &[Seen]) -> Vec<String> {
    let mut groups: Vec<(bool, String, Vec<u32>)> = Vec::new();
    let mut place_of: BTreeMap<(bool, String), usize> = BTreeMap::new();
    let mut missing = None;
    for one in seen.iter().filter(|s| s.standing.state != 'Z') {
        if let Some(Err(why)) = &one.dump {
            missing.get_or_insert(why);
        }
        let stack = one.dump.as_ref().and_then(|dump| dump.as_ref().ok());
        let words = match stack.and_then(sits) {
            Some(place) => format!("{}: {place}", one.standing.name),
            None => format!("{}: {}", one.standing.name, one.waits()),
        };
        let key = (stack.is_some(), words);
        let place = *place_of.entry(key.clone()).or_insert_with(|| {
            groups.push((key.0, key.1, Vec::new()));
            groups.len() - 1
        });
        if let Some((_, _, pids)) = groups.get_mut(place) {
            pids.push(one.pid);
        }
    }
    groups.sort_by_key(|(has_stack, ..)| !has_stack);
    let room = DIGEST_LINES - usize::from(missing.is_some());
    let mut lines: Vec<String> = groups
        .iter()
        .map(|(_, words, pids)| shorten(&format!("{} {words}", who(pids))))
        .collect();
    if lines.len() > room {
        let rest = lines.len() - (room - 1);
        lines.truncate(room - 1);
        lines.push(format!("and {rest} more places; see the run's evidence"));
    }
    lines.extend(missing.map(|why| shorten(why)));
    lines
}

/// The innermost frame, and the user's own function that led there.
fn sits(dump: &Dump) -> Option<String> {
    let innermost = dump.main.first()?;
    let own = dump.main.iter().find(|frame| frame.is_users_own());
    Some(match own {
        Some(own) if own != innermost => format!("{} in {}", own.text(), innermost.text()),
        _ => innermost.text(),
    })
}

/// `4242`, or `4 processes (4242, ...)`
fn who(pids: &[u32]) -> String {
    match pids {
        [one] => one.to_string(),
        [first, ..] => format!("{} processes ({first}, ...)", pids.len()),
        [] => String::new(),
    }
}

fn shorten(text: &str) -> String {
    let text = clean(text);
    if text.chars().count() <= DIGEST_WIDTH {
        return text;
    }
    let mut kept: String = text.chars().take(DIGEST_WIDTH - 3).collect();
    let _ = write!(kept, "...");
    kept
}

/// Names of functions and files come from the job: nothing in them may drive a terminal.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() && c != '\n' { '?' } else { c })
        .collect()
}

#[cfg(test)]
#[path = "stacks_tests.rs"]
mod tests;
