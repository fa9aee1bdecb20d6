//! From single lines to the state of progress, as a person keeps it in mind while reading.
//!
//! Owns how lines are put together: an epoch from one, a step from the next, whose bar is
//! training and whose isn't. Must not know how a line is read.

use crate::model::{Mark, Metric, Phase, ProgressState, Stream};

use super::pace::Pace;
use super::reading::{EpochShown, Reading, StepShown};
use super::shown::{Counting, EpochStyle, Shown};

/// What becomes of a step that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is the training's.
    Take,
    /// It belongs to a look at the result.
    Eval,
    /// Something else that says less than what is known.
    Ignore,
    /// The bar known so far is the outer one: it counts epochs.
    Inner,
}

/// The progress of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracker {
    train: Shown,
    eval: Shown,
    other: Shown,
    style: EpochStyle,
    step_name: String,
    step_is_bar: bool,
    /// Steps count on through all epochs.
    run_wide: bool,
    /// Where the epoch before stopped.
    step_before: Option<(u64, u64)>,
    /// A loop that was complete began again: there are more of them than is known.
    stages: bool,
    /// The program's own output shows where it is, and no log that repeats it.
    told_by_output: bool,
    /// Totals of bars that turned out not to be training.
    eval_totals: Vec<u64>,
    /// Total of an unnamed outer bar that counts epochs.
    outer_total: Option<u64>,
    pace: Pace,
}

impl Tracker {
    pub fn any(&self) -> bool {
        self.train.any()
    }

    /// Takes what a line says; the phase that it changed.
    pub fn apply(&mut self, mut r: Reading, t: Option<f64>) -> Option<Phase> {
        if r.repeated && !self.lacks(&r) {
            return None;
        }
        let bare = r.epoch.is_none() && r.step.is_none() && r.percent.is_none();
        if bare && !(r.phase == Phase::Train && self.train.any()) {
            return None;
        }
        match r.phase {
            Phase::Train => self.apply_train(&mut r, t),
            phase => {
                let shown = self.shown_mut(phase);
                shown.take_plainly(&r);
                Some(phase)
            }
        }
    }

    /// Whether a line that stood there before fills what the turn of an epoch has emptied.
    fn lacks(&self, r: &Reading) -> bool {
        let now = &self.train;
        r.phase == Phase::Train
            && r.epoch.is_none()
            && (r.step.is_some() && now.step.is_none()
                || r.step.is_none() && r.percent.is_some() && now.percent.is_none())
    }

    fn apply_train(&mut self, r: &mut Reading, t: Option<f64>) -> Option<Phase> {
        self.recognise_outer(r);
        if let Some(epoch) = &mut r.epoch {
            // "1.0" is often written as "1" between "0.83" and "1.17".
            let counts = self.style.counting == Counting::Fractional;
            epoch.fractional |= counts && epoch.total.is_none() && !epoch.done;
        }
        if self.is_old_receipt(r) {
            return None;
        }
        let lags = r.epoch.as_ref().is_some_and(|e| !self.epoch_is_news(e, r));
        if lags {
            let total = r.epoch.and_then(|e| e.total);
            self.train.epochs = self.train.epochs.or(total);
            let same = r.epoch.map(|e| e.value) == self.train.epoch;
            r.epoch = None;
            if !same {
                r.step = None;
            }
            r.percent = r.percent.filter(|_| r.step.is_some());
        }
        let turned = r.epoch.is_some_and(|e| self.turns(&e));
        match r.step.as_ref().map(|s| self.judge(s, r, turned)) {
            Some(Verdict::Eval) => {
                self.remember_eval(r.step.as_ref());
                self.eval.take_plainly(r);
                return Some(Phase::Eval);
            }
            Some(Verdict::Ignore) => r.step = None,
            Some(Verdict::Inner) => self.make_outer(),
            Some(Verdict::Take) | None => {}
        }
        if let Some(epoch) = r.epoch {
            self.take_epoch(&epoch, r.step.as_ref(), r.loss.is_some());
        }
        if let Some(step) = r.step.clone() {
            let stands = self.train.step == Some(step.n) && step.total.is_none();
            self.take_step(&step);
            self.train.percent = r.percent.or(self.train.percent.filter(|_| stands));
        } else if r.percent.is_some() && !r.epoch.is_some_and(|e| e.done) {
            self.train.percent = r.percent;
        }
        self.train.take_rest(r);
        let fraction = self.fraction();
        self.pace.notice(t, self.train.step, fraction);
        if turned && self.style.counting == Counting::Running {
            self.pace.epoch_began(t);
        }
        Some(Phase::Train)
    }

