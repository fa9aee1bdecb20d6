//! Users' rules: a condition that has held for so long.
//!
//! Owns the time that a condition has held, and the windows that conditions look back over, each
//! of them once however many rules name it. A value that is missing makes a condition neither
//! true nor false.

mod span;
#[cfg(test)]
mod tests;
mod value;

use crate::model::names::{NAMES, Unit};
use crate::model::{Rule, Sample, Term, filled};

use super::finding::{Book, Claim, Evidence};
use super::view::View;
use span::Span;
use value::value;

/// A condition that can't be told for so long has to hold anew, seconds.
const BLIND_S: f64 = 60.0;

/// All rules.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    held: Vec<Held>,
    windows: Vec<(Term, Span)>,
}

#[derive(Clone, Debug)]
struct Held {
    rule: Rule,
    /// Since when it holds: seconds of the run, and of the judge.
    since: Option<(f64, f64)>,
    /// Own seconds in which it couldn't be told.
    blind_s: f64,
}

impl Rules {
    /// The rules, as they were given.
    pub fn all(&self) -> Vec<Rule> {
        self.held.iter().map(|held| held.rule.clone()).collect()
    }

    /// These rules.
    pub fn new(rules: Vec<Rule>) -> Self {
        let mut windows: Vec<(Term, Span)> = Vec::new();
        for term in rules.iter().flat_map(|rule| rule.condition.terms()) {
            if let Some((how, window)) = term.over
                && !windows.iter().any(|(known, _)| known == term)
            {
                windows.push((term.clone(), Span::new(how, window)));
            }
        }
        let held = |rule| Held {
            rule,
            since: None,
            blind_s: 0.0,
        };
        Self {
            held: rules.into_iter().map(held).collect(),
            windows,
        }
    }

    /// Takes in one sample.
    pub fn sample(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        let own_s = v.s.now.own_s;
        for (term, span) in &mut self.windows {
            span.push(own_s, v.s.dt, value(&term.name, sample, v, book));
        }
        for held in &mut self.held {
            let windows = &self.windows;
            let of = |term: &Term, book: &Book| {
                if term.over.is_none() {
                    return value(&term.name, sample, v, book);
                }
                let window = windows.iter().find(|(known, _)| known == term);
                window.and_then(|(_, span)| span.value(own_s))
            };
            held.sample(&of, v, book);
        }
    }
}

/// The value of a term, which may be a finding's in the book.
type Values<'a> = &'a dyn Fn(&Term, &Book) -> Option<f64>;

impl Held {
    fn sample(&mut self, value: Values<'_>, v: &View<'_>, book: &mut Book) {
        let now = (v.s.now.elapsed_s, v.s.now.own_s);
        match self.rule.condition.holds(&|term| value(term, book)) {
            Some(true) => {
                let since = *self.since.get_or_insert(now);
                self.blind_s = 0.0;
                if now.1 - since.1 >= self.rule.lasting.as_secs_f64() {
                    self.raise(since.0, value, book);
                }
            }
            Some(false) => {
                self.since = None;
                book.clear(&self.rule.name);
            }
            None => {
                self.blind_s += v.s.dt;
                if self.blind_s > BLIND_S {
                    self.since = None;
                }
            }
        }
    }

    fn raise(&self, since: f64, value: Values<'_>, book: &mut Book) {
        if book.holds(&self.rule.name) {
            return;
        }
        let rule = &self.rule;
        let terms = rule.condition.terms().into_iter();
        let found: Vec<_> = terms
            .map(|term| (term, term.to_string(), value(term, book)))
            .collect();
        let evidence = found.iter().fold(Evidence::new(), |all, (_, name, value)| {
            all.figures(name, *value)
        });
        let shown = |inner: &str| {
            let (term, _, value) = found.iter().find(|(_, name, _)| squeezed(name) == inner)?;
            Some(value.map_or_else(|| "?".to_owned(), |value| unit(&term.name).text(value)))
        };
        let advice = match &rule.say {
            Some(say) => filled(say, shown),
            None => rule.when.clone(),
        };
        let claim = Claim::new(&rule.name, rule.severity, since)
            .evidence(evidence)
            .advice(advice);
        book.raise(claim);
    }
}

/// Without blanks.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

fn unit(name: &str) -> Unit {
    let known = NAMES.iter().find(|(known, ..)| *known == name);
    known.map_or(Unit::Number, |(_, unit, _)| *unit)
}
