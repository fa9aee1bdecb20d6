//! `slow-step` and `behind`: slower than before, too late for a deadline.
//!
//! Owns the run's own established pace and the deadline that a person gave.

use std::collections::VecDeque;

use crate::model::{Limit, Sample, Severity};

use super::finding::{Book, Claim, Evidence};
use super::view::View;

/// The names of the findings.
pub const SLOW: &str = "slow-step";
/// As above.
pub const BEHIND: &str = "behind";

/// One pace is measured over so many own seconds, and so many advances.
const BLOCK_S: f64 = 60.0;
const BLOCK_STEPS: u32 = 5;
/// The first block is a warm-up; the pace of so many after it is the established one.
const ESTABLISHED: usize = 10;
/// The pace of now is that of the last blocks, so long at the least, own seconds.
const NOW_S: f64 = 600.0;
/// Slow below this share of the established pace, no longer so above that.
const SLOW_SHARE: f64 = 0.7;
const AGAIN_SHARE: f64 = 0.8;
/// Gaps of so many medians are evaluations and the like, no steps.
const LONG_MEDIANS: f64 = 4.0;
/// An ETA is believed after so long, and a lateness when it has lasted as long, own seconds.
const SURE_S: f64 = 300.0;
/// It is over when the ETA is so far before the deadline, as a share of it.
const IN_TIME: f64 = 0.98;

/// A counter that counts steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Step,
    Percent,
    Epoch,
}

impl Unit {
    fn word(self) -> &'static str {
        match self {
            Self::Step => "steps",
            Self::Percent => "percent",
            Self::Epoch => "epochs",
        }
    }
}

/// Both.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    last: Option<(Unit, f64)>,
    block_s: f64,
    block_done: f64,
    block_n: u32,
    blocks: u64,
    first: Vec<f64>,
    /// Paces (units a second) and how long each was measured.
    recent: VecDeque<(f64, f64)>,
    late_s: f64,
}

impl Pace {
    /// Takes in one sample.
    pub fn sample(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        self.behind(sample, v, book);
        let Some(gap) = v.s.gap else { return };
        let p = &sample.progress;
        let now = p
            .step
            .map(|step| (Unit::Step, step as f64))
            .or(p.percent.map(|pct| (Unit::Percent, pct)))
            .or(p.epoch.map(|epoch| (Unit::Epoch, epoch)));
        let before = std::mem::replace(&mut self.last, now);
        let (Some((unit, at)), Some((was, from))) = (now, before) else {
            return;
        };
        if unit != was {
            // What is counted changed: a pace in other units can't be compared.
            *self = Self {
                last: now,
                late_s: self.late_s,
                ..Self::default()
            };
            book.clear(SLOW);
            return;
        }
        let long = v.s.steps.gaps() >= 8 && gap > LONG_MEDIANS * v.s.steps.median();
        if !v.s.advances.trains || at <= from || long {
            return;
        }
        self.block_s += gap;
        self.block_done += at - from;
        self.block_n += 1;
        if self.block_s >= BLOCK_S && self.block_n >= BLOCK_STEPS {
            self.close_block();
            self.compare(v, book);
        }
    }

    fn close_block(&mut self) {
        let pace = self.block_done / self.block_s;
        self.blocks += 1;
        if self.blocks > 1 {
            if self.first.len() < ESTABLISHED {
                self.first.push(pace);
            }
            self.recent.push_back((pace, self.block_s));
            let enough = |all: &VecDeque<(f64, f64)>| {
                all.iter().skip(1).map(|b| b.1).sum::<f64>() >= NOW_S && all.len() > 5
            };
            while enough(&self.recent) {
                self.recent.pop_front();
            }
        }
        (self.block_s, self.block_done, self.block_n) = (0.0, 0.0, 0);
    }

    fn compare(&self, v: &View<'_>, book: &mut Book) {
        let lasts: f64 = self.recent.iter().map(|b| b.1).sum();
        if self.first.len() < ESTABLISHED || lasts < NOW_S {
            return;
        }
        let usual = middle(self.first.iter().copied());
        let now = middle(self.recent.iter().map(|b| b.0));
        let evidence = || {
            Evidence::new()
                .num("rate_pct", 100.0 * now / usual)
                .num("per_hour", 3600.0 * now)
                .num("usual_per_hour", 3600.0 * usual)
                .text("of", self.last.map(|(unit, _)| unit.word().to_owned()))
        };
        if now < SLOW_SHARE * usual {
            let because = ["throttled", "data-starved", "imbalanced", "memory-leak"]
                .into_iter()
                .find(|name| book.holds(name))
                .map(str::to_owned);
            let claim = Claim::new(SLOW, Severity::Note, v.s.now.elapsed_s - lasts)
                .because(because)
                .evidence(evidence())
                .advice("Steps take longer than they did in this run: look at what changed (clocks and temperature, another job on the machine, longer sequences, a growing log or replay buffer).");
            book.raise(claim);
        } else if now > AGAIN_SHARE * usual && book.holds(SLOW) {
            book.conclude(SLOW, evidence());
        }
    }

    fn behind(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        let Limit::After(deadline) = book.settings(BEHIND).after else {
            return;
        };
        let Some(eta) = sample.progress.eta_s.filter(|_| !v.s.frozen) else {
            return;
        };
        let deadline = deadline.as_secs_f64();
        let end = v.s.now.elapsed_s + eta;
        if v.s.now.own_s < SURE_S.min(0.1 * deadline) {
            return;
        }
        let sure = SURE_S.min(0.05 * deadline);
        self.late_s = if end > deadline {
            (self.late_s + v.s.dt).min(sure)
        } else if end < IN_TIME * deadline {
            (self.late_s - v.s.dt).max(0.0)
        } else {
            self.late_s
        };
        let evidence = || {
            Evidence::new()
                .num("eta_s", eta)
                .num("deadline_s", deadline)
                .num("late_s", (end - deadline).max(0.0))
                .num("overall_pct", sample.progress.overall_pct)
        };
        if self.late_s >= sure && end > deadline {
            let claim = Claim::new(BEHIND, Severity::Warning, v.s.now.elapsed_s - sure)
                .evidence(evidence())
                .advice("At this pace the run ends after its deadline: raise the time limit, shorten the run, or make sure that the last checkpoint before it can be resumed.");
            book.raise(claim);
        } else if self.late_s <= 0.0 && book.holds(BEHIND) {
            book.conclude(BEHIND, evidence());
        }
    }
}

/// The lower middle one of some; 0 of none.
fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = values.len().saturating_sub(1) / 2;
    values.get(at).copied().unwrap_or_default()
}
