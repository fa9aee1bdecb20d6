//! Percentages: which of them tell how far a run is.
//!
//! Owns the places in which they stand. Accuracies are percentages, too.

use super::grammar::Parts;
use super::token::{Kind, Token};
use super::words;

impl Parts<'_> {
    /// The percentage that tells how far it is, and not a measure.
    pub(super) fn percent(&self, has_step: bool) -> Option<f64> {
        if let Some(named) = self.named_percent().filter(|_| has_step) {
            return Some(named);
        }
        let shown = self
            .tokens
            .iter()
            .enumerate()
            .find_map(|(i, t)| match t.kind {
                Kind::Percent(p) if (0.0..=100.0).contains(&p) => Some((i, p)),
                _ => None,
            });
        let (at, percent) = shown?;
        let progress = self.tokens[..at].iter().rev().take(3).any(|t| {
            t.is_word() && (t.text.to_lowercase().starts_with("progress") || t.text == "进度")
        });
        let beside = self
            .counters
            .iter()
            .any(|c| at.abs_diff(c.end) <= 1 || c.at.abs_diff(at) <= 2);
        let shown = has_step || !self.keyed.is_empty() || !self.counters.is_empty();
        let alone = self.stands_alone(at) && shown;
        let trains = self.is_of_training(at) || self.is_complete(at);
        (self.bar.is_some() || progress || (has_step && beside) || alone || trains)
            .then_some(percent)
    }

    /// `"percentage": 16.18`
    fn named_percent(&self) -> Option<f64> {
        let names = ["percentage", "percent", "pct", "progress_pct"];
        let fits = |name: &str| names.iter().any(|n| name.eq_ignore_ascii_case(n));
        let found = self.values.iter().find(|v| v.separated && fits(&v.name))?;
        (0.0..=100.0)
            .contains(&found.number)
            .then_some(found.number)
    }

    /// `[ 41.3% ]` at the beginning, or `(27.7% complete)`.
    fn stands_alone(&self, at: usize) -> bool {
        let is = |i: usize, mark| self.tokens.get(i).is_some_and(|t| t.is(mark));
        let leads = at == self.body + 1 && is(self.body, '[') && is(at + 1, ']');
        let done = self.tokens.get(at + 1).is_some_and(|t| {
            t.is_word() && matches!(t.text, "complete" | "completed" | "done" | "finished")
        });
        leads || done && at > 0 && is(at - 1, '(')
    }

    /// `Training: 45%`, `training ... 45.0% done`: nothing but points between them.
    fn is_of_training(&self, at: usize) -> bool {
        let before = self.tokens.get(self.body..at).unwrap_or_default();
        let Some(word) = before.iter().rposition(Token::is_word) else {
            return false;
        };
        let between = before.get(word + 1..).unwrap_or_default();
        let points = between.iter().all(|t| t.is(':') || t.is('.') || t.is('…'));
        let verb = before[word].text.eq_ignore_ascii_case("training");
        word == 0 && verb && points && !between.is_empty()
    }

    /// `45% complete, loss 0.3`: at the beginning, beside a loss.
    fn is_complete(&self, at: usize) -> bool {
        let word = self.tokens.get(at + 1).filter(|t| t.is_word());
        let done = word.is_some_and(|t| matches!(t.text, "complete" | "completed" | "done"));
        let lossy = self
            .values
            .iter()
            .any(|v| words::loss_fit(&v.name).is_some());
        at == self.body && done && lossy
    }
}
