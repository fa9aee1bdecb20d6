//! What the run's time was spent on.
//!
//! Owns the rules by which each stretch between two advances of progress is put down to
//! training, evaluating, saving or a stall: a long one is judged when it is over, as a whole.
//! Claims nothing.

use serde_json::Value;

use crate::model::TimeSpent;

use super::finding::Book;
use super::phases::{PREPARING, Phases};
use super::stalled::STALLED;
use super::starved::STARVED;
use super::view::View;
use super::waiting::{SUSPENDED, WAITING};

/// A gap of so many medians isn't a step.
const LONG_MEDIANS: f64 = 4.0;
/// A shorter gap isn't looked at, own seconds.
const SHORT_S: f64 = 3.0;
/// Who works for half of a gap evaluates; who writes for a third of it saves.
const WORKS: f64 = 0.5;
const WRITES: f64 = 0.33;
/// What is written at this rate isn't a log, 10^6 bytes a second.
const SAVES_MB_S: f64 = 5.0;

/// The time since the last advance, in seconds, by what was seen in it.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    all: f64,
    starved: f64,
    works: f64,
    writes: f64,
}

/// The sums.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    spent: TimeSpent,
    gap: Gap,
    stalled: bool,
    starved: bool,
}

impl Shares {
    /// The same sums, of which another attempt goes on.
    pub fn of_another_attempt(&self) -> Self {
        Self {
            spent: self.spent,
            ..Self::default()
        }
    }

    /// Takes in one sample, after all findings. `passed_s`: seconds since the one before.
    pub fn sample(
        &mut self,
        passed_s: f64,
        written: f64,
        phases: &Phases,
        v: &View<'_>,
        book: &Book,
    ) {
        let s = v.s;
        if book.holds(SUSPENDED) || book.holds(WAITING) {
            self.spent.waiting_s += passed_s;
            return;
        }
        if v.p.main_ended_s.is_some() {
            self.spent.other_s += passed_s;
            return;
        }
        if !s.advances.begun {
            return self.before_progress(passed_s, phases, book);
        }
        if s.advanced {
            self.close(v);
        }
        let works = s.gpu_active || s.cores.is_some_and(|cores| cores >= 0.9);
        let gap = &mut self.gap;
        gap.all += passed_s;
        gap.works += if works { passed_s } else { 0.0 };
        let writes = written > SAVES_MB_S && !s.gpu_active;
        gap.writes += if writes { passed_s } else { 0.0 };
        if book.holds(STARVED) {
            let loads = s.gpus.iter().filter_map(|g| g.load_pct);
            let (sum, n) = loads.fold((0.0, 0_u32), |(sum, n), x| (sum + x, n + 1));
            let idle = if n > 0 {
                1.0 - sum / f64::from(n) / 100.0
            } else {
                0.0
            };
            gap.starved += passed_s * idle.clamp(0.0, 1.0);
        }
        self.stalled |= book.holds(STALLED);
        self.was_starved(v, book);
    }

    /// Data were waited for before it was said.
    fn was_starved(&mut self, v: &View<'_>, book: &Book) {
        let open = book.open(STARVED);
        if let Some(found) = open.filter(|_| !self.starved) {
            let load = found.evidence.get("gpu_util_pct").and_then(Value::as_f64);
            let since_s = v.s.now.elapsed_s - found.since_s;
            let waited = since_s * (1.0 - load.unwrap_or(100.0) / 100.0);
            let waited = waited.clamp(0.0, self.spent.training_s);
            self.spent.training_s -= waited;
            self.spent.waiting_for_data_s += waited;
        }
        self.starved = open.is_some();
    }

    /// What was spent so far.
    pub fn spent(&self, v: &View<'_>) -> TimeSpent {
        let mut whole = self.clone();
        whole.close(v);
        whole.spent
    }

    fn before_progress(&mut self, passed_s: f64, phases: &Phases, book: &Book) {
        if book.holds(STALLED) {
            self.spent.stalled_s += passed_s;
            return;
        }
        match phases.before() {
            Some(PREPARING) => self.spent.preparing_s += passed_s,
            Some(_) => self.spent.starting_s += passed_s,
            None => self.spent.other_s += passed_s,
        }
    }

    /// The gap is over: what it was.
    fn close(&mut self, v: &View<'_>) {
        let gap = std::mem::take(&mut self.gap);
        let spent = &mut self.spent;
        let steps = &v.s.steps;
        let long = steps.gaps() >= 8 && gap.all > SHORT_S.max(LONG_MEDIANS * steps.median());
        if std::mem::take(&mut self.stalled) {
            spent.stalled_s += gap.all;
        } else if !long {
            spent.waiting_for_data_s += gap.starved;
            spent.training_s += gap.all - gap.starved;
        } else if gap.writes > WRITES * gap.all {
            spent.checkpointing_s += gap.all;
        } else if gap.works > WORKS * gap.all {
            spent.evaluating_s += gap.all;
        } else {
            spent.other_s += gap.all;
        }
    }
}