    /// A finished bar of an earlier epoch that is only drawn again.
    fn is_old_receipt(&self, r: &Reading) -> bool {
        let earlier = match (r.epoch, self.train.epoch) {
            (Some(e), Some(now)) => !e.done && e.value < now,
            _ => false,
        };
        let complete = r.step.as_ref().is_some_and(|s| s.total == Some(s.n));
        r.redrawn && earlier && complete
    }

    /// An unnamed bar that was found to be the outer one counts finished epochs.
    fn recognise_outer(&self, r: &mut Reading) {
        let Some(step) = &r.step else { return };
        if self.outer_total.is_some() && step.total == self.outer_total && step.name.is_empty() {
            r.epoch = Some(EpochShown {
                value: step.n as f64,
                total: step.total.map(|t| t as f64),
                done: true,
                fractional: false,
            });
            r.step = None;
            r.rate = None;
        }
    }

    fn epoch_is_news(&self, e: &EpochShown, r: &Reading) -> bool {
        let Some(now) = self.train.epoch.filter(|_| !r.is_told) else {
            return true;
        };
        let same = |a: f64, b: f64| (a - b).abs() < 1e-9;
        if e.done && self.style.counting != Counting::Done {
            // "2 of 5 done" beside "epoch 3": nothing new.
            return !same(e.value, now) && !same(e.value + 1.0, now);
        }
        if self.style.counting == Counting::Done && !e.done && e.total.is_none() {
            return !same(e.value, now);
        }
        // A summary of the epoch that just ended, or one counted from 0.
        let result = r.step.is_none() && (r.loss.is_some() || !r.metrics.is_empty());
        let summary = e.total.is_none() && !e.fractional && (self.train.epochs.is_some() || result);
        !(summary && same(now - e.value, 1.0))
    }

    /// Whether the display turns to another epoch.
    fn turns(&self, e: &EpochShown) -> bool {
        match self.train.epoch {
            Some(now) => !e.fractional && (now.floor() - e.value.floor()).abs() > 0.5,
            None => false,
        }
    }

    fn judge(&self, step: &StepShown, r: &Reading, turned: bool) -> Verdict {
        let now = &self.train;
        let (Some(steps), Some(current)) = (now.steps, now.step) else {
            return Verdict::Take;
        };
        if turned || r.is_told {
            return Verdict::Take;
        }
        let Some(total) = step.total else {
            let other = step.name != self.step_name;
            return if other {
                Verdict::Ignore
            } else {
                Verdict::Take
            };
        };
        if total == steps || r.says_train {
            return Verdict::Take;
        }
        if self.eval_totals.contains(&total) {
            return Verdict::Eval;
        }
        let whole_epochs = now.epoch.is_some();
        if whole_epochs && now.nearly_complete() {
            return Verdict::Eval;
        }
        let unnamed =
            step.bar && self.step_is_bar && step.name.is_empty() && self.step_name.is_empty();
        let one_loop = now.epoch.is_none() || (self.style.counting == Counting::Fractional);
        match current {
            0 if unnamed && one_loop => Verdict::Inner,
            // A bar in the middle of another one.
            1.. if unnamed && current < steps => Verdict::Eval,
            _ => Verdict::Take,
        }
    }

    fn remember_eval(&mut self, step: Option<&StepShown>) {
        let total = step.and_then(|s| s.total);
        if let Some(total) = total
            && !self.eval_totals.contains(&total)
            && self.eval_totals.len() < 8
        {
            self.eval_totals.push(total);
        }
    }

    fn make_outer(&mut self) {
        self.outer_total = self.train.steps;
        self.style.counting = Counting::Done;
        self.train.epoch = self.train.step.map(|s| s as f64);
        self.train.epochs = self.train.steps.map(|s| s as f64);
        self.train.step = None;
        self.train.steps = None;
    }

