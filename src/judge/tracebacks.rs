//! The tracebacks that a program printed, and the one that ended it.
//!
//! Owns which of them count, and what helps against which exception. A traceback of a thread, a
//! finaliser or a log record ends nothing; one of a launcher tells of others' ends.

use std::collections::BTreeMap;

use crate::model::LineSource;
use crate::read::fingerprint::ranks::label;
use crate::read::fingerprint::{Kind, exception_name};

use super::story::is_consequence;

/// So many are remembered: the first ones, and as many last ones.
const MOST: usize = 32;
/// So many are told apart while they are printed.
const OPEN: usize = 256;

/// One traceback.
#[derive(Clone, Debug)]
pub struct Traceback {
    /// When it began, in seconds of the run.
    pub at_s: f64,
    /// Its place among all lines that were told.
    pub order: u64,
    /// The rank that printed it.
    pub rank: Option<u32>,
    /// Its last line, and what that says; None: not seen.
    pub words: Option<(Kind, String)>,
    /// It ended a thread, a finaliser or a log record.
    aside: bool,
    /// What it was raised for followed from something else.
    follows: bool,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Tracebacks {
    first: Vec<Traceback>,
    last: Vec<Traceback>,
    /// Those whose last line is to come, by who prints them.
    open: BTreeMap<Printer, Traceback>,
    /// What was said of the next one.
    next: BTreeMap<Printer, Next>,
}

type Printer = (LineSource, Option<u32>);

#[derive(Clone, Copy, Debug, Default)]
struct Next {
    aside: bool,
    chained: bool,
    /// What the one before it ended with followed from something else.
    follows: bool,
}

impl Tracebacks {
    /// Takes in a line of this kind.
    pub fn line(&mut self, kind: Kind, text: &str, source: LineSource, at_s: f64, order: u64) {
        let (rank, _) = label(text);
        let printer = (source, rank);
        if self.next.len() >= OPEN && !self.next.contains_key(&printer) {
            return;
        }
        let next = self.next.entry(printer).or_default();
        match kind {
            Kind::Aside => next.aside = true,
            Kind::Chained => next.chained = true,
            Kind::Traceback => {
                let before = std::mem::take(next);
                let new = Traceback {
                    at_s,
                    order,
                    rank,
                    words: None,
                    aside: before.aside,
                    follows: before.chained && before.follows,
                };
                if let Some(unended) = self.open.insert(printer, new) {
                    self.keep(unended);
                }
            }
            _ if exception_name(text).is_some() => {
                if let Some(mut open) = self.open.remove(&printer) {
                    next.follows = is_consequence(kind) || open.follows;
                    open.words = Some((kind, text.to_owned()));
                    self.keep(open);
                }
            }
            _ => {}
        }
    }

    /// The one that ended the program, as far as it was an exception of its own: the last one,
    /// of this rank where that printed any under its label.
    pub fn final_one(&self, rank: Option<u32>) -> Option<&Traceback> {
        let own = || self.all().filter(|t| t.is_own());
        let of_rank = rank.and_then(|rank| own().rfind(|t| t.rank == Some(rank)));
        of_rank
            .or_else(|| match rank {
                // Several ranks, and nobody says which: the first one to print.
                None => {
                    let first = own().find_map(|t| t.rank)?;
                    own().rfind(|t| t.rank == Some(first))
                }
                Some(_) => None,
            })
            .or_else(|| own().rfind(|t| t.rank.is_none()))
            .or_else(|| own().next_back())
    }

    /// The first one that is the program's own.
    pub fn first_own(&self) -> Option<&Traceback> {
        self.all().find(|t| t.is_own())
    }

    /// The number of the signal that the last exception stands for: Ctrl-C, or what torchrun was
    /// told to end with.
    pub fn signal(&self) -> Option<i32> {
        let last = self.all().rfind(|t| t.words.is_some() && !t.aside)?;
        match last.name()? {
            "KeyboardInterrupt" => Some(2),
            "SignalException" => {
                let (_, text) = last.words.as_ref()?;
                text.rsplit("got signal: ").next()?.trim().parse().ok()
            }
            _ => None,
        }
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &Traceback> {
        let kept = self.first.iter().chain(&self.last);
        kept.chain(self.open.values())
    }

    fn keep(&mut self, traceback: Traceback) {
        if self.first.len() < MOST {
            self.first.push(traceback);
            return;
        }
        if self.last.len() == MOST {
            self.last.remove(0);
        }
        self.last.push(traceback);
    }
}

/// Exceptions that tell of somebody else's end.
const LAUNCHERS: [&str; 7] = [
    "ChildFailedError",
    "ProcessRaisedException",
    "ProcessExitedException",
    "SignalException",
    "CalledProcessError",
    "SystemExit",
    "KeyboardInterrupt",
];

impl Traceback {
    /// The exception's name without its package.
    fn name(&self) -> Option<&str> {
        let (_, text) = self.words.as_ref()?;
        exception_name(text)?.rsplit('.').next()
    }

