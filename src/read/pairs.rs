//! Two numbers of which one is an epoch and the other a step, though no word says so.
//!
//! Owns the places in which they stand. Must not know what else a line says.

use super::counters::Counter;
use super::grammar::{Parts, unnamed};
use super::reading::{EpochShown, StepShown};
use super::token::Kind;
use super::words::{self, Counts};

impl Parts<'_> {
    /// Two nameless numbers in brackets before a loss, `[0/5][50/1583]` or `[1, 2000]`, are an
    /// epoch and a step.
    pub(super) fn pair(&self) -> Option<(EpochShown, StepShown)> {
        if !self
            .values
            .iter()
            .any(|v| v.name.to_lowercase().contains("loss"))
        {
            return None;
        }
        let epoch = |value, total| EpochShown {
            value,
            total,
            done: false,
            fractional: false,
        };
        if let [a, b, ..] = &self.counters[..]
            && a.counts.is_none()
            && b.counts.is_none()
            && self.begins_at(a.at)
            && b.at == a.end + 2
            && self.bar.is_none()
        {
            let step = StepShown {
                total: b.total.map(|t| t as u64),
                ..unnamed(b.n as u64)
            };
            return Some((epoch(a.n, a.total), step));
        }
        match self.tokens.get(self.body..self.body + 5)? {
            [open, a, comma, b, close] if open.is('[') && comma.is(',') && close.is(']') => {
                match (a.kind, b.kind) {
                    (Kind::Int(a), Kind::Int(b)) if a >= 0.0 && b >= 0.0 => {
                        Some((epoch(a, None), unnamed(b as u64)))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `共 20 轮`: twenty in all.
    pub(super) fn in_all(&self, of: Counts) -> Option<f64> {
        self.tokens.windows(3).find_map(|w| {
            let counts = words::counter(w[2].text).map(|(counts, _)| counts);
            let all = w[0].text.ends_with('共') && counts == Some(of);
            w[1].number().filter(|n| all && *n >= 1.0)
        })
    }

    /// Whether what stands in a bracket at `at` comes first, or behind `Train:`.
    fn begins_at(&self, at: usize) -> bool {
        let before = self.tokens.get(self.body..at.saturating_sub(1));
        before.is_some_and(|list| {
            list.iter()
                .all(|t| t.is(':') || (t.is_word() && words::is_train(t.text)))
        })
    }

    /// `3/10 Train: 13%|█▎    | 201/1563`: a counter that begins the line counts what the bar's
    /// own counter is a part of.
    pub(super) fn outer_and_inner(&self) -> Option<(&Counter, &Counter)> {
        let bar = self.bar?;
        let outer = self.counters.first()?;
        let inner = self.counters.iter().find(|c| c.at > bar)?;
        let leads = outer.at <= self.body + 1 && outer.end <= bar && outer.total.is_some();
        let counts = !outer.bytes && !inner.bytes && outer.counts != Some(Counts::Steps);
        (leads && counts).then_some((outer, inner))
    }

    /// torchtune describes its bar by `epoch|step|Loss: 0.7`.
    pub(super) fn piped_epoch(&self) -> Option<f64> {
        let bar = self.bar?;
        match self.tokens.get(self.body..bar)? {
            [epoch, a, step, b, loss, ..] if a.is('|') && b.is('|') && loss.is_word() => {
                match (epoch.kind, step.kind, words::loss_fit(loss.text)) {
                    (Kind::Int(epoch), Kind::Int(_), Some(_)) => Some(epoch),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
