//! `nan`: the loss is no number any more.
//!
//! Owns counting: once is normal with a gradient scaler, three times running isn't.

use crate::model::{Event, Logged, Metric, ProgressState, Severity};

use crate::read::fingerprint::Kind;

use super::finding::{Book, Claim, Evidence};
use super::view::View;

/// The finding's name.
pub const NAN: &str = "nan";
/// So many times running it means something.
const TIMES: u32 = 3;

/// A run of equal looks.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    bad: u32,
    good: u32,
    since: f64,
}

impl Row {
    fn push(&mut self, loss: f64, at: f64) {
        if loss.is_finite() {
            self.good += 1;
            self.bad = 0;
        } else {
            if self.bad == 0 {
                self.since = at;
            }
            self.bad += 1;
            self.good = 0;
        }
    }
}

/// The family.
#[derive(Clone, Debug, Default)]
pub struct Loss {
    sampled: Row,
    told: Row,
}

impl Loss {
    /// Takes in an event: ends of epochs count as well, a short run has few samples. `kind` is
    /// what its line says: a program that gives up for its loss needs no counting.
    pub fn event(&mut self, logged: &Logged, kind: Option<Kind>, book: &mut Book) {
        if kind == Some(Kind::LossNan) {
            book.raise(claim(logged.stamp.elapsed_s, Evidence::new()));
        }
        if let Event::Progress {
            loss: Some(Metric(loss)),
            epoch,
            step,
            ..
        } = &logged.event
        {
            self.told.push(*loss, logged.stamp.elapsed_s);
            let step = step.map(|s| s as f64);
            judge(self.told, *loss, step, *epoch, book);
        }
    }

    /// Takes in one sample.
    pub fn sample(&mut self, progress: &ProgressState, v: &View<'_>, book: &mut Book) {
        let Some(Metric(loss)) = progress.loss else {
            return;
        };
        // Without a counter beside it, new output shows that it was computed again.
        let shown_anew = !v.s.advances.begun && v.s.printed == v.s.now;
        if v.s.advanced || shown_anew {
            self.sampled.push(loss, v.s.now.elapsed_s);
            judge(self.sampled, loss, v.s.step, v.s.epoch, book);
        }
    }
}

fn judge(row: Row, loss: f64, step: Option<f64>, epoch: Option<f64>, book: &mut Book) {
    if row.good >= TIMES {
        book.clear(NAN);
    }
    if row.bad < TIMES {
        return;
    }
    let word = if loss.is_nan() { "nan" } else { "inf" };
    let evidence = Evidence::new()
        .text("loss", word.to_owned())
        .num("times", f64::from(row.bad))
        .num("step", step)
        .num("epoch", epoch);
    book.raise(claim(row.since, evidence));
}

fn claim(since_s: f64, evidence: Evidence) -> Claim {
    Claim::new(NAN, Severity::Critical, since_s)
        .evidence(evidence)
        .advice("The loss is no number: a lower learning rate, gradient clipping, bf16 instead of fp16; torch.autograd.set_detect_anomaly or tf.debugging.enable_check_numerics finds where.")
}
