//! Notes on what a job does while it isn't training: `starting`, `preparing`, `checkpointing`,
//! `evaluating`, `no-visible-progress`.
//!
//! Owns these notes, each given once it has lasted over a minute. None of them alarms.

use crate::model::Severity;
use crate::read::fingerprint::Kind;

use super::finding::{Book, Claim, Evidence};
use super::view::View;

const STARTING: &str = "starting";
/// The name of the phase in which data are made ready.
pub const PREPARING: &str = "preparing";
const CHECKPOINTING: &str = "checkpointing";
const EVALUATING: &str = "evaluating";
const INVISIBLE: &str = "no-visible-progress";

/// A phase shorter than this isn't worth a word, seconds.
const LASTS_S: f64 = 60.0;
/// Who reads or writes so much for half a minute is busy with it, 10^6 bytes a second.
const MOVES_MB_S: f64 = 10.0;
/// Silence of so many limits is told although the job is active.
const LIMITS: f64 = 4.0;
/// How often the rare questions are asked, in samples.
const EVERY: u64 = 16;

/// The phase before training, and since when.
#[derive(Clone, Copy, Debug)]
struct Phase {
    name: &'static str,
    since_s: f64,
    lasts_s: f64,
}

/// The family.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    before: Option<Phase>,
    gpu_busy: f64,
    percent: u64,
    saves_s: f64,
    gap: Option<&'static str>,
}

impl Phases {
    /// What the job does now, before it trains.
    pub fn before(&self) -> Option<&'static str> {
        self.before.map(|phase| phase.name)
    }

    /// Takes in one sample.
    pub fn sample(&mut self, v: &View<'_>, book: &mut Book) {
        self.before_training(v, book);
        if v.s.advances.begun {
            self.between_steps(v, book);
        }
    }

    fn before_training(&mut self, v: &View<'_>, book: &mut Book) {
        let s = v.s;
        let busy = f64::from(u8::from(s.gpu_active));
        self.gpu_busy += (busy - self.gpu_busy) * (s.dt / LASTS_S).min(1.0);
        let trains = s.advances.trains || self.gpu_busy > 0.8;
        let now = if trains || s.quiet() > LASTS_S || v.p.main_ended_s.is_some() {
            None
        } else {
            Some(self.kind(v))
        };
        if now.is_none() && self.before.is_none() {
            return;
        }
        let since_s = if s.samples == 1 { 0.0 } else { s.now.elapsed_s };
        self.before = match (self.before, now) {
            (Some(phase), Some(name)) if phase.name == name => Some(Phase {
                lasts_s: phase.lasts_s + s.dt,
                ..phase
            }),
            (before, Some(name)) => {
                if let Some(phase) = before {
                    book.clear(phase.name);
                }
                Some(Phase {
                    name,
                    since_s,
                    lasts_s: 0.0,
                })
            }
            (before, None) => {
                if let Some(phase) = before {
                    book.clear(phase.name);
                }
                None
            }
        };
        if let Some(phase) = self.before.filter(|p| p.lasts_s > LASTS_S) {
            say_before(phase, v, book);
        }
    }

    fn kind(&mut self, v: &View<'_>) -> &'static str {
        let s = v.s;
        if s.advanced {
            self.percent = 60;
        }
        self.percent = self.percent.saturating_sub(1);
        let prepares = s.io_mean > MOVES_MB_S || self.percent > 0 || v.story.told(Kind::Shuffle);
        if prepares && s.first_held.is_none() || v.story.told(Kind::Shuffle) {
            PREPARING
        } else {
            STARTING
        }
    }

    fn between_steps(&mut self, v: &View<'_>, book: &mut Book) {
        let s = v.s;
        if s.advanced {
            if let Some(name) = self.gap.take() {
                book.clear(name);
            }
            book.clear(INVISIBLE);
            self.saves_s = 0.0;
            return;
        }
        let age = s.progress_age();
        let writes = s.io_mb_s.is_some_and(|mb| mb > 1.0);
        let saves = writes && s.write_mean > MOVES_MB_S && !s.gpu_active;
        self.saves_s = if saves { self.saves_s + s.dt } else { 0.0 };
        if age < LASTS_S || !s.samples.is_multiple_of(EVERY) || v.may_be_silent() {
            return;
        }
        let limit = s.steps.limit();
        let name = if self.saves_s > LASTS_S {
            CHECKPOINTING
        } else {
            EVALUATING
        };
        let works = s.gpu_active || s.cores.is_some_and(|c| c >= 1.0);
        // Within its usual gap a job that prints rarely is simply training.
        let unusual = s.steps.gaps() >= 8 && age > LIMITS * limit.median;
        if self.gap.is_none() && (self.saves_s > LASTS_S || works && unusual && s.quiet() < 5.0) {
            self.gap = Some(name);
            let claim = Claim::new(name, Severity::Note, s.progressed.elapsed_s).evidence(
                Evidence::new()
                    .num("step", s.step)
                    .num("age_s", age)
                    .num("write_mb_s", s.write_mean),
            );
            book.raise(claim);
        }
        if age > LIMITS * limit.careful && s.quiet() < LASTS_S && !book.holds(INVISIBLE) {
            let claim = Claim::new(INVISIBLE, Severity::Note, s.progressed.elapsed_s)
                .evidence(Evidence::new().num("step", s.step).num("age_s", age))
                .advice("The job is active and shows no progress for much longer than usual: look whether it prints at all.");
            book.raise(claim);
        }
    }
}

fn say_before(phase: Phase, v: &View<'_>, book: &mut Book) {
    if book.holds(phase.name) {
        return;
    }
    let advice = if phase.name == PREPARING {
        "Data is loaded, tokenised or shuffled before training begins; a cache on local disk makes the next start shorter."
    } else {
        "The program imports, loads or compiles; a compilation cache (jax_compilation_cache_dir, TORCHINDUCTOR_CACHE_DIR) makes the next start shorter."
    };
    let claim = Claim::new(phase.name, Severity::Note, phase.since_s)
        .evidence(
            Evidence::new()
                .num("cpu_cores", v.s.cores)
                .num("io_mb_s", v.s.io_mean),
        )
        .advice(advice);
    book.raise(claim);
}