    fn take_epoch(&mut self, e: &EpochShown, step: Option<&StepShown>, result: bool) {
        let turned = self.turns(e);
        if turned {
            self.step_before = self.train.step.zip(self.train.steps);
            let ended = |(step, total): (u64, u64)| total > 1 && step + 1 == total;
            self.style.ends_short = self.step_before.is_some_and(ended);
            if self.train.epoch.is_some_and(|now| e.value < now) {
                self.restart();
            }
            self.train.step = None;
            self.train.steps = None;
            self.train.percent = None;
            self.pace.turn();
        }
        self.style.counting = match (e.done, e.fractional) {
            (true, _) => Counting::Done,
            (_, true) => Counting::Fractional,
            _ => Counting::Running,
        };
        self.style.zero_based |= e.value == 0.0 && !e.done && !e.fractional;
        self.style.closed = step.is_none() && self.train.step.is_none() && result;
        self.train.epoch = Some(e.value);
        self.train.epochs = e.total.or(self.train.epochs);
    }

    fn take_step(&mut self, step: &StepShown) {
        let falls = self.train.step.is_some_and(|now| step.n < now);
        let other = self.train.steps.is_some() && step.total != self.train.steps;
        if self.train.epoch.is_none() && (falls || other) {
            self.restart();
        }
        if falls {
            self.pace.turn();
        }
        let counts_on = match self.step_before {
            // The new epoch doesn't begin at 0: the counter may be the whole run's.
            Some((old, total)) if self.train.step.is_none() => {
                old > 0
                    && old < total
                    && step.n > old
                    && step.total == Some(total)
                    && self.agrees_with_epochs(step.n, total)
            }
            _ => false,
        };
        self.run_wide |= step.whole_run || counts_on;
        self.style.closed = false;
        // A line that names no total goes on with the display that does.
        let goes_on = step.total.is_none()
            && step.name == self.step_name
            && self.train.step.is_some_and(|now| now <= step.n);
        let kept = self.train.steps.filter(|total| goes_on && step.n <= *total);
        self.train.step = Some(step.n);
        self.train.steps = step.total.or(kept);
        self.step_name.clone_from(&step.name);
        self.step_is_bar = step.bar;
    }

    /// Whether a counter of the whole run would stand there in this epoch.
    fn agrees_with_epochs(&self, step: u64, total: u64) -> bool {
        let (Some(epoch), Some(count)) = (self.train.epoch, self.epoch_count()) else {
            return false;
        };
        let first = f64::from(u8::from(!self.style.zero_based));
        let part = step as f64 / total as f64 * count;
        let before = epoch - first;
        // It has just begun, or is at its end.
        part > before - 0.05 && part < before + 1.05
    }

    /// Whether this tells of a place that the program's own output has left behind.
    pub fn is_behind(&self, r: &Reading) -> bool {
        if !self.told_by_output || r.phase != Phase::Train {
            return false;
        }
        let epoch = r.epoch.map(|e| e.value);
        match (epoch, self.train.epoch) {
            (Some(then), Some(now)) if then < now => return true,
            (Some(then), Some(now)) if then > now => return false,
            _ => {}
        }
        let step = r.step.as_ref().map(|s| s.n);
        matches!((step, self.train.step), (Some(then), Some(now)) if then < now)
    }

    /// The program's own output showed a place.
    pub fn tell_by_output(&mut self, r: &Reading) {
        let placed = r.epoch.is_some() || r.step.is_some();
        self.told_by_output |= placed && r.phase == Phase::Train;
    }

    /// The loop began again: what was reached counts no longer.
    fn restart(&mut self) {
        self.stages |= self.pace.reached().is_some_and(|part| part > 0.999);
        self.pace = Pace::default();
        self.run_wide = false;
        self.train.rate = None;
    }

    fn shown(&self, phase: Phase) -> &Shown {
        match phase {
            Phase::Train => &self.train,
            Phase::Eval => &self.eval,
            Phase::Other => &self.other,
        }
    }

    fn shown_mut(&mut self, phase: Phase) -> &mut Shown {
        match phase {
            Phase::Train => &mut self.train,
            Phase::Eval => &mut self.eval,
            Phase::Other => &mut self.other,
        }
    }

    /// How many epochs there are, where the display says.
    fn epoch_count(&self) -> Option<f64> {
        // "Epoch 0/3" most often names the last index; if it names the count, the run
        // reads as less than it did, never as more.
        let more = f64::from(u8::from(self.style.zero_based && !self.style.ends_short));
        self.train.epochs.map(|n| n + more)
    }

