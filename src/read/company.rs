//! What has to stand beside a named number (`step 40`) for it to tell where training is, and not
//! to be a word of somebody's text.
//!
//! Owns that decision. Must not know what else the line says.

use super::grammar::Parts;
use super::keyed::Keyed;
use super::token::Kind;
use super::words::{self, Counts};

/// So many numbers that have no names make a row of them.
const ROW: usize = 3;

impl Parts<'_> {
    /// Whether anything on the line says that this number counts steps of training. `epoch`: the
    /// line shows an epoch.
    pub(super) fn keeps_company(&self, key: &Keyed, epoch: bool) -> bool {
        let measured = || {
            self.values.iter().any(|v| {
                words::is_measure(&v.name) || v.separated && words::loss_fit(&v.name).is_some()
            })
        };
        let lost = || {
            let words = self.tokens.iter().filter(|t| t.is_word());
            words.into_iter().any(|t| words::is_loss_itself(t.text))
        };
        let own_name = || key.counts == Counts::RunSteps && key.separated && key.name.contains('_');
        epoch
            || self.values.len() > 1
            || measured()
            || lost()
            || own_name()
            || self.is_boxed()
            || self.names_a_rate()
            || self.is_headed(key)
            || self.is_timed(key)
            || self.is_row(key)
    }

    /// `steps/sec: 10.1`
    fn names_a_rate(&self) -> bool {
        self.tokens.windows(2).any(|w| {
            let what = w[0].text.split_once('/').filter(|_| w[0].is_word());
            let steps = what.is_some_and(|(what, per)| {
                words::counter(what).is_some() && matches!(per, "s" | "sec" | "second")
            });
            steps && (w[1].is(':') || w[1].is('='))
        })
    }

    /// `Training: step 40`, and nothing behind it.
    fn is_headed(&self, key: &Keyed) -> bool {
        match self.tokens.get(self.body..) {
            Some([train, colon, ..]) => {
                let last = self.tokens.len() - 1;
                words::is_train(train.text)
                    && colon.is(':')
                    && key.at == self.body + 2
                    && self.tokens[last].number().is_some()
            }
            _ => false,
        }
    }

    /// `batch 4200 training time 12.28 s`: what it took.
    fn is_timed(&self, key: &Keyed) -> bool {
        let after = self.tokens.get(key.at..).unwrap_or_default();
        key.at <= self.body + 1
            && after.iter().any(|t| t.is_word() && words::is_train(t.text))
            && after.windows(2).any(|w| {
                w[0].number().is_some() && (w[1].text == "s" || matches!(w[0].unit, "s" | "ms"))
            })
    }

    /// `iter  3 act 1.402e+02 pre 1.210e+02 delta 1.902e+00`
    fn is_row(&self, key: &Keyed) -> bool {
        let floats = self.tokens.iter().filter(|t| {
            matches!(t.kind, Kind::Float(_)) && t.unit.is_empty() && t.text.contains(['e', 'E'])
        });
        key.at == self.body && floats.count() >= ROW
    }
}
