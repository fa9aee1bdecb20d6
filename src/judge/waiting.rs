//! `suspended` and `waiting-for-input`: it isn't the job's turn.
//!
//! Owns these two notes; while they hold, no time passes for the other findings.

use crate::model::{Sample, Severity};

use super::finding::{Book, Claim, Evidence};
use super::processes::Processes;
use super::story::Story;
use super::view::View;

/// The names of the findings.
pub const SUSPENDED: &str = "suspended";
/// As above.
pub const WAITING: &str = "waiting-for-input";

/// A stop shorter than this isn't worth a word, seconds.
const STOPPED_S: f64 = 3.0;
/// A job that asks is quiet; so long before it is said, seconds.
const ASKING_S: f64 = 5.0;
/// A stopped job takes less than this, cores: where it takes more, some process isn't known.
const STOPPED_CORES: f64 = 0.1;
/// The bytes of a prompt are counted this long after it, seconds.
const SETTLED_S: f64 = 3.0;

/// Both.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    stopped_since: Option<f64>,
    asked_since: Option<f64>,
    /// Bytes printed when the prompt was first seen standing.
    prompt_bytes: Option<u64>,
    active: u32,
}

impl Waiting {
    /// Whether the job is stopped at this sample.
    pub fn is_stopped(sample: &Sample, p: &Processes) -> bool {
        if let Some((stopped, procs)) = sample.job.n_stopped.get().zip(sample.job.procs.get()) {
            return procs > 0 && stopped >= procs;
        }
        let rests = sample.job.cpu_cores.get().is_none_or(|c| c < STOPPED_CORES);
        rests && p.all_stopped()
    }

    /// Takes in one sample. Returns whether the prompt that stood is gone.
    pub fn sample(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) -> bool {
        self.suspended(sample, v, book);
        self.input(sample, v, book)
    }

    /// Whether the job asks, even if not for long enough to say so: its silence isn't its own.
    pub fn asks(&self) -> bool {
        self.asked_since.is_some()
    }

    fn suspended(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        let now = v.s.now.elapsed_s;
        if !Self::is_stopped(sample, v.p) {
            self.stopped_since = None;
            book.clear(SUSPENDED);
            return;
        }
        let since = *self.stopped_since.get_or_insert(now);
        if now - since >= STOPPED_S {
            let procs = sample.job.procs.get().map(f64::from);
            let claim = Claim::new(SUSPENDED, Severity::Note, since)
                .evidence(Evidence::new().num("procs", procs))
                .advice("Every process of the job is stopped: `fg`, or `kill -CONT` of its process group, lets it go on.");
            book.raise(claim);
        }
    }

    fn input(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) -> bool {
        let gone = self.prompt_gone(sample, v.story);
        let pending = v.story.prompt_s.filter(|_| !gone);
        let reads = v.p.waits_on("terminal");
        self.active = if v.s.active { self.active + 1 } else { 0 };
        if !(reads || pending.is_some()) || self.active >= 3 || v.s.advanced {
            self.asked_since = None;
            book.clear(WAITING);
            return gone;
        }
        let since = pending.unwrap_or(v.s.now.elapsed_s);
        let since = *self.asked_since.get_or_insert(since);
        let quiet = v.s.quiet().min(v.s.progress_age()) >= ASKING_S;
        if quiet && v.s.now.elapsed_s - since >= ASKING_S {
            let by = if reads { "terminal" } else { "prompt" };
            let claim = Claim::new(WAITING, Severity::Note, since)
                .evidence(Evidence::new().text("by", by.to_owned()))
                .advice("The job asks and waits for an answer: type it at the job's terminal.");
            book.raise(claim);
        }
        gone
    }

    /// Whether anything was printed after the prompt. The count of bytes may be a sample late.
    fn prompt_gone(&mut self, sample: &Sample, story: &Story) -> bool {
        let Some(prompt_s) = story.prompt_s else {
            self.prompt_bytes = None;
            return false;
        };
        if sample.stamp.elapsed_s < prompt_s + SETTLED_S {
            self.prompt_bytes = Some(sample.out_bytes);
        }
        let at = *self.prompt_bytes.get_or_insert(sample.out_bytes);
        let gone = sample.out_bytes != at;
        if gone {
            self.prompt_bytes = None;
        }
        gone
    }
}
