//! What a line is about: training, a look at the result, a chore, and who drew it.
//!
//! Owns the reading of labels. Must not know the numbers.

use crate::model::Phase;

use super::counters::Counter;
use super::grammar::Parts;
use super::reading::{EpochShown, StepShown};
use super::times;
use super::token::{Kind, Token};
use super::words::{self, Counts};

/// No training takes so many steps a second.
const FASTEST: f64 = 100_000.0;

impl<'a> Parts<'a> {
    /// The words that say what the line is about: before its bar or its first number.
    fn head(&self, step: bool) -> impl Iterator<Item = &'a str> {
        let first_counter = self.counters.iter().map(|c| c.at).min();
        let first_keyed = self.keyed.iter().map(|k| k.at).min();
        let first_table = self.table.map(|_| 0);
        let end = self
            .bar
            .into_iter()
            .chain(if self.bar.is_some() {
                None
            } else {
                first_counter
            })
            .chain(if self.bar.is_some() {
                None
            } else {
                first_keyed
            })
            .chain(first_table)
            .min()
            .unwrap_or(if step { self.body } else { self.tokens.len() });
        let end = self
            .bar
            .filter(|b| *b < 2)
            .and(first_counter)
            .unwrap_or(end);
        let tokens = self.tokens;
        let keys: Vec<usize> = self.values.iter().flat_map(|v| v.first..v.at).collect();
        let in_path = move |i: usize| i > 0 && tokens[i - 1].is('/') && !tokens[i].gap;
        (0..end.min(tokens.len()))
            .filter(move |i| tokens[*i].is_word() && !keys.contains(i) && !in_path(*i))
            .map(move |i| tokens[i].text)
            .filter(|w| !w.contains('.') || words::is_chore(w))
    }

    pub(super) fn says_train(&self, step: Option<&StepShown>) -> bool {
        self.head(step.is_some())
            .any(|w| words::is_train(w) && !w.contains('.'))
    }

    pub(super) fn phase(&self, step: Option<&StepShown>) -> Phase {
        let bytes = self.counters.iter().any(|c| c.bytes && c.counts.is_none())
            || self.tokens.iter().any(|t| t.unit.ends_with("B/s"));
        // The first drawing knows no rate yet: `?frames/s`.
        let chore = |unit: &str| words::is_rate_of_a_chore(unit);
        let pieces = self.tokens.iter().any(|t| chore(t.unit) || chore(t.text));
        let drawn = self.bar.is_some() || step.is_some_and(|s| s.bar);
        if (bytes || pieces || self.is_too_fast(step)) && drawn {
            return Phase::Other;
        }
        if self.bar.is_some() && self.prepares_training() {
            return Phase::Other;
        }
        for word in self.head(step.is_some()) {
            if words::is_train(word) && !word.contains('.') {
                return Phase::Train;
            }
            if words::is_eval(word) && !word.contains('.') {
                return Phase::Eval;
            }
        }
        if self.says_eval() {
            return Phase::Eval;
        }
        if self.is_work_of_any_kind(step) {
            return Phase::Other;
        }
        Phase::Train
    }

    /// A bar without a name that counts so fast counts bytes.
    fn is_too_fast(&self, step: Option<&StepShown>) -> bool {
        let nameless = step.is_some_and(|s| s.name.is_empty()) && !self.shows_epochs();
        let rate = times::rate(self.tokens, true);
        nameless && !self.is_measured() && rate.is_some_and(|r| r >= FASTEST)
    }

    /// Programs of all kinds draw bars and count steps: what says that this is training is a
    /// name, a measure, or at least a pace.
    fn is_work_of_any_kind(&self, step: Option<&StepShown>) -> bool {
        let named = step.is_some_and(|s| words::counter(&s.name).is_some());
        if self.shows_epochs() || self.is_measured() || self.table.is_some() {
            return false;
        }
        if self.bar.is_none() {
            return named && self.is_done();
        }
        let says = named || self.says_train(step);
        let paced = self.is_paced() || self.under_epoch;
        !says && (self.head(true).any(words::is_chore) || !paced)
    }

    /// `Tokenizing train dataset`, `train: Caching images`: training is what it is for.
    fn prepares_training(&self) -> bool {
        if self.shows_epochs() || self.is_measured() {
            return false;
        }
        let words: Vec<&str> = self.head(true).take(6).collect();
        let Some(train) = words.iter().position(|w| words::is_train(w)) else {
            return false;
        };
        let colon = self
            .tokens
            .windows(2)
            .any(|w| w[0].is_word() && words::is_train(w[0].text) && w[1].is(':'));
        let behind = words.get(train + 1).filter(|_| colon);
        words[..train]
            .iter()
            .chain(behind)
            .any(|w| words::is_chore(w))
    }

    fn shows_epochs(&self) -> bool {
        self.keyed.iter().any(|k| k.counts == Counts::Epochs)
            || self
                .counters
                .iter()
                .any(|c| c.counts == Some(Counts::Epochs))
    }

    /// A loss or another measure stands on the line.
    pub(super) fn is_measured(&self) -> bool {
        self.values
            .iter()
            .any(|v| words::loss_fit(&v.name).is_some() || words::is_measure(&v.name))
    }

    /// `20.1it/s`, `49ms/step`, `?it/s`, `[00:12<00:34`, `ETA: 12s`.
    pub(super) fn is_paced(&self) -> bool {
        self.tokens.iter().enumerate().any(|(i, t)| {
            let unit = |text: &str| text.contains("s/") || text.ends_with("/s");
            let left = matches!(t.kind, Kind::Clock(_))
                && self.tokens.get(i + 1).is_some_and(|t| t.is('<'));
            unit(t.unit) || (t.is_word() && (unit(t.text) || words::is_remaining(t.text))) || left
        })
    }

    /// `3 of 82 steps (4%) done`: somebody's list of work.
    fn is_done(&self) -> bool {
        let last = self.tokens.iter().rev().find(|t| t.is_word());
        last.is_some_and(|t| matches!(t.text, "done" | "complete" | "completed" | "finished"))
            && !self.is_paced()
    }

    /// Text of its own behind the counter: `Step 5/10 : RUN make` of a build.
    pub(super) fn goes_on_in_words(&self, c: &Counter) -> bool {
        let rest = self.tokens.get(c.end..).unwrap_or_default();
        let measure =
            |t: &Token<'_>| words::loss_fit(t.text).is_some() || words::is_measure(t.text);
        rest.iter().any(Token::is_word)
            && !rest.iter().any(|t| t.is_word() && measure(t))
            && !self.is_measured()
            && !self.is_paced()
            && self.values.is_empty()
            && !rest.iter().any(|t| t.number().is_some())
    }

    /// `Epoch(val)`, `"split": "validation"`.
    fn says_eval(&self) -> bool {
        self.tokens.windows(3).any(|w| {
            let about = w[0].is_word()
                && matches!(
                    w[0].text.to_lowercase().as_str(),
                    "event" | "phase" | "split" | "mode" | "stage" | "subset"
                );
            let named = (about && (w[1].is(':') || w[1].is('=')))
                || (w[0].is_word() && w[1].is('(') && words::counter(w[0].text).is_some());
            named && w[2].is_word() && words::is_eval(w[2].text)
        })
    }

    pub(super) fn source(
        &self,
        epoch: Option<&EpochShown>,
        step: Option<&StepShown>,
    ) -> &'static str {
        let tqdm =
            self.tokens.windows(2).any(|w| {
                matches!(w[0].kind, Kind::Percent(_)) && w[1].kind == Kind::Bar && !w[1].gap
            }) || step.is_some_and(|s| s.bar && s.total.is_none());
        if tqdm {
            return "tqdm";
        }
        let keras = self.counters.iter().any(|c| c.at == self.body)
            && self
                .tokens
                .iter()
                .any(|t| t.unit.ends_with("s/step") || t.unit.ends_with("s/epoch"));
        if keras {
            return "keras";
        }
        if self.bar.is_some() {
            return "bar";
        }
        if self.table.is_some() || self.is_boxed() {
            return "table";
        }
        match (epoch, step) {
            (_, Some(s)) if s.total.is_some() => "step-counter",
            (Some(e), None) if e.total.is_some() => "epoch-counter",
            _ => "key-value",
        }
    }
}
