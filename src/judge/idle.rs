//! `idle-holding`, and the notes of jobs that may be idle: `idle-interactive`, `idle-serving`.
//!
//! Owns memory that is held without use. The literal rule (`below`, `for`) knows no exemption
//! but a stopped job and one that waits for input, which `signals` leaves out of time.

use crate::model::{Limit, Severity};

use super::finding::{Book, Claim, Evidence};
use super::leftovers::ORPHANS;
use super::mean::Mean;
use super::view::View;

/// The finding's name.
pub const IDLE: &str = "idle-holding";
const INTERACTIVE: &str = "idle-interactive";
const SERVING: &str = "idle-serving";

/// How long memory is held without activity before it is said, seconds.
const AFTER_S: f64 = 600.0;
/// Below so much use, percent, where the literal rule was asked for without saying.
const BELOW_PCT: f64 = 20.0;
/// A notebook is told about at most once in so many seconds.
const NOTE_EVERY_S: f64 = 3600.0;
/// The family.
#[derive(Clone, Debug)]
pub struct Idle {
    after: f64,
    /// Threshold and window of the literal rule.
    literal: Option<(f64, f64)>,
    window: Mean,
    active: u32,
    noted_s: Option<f64>,
}

impl Idle {
    /// With the settings in this book.
    pub fn new(book: &Book) -> Self {
        let settings = book.settings(IDLE);
        let after = match settings.after {
            Limit::Auto => AFTER_S,
            Limit::After(d) => d.as_secs_f64(),
        };
        let literal = settings.below.is_some() || settings.lasting.is_some();
        let window = settings.lasting.map_or(after, |d| d.as_secs_f64());
        Self {
            after,
            literal: literal.then(|| (settings.below.unwrap_or(BELOW_PCT), window)),
            window: Mean::default(),
            active: 0,
            noted_s: None,
        }
    }

    /// Takes in one sample. `stall_given`: a limit for stalls was given, which then holds for
    /// jobs without progress as well.
    pub fn sample(&mut self, v: &View<'_>, stall_given: bool, book: &mut Book) {
        self.active = if v.s.active { self.active + 1 } else { 0 };
        match self.literal {
            Some((below, length)) => self.literal(below, length, v, book),
            None => self.adaptive(v, stall_given, book),
        }
        self.notes(v, book);
    }

    fn literal(&mut self, below: f64, length: f64, v: &View<'_>, book: &mut Book) {
        if v.s.held != Some(true) {
            if v.s.held == Some(false) {
                self.window = Mean::default();
                book.clear(IDLE);
            }
            return;
        }
        let holders = v.s.gpus.iter().filter(|g| g.held == Some(true));
        let uses: Vec<f64> = holders.filter_map(|g| g.use_pct).collect();
        let mean = (!uses.is_empty()).then(|| uses.iter().sum::<f64>() / uses.len() as f64);
        self.window.push(v.s.dt, mean, length);
        match self.window.mean(length) {
            Some(mean) if mean < below => {
                let since = v.s.now.elapsed_s - length;
                raise(v, since, Some(mean), book);
            }
            Some(_) => book.clear(IDLE),
            None => {}
        }
    }

    fn adaptive(&self, v: &View<'_>, stall_given: bool, book: &mut Book) {
        let s = v.s;
        if s.held == Some(false) || s.advances.begun || self.active >= 3 {
            book.clear(IDLE);
            return;
        }
        let held_for = s.first_held.map_or(0.0, |at| s.now.own_s - at.own_s);
        let due = s.held == Some(true) && s.quiet().min(held_for) >= self.after;
        if due && !stall_given && !s.is_blind() && !v.may_be_silent() {
            raise(v, s.acted.elapsed_s, None, book);
        }
    }

    fn notes(&mut self, v: &View<'_>, book: &mut Book) {
        if self.active >= 3 {
            book.clear(INTERACTIVE);
            book.clear(SERVING);
            return;
        }
        let name = match (v.is_interactive(), v.is_serving()) {
            (true, _) => INTERACTIVE,
            (_, true) => SERVING,
            _ => return,
        };
        let now = v.s.now.elapsed_s;
        let told = self.noted_s.is_some_and(|at| now - at < NOTE_EVERY_S);
        if told || v.s.held != Some(true) || v.s.quiet() < AFTER_S || book.holds(name) {
            return;
        }
        self.noted_s = Some(now);
        let advice = if name == INTERACTIVE {
            "The notebook's kernel holds GPU memory and waits for a cell: shut the kernel down when nobody works with it."
        } else {
            "The server holds GPU memory and no request comes: fine if it is meant to wait."
        };
        let claim = Claim::new(name, Severity::Note, v.s.acted.elapsed_s)
            .evidence(numbers(v, None))
            .advice(advice);
        book.raise(claim);
    }
}

fn raise(v: &View<'_>, since: f64, mean: Option<f64>, book: &mut Book) {
    let explains = ["hardware", ORPHANS].into_iter().find(|n| book.holds(n));
    let because = explains.map(str::to_owned);
    let claim = Claim::new(IDLE, Severity::Warning, since)
        .because(because)
        .evidence(numbers(v, mean))
        .advice("GPU memory is held and not used: end the job if it is done, or look at its stacks (`py-spy dump --pid PID`) if it should be working.");
    book.raise(claim);
}

fn numbers(v: &View<'_>, mean: Option<f64>) -> Evidence {
    Evidence::new()
        .num("job_mem_mib", v.s.held_mib)
        .num("quiet_s", v.s.quiet())
        .num("use_pct", mean)
        .num("cpu_cores", v.s.cores)
}