    /// An exception of the program's own that ended it, and isn't known by a better name.
    fn is_own(&self) -> bool {
        let plain = self
            .words
            .as_ref()
            .is_none_or(|(kind, _)| *kind == Kind::Exception);
        let launched = self.name().is_some_and(|name| LAUNCHERS.contains(&name));
        plain && !launched && !self.aside && !self.follows
    }

    /// The cause that its exception stands for, and what helps.
    pub fn meaning(&self) -> (&'static str, &'static str) {
        let text = self.words.as_ref().map_or("", |(_, text)| text.as_str());
        let name = self.name().unwrap_or_default();
        let fits = |(words, ..): &&Hint| words.iter().any(|w| name == *w || text.contains(w));
        let hint = HINTS.iter().find(fits);
        hint.map_or(("traceback", PLAIN), |(_, cause, advice)| (cause, advice))
    }
}

/// Names of exceptions, or words in their last line; the cause; what helps.
type Hint = (&'static [&'static str], &'static str, &'static str);

const PLAIN: &str = "The program ended with an exception: its traceback names the line.";

/// The first that fits.
const HINTS: &[Hint] = &[
    (
        &["MemoryError"],
        "oom",
        "Main memory ran out: a smaller batch, fewer DataLoader workers, or a check of the size that was asked for.",
    ),
    (
        &["Too many open files", "received 0 items of ancdata"],
        "traceback",
        "Too many files are open: a higher limit (`ulimit -n`), fewer DataLoader workers, or torch.multiprocessing.set_sharing_strategy('file_system').",
    ),
    (
        &["inotify"],
        "traceback",
        "The limit of watched files is reached: raise fs.inotify.max_user_watches (`sysctl`), or watch fewer files.",
    ),
    (
        &[".so.", "cannot open shared object file", "undefined symbol"],
        "traceback",
        "A shared library can't be loaded: install the packages in matching versions, and check LD_LIBRARY_PATH.",
    ),
    (
        &["ModuleNotFoundError", "ImportError"],
        "traceback",
        "A module is missing or doesn't fit: install it for the Python that runs the command, or activate the right environment.",
    ),
    (
        &[
            "FileNotFoundError",
            "NotADirectoryError",
            "IsADirectoryError",
        ],
        "traceback",
        "A file isn't where the program looks for it: check the path, the working directory and the mounts.",
    ),
    (
        &["PermissionError"],
        "traceback",
        "The program may not touch this file: check owner and permissions (`ls -l`), and where it writes.",
    ),
    (
        &[
            "ConnectionError",
            "HTTPError",
            "URLError",
            "gaierror",
            "SSLError",
            "ReadTimeout",
            "ConnectTimeout",
            "LocalEntryNotFoundError",
        ],
        "traceback",
        "A server or the network failed: try again, download beforehand, or work offline (HF_HUB_OFFLINE=1, WANDB_MODE=offline).",
    ),
    (
        &[
            "UnpicklingError",
            "PytorchStreamReader failed",
            "JSONDecodeError",
            "BadZipFile",
            "EOFError: Ran out of input",
            "EOFError: Compressed file ended",
        ],
        "traceback",
        "A file is damaged or only half written: take an earlier checkpoint, or download it again.",
    ),
    (
        &["EOFError"],
        "traceback",
        "The program wanted to read more than there was: an answer where nobody types (stdin was at its end), or a file or connection that ended too soon.",
    ),
    (
        &["size mismatch for", "Missing key(s) in state_dict"],
        "traceback",
        "The checkpoint belongs to another model or configuration.",
    ),
    (
        &["Expected all tensors to be on the same device"],
        "traceback",
        "Model and data are on different devices: move both (`.to(device)`).",
    ),
];