    /// The part of the whole run that is done, before it is kept from falling.
    fn fraction(&self) -> Option<f64> {
        let now = &self.train;
        let within = match (now.step, now.steps) {
            (Some(step), Some(steps)) if steps > 0 => Some(step as f64 / steps as f64),
            _ => None,
        };
        let by_step = within.or(now.percent.map(|p| p / 100.0));
        let part = match (now.epoch, self.epoch_count()) {
            (None, _) => by_step,
            (Some(_), _) if self.run_wide => within,
            (Some(epoch), Some(count)) if (self.style.counting == Counting::Fractional) => {
                Some(epoch / count)
            }
            (Some(_), None) if (self.style.counting == Counting::Fractional) => within,
            (Some(_), None) => None,
            (Some(epoch), Some(count)) => {
                let first = if self.style.zero_based || (self.style.counting == Counting::Done) {
                    0.0
                } else {
                    1.0
                };
                let inside = by_step.unwrap_or(f64::from(u8::from(self.style.closed)));
                let all = (self.style.counting == Counting::Done) && epoch >= count;
                Some(if all {
                    1.0
                } else {
                    (epoch - first + inside) / count
                })
            }
        };
        part.filter(|p| p.is_finite()).map(|p| p.clamp(0.0, 1.0))
    }

    /// Steps of the whole run, where both totals are known.
    fn run_steps(&self) -> Option<f64> {
        let steps = self.train.steps? as f64;
        let alone = self.run_wide || self.train.epoch.is_none() || self.train.epochs.is_none();
        if alone {
            Some(steps)
        } else {
            self.epoch_count().map(|n| n * steps)
        }
    }

    /// How many epochs are left, the present one included.
    fn epochs_left(&self) -> Option<f64> {
        let whole = self.style.counting == Counting::Running && !self.run_wide;
        let (epoch, count) = self.train.epoch.filter(|_| whole).zip(self.epoch_count())?;
        // One that was shown with its result is over.
        let ended = f64::from(u8::from(self.style.closed));
        let first = f64::from(u8::from(!self.style.zero_based));
        Some(count - (epoch - first) - ended).filter(|left| *left >= 0.0)
    }

    fn rate(&self) -> Option<f64> {
        self.train.rate.or_else(|| self.pace.rate())
    }

    /// Percent of the whole run, and its remaining seconds.
    fn overall(&self) -> (Option<f64>, Option<f64>) {
        if self.stages || self.fraction().is_none() {
            return (None, None);
        }
        let done = self.pace.reached();
        let eta = self
            .pace
            .remaining(self.rate(), self.run_steps(), self.epochs_left());
        (done.map(|d| rounded(d * 100.0)), eta.map(rounded))
    }

    /// The state of training, as it goes into a sample.
    pub fn state(&self) -> ProgressState {
        let (overall_pct, eta_s) = self.overall();
        let now = &self.train;
        ProgressState {
            epoch: now.epoch,
            epochs: now.epochs,
            step: now.step,
            steps: now.steps,
            percent: now.percent,
            loss: now.loss.map(Metric),
            rate: self.rate().map(significant),
            overall_pct,
            eta_s,
        }
    }

    /// One phase as a mark.
    pub fn mark(&self, phase: Phase, t: Option<f64>, stream: Option<Stream>) -> Mark {
        let now = self.shown(phase);
        let (overall_pct, overall_eta_s) = self.overall();
        let rate = match phase {
            Phase::Train => self.rate(),
            _ => now.rate,
        };
        Mark {
            t,
            stream,
            source: now.source.clone().into_owned(),
            phase,
            rank: now.rank,
            epoch: now.epoch,
            epochs: now.epochs,
            step: now.step,
            steps: now.steps,
            percent: now.percent,
            loss: now.loss.map(Metric),
            metrics: now
                .metrics
                .iter()
                .map(|(n, v)| (n.clone(), Metric(*v)))
                .collect(),
            eta_s: now.eta_s,
            overall_pct,
            overall_eta_s,
            rate: rate.map(significant),
        }
    }
}

/// To a thousandth: nobody reads more, and records stay short.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// To four significant digits.
fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3.0 - value.abs().log10().floor();
    let factor = 10_f64.powf(digits);
    let shown = (value * factor).round() / factor;
    if shown.is_finite() { shown } else { value }
}
