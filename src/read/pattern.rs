//! Lines of the user's own: what `progress.patterns` of a profile finds.
//!
//! Owns matching and what the captured texts are as numbers. Must not know the grammar: a line
//! that a pattern fits says what the pattern says and nothing else.

use std::sync::Arc;

use regex::{Captures, Regex, RegexBuilder};

use super::reading::{EpochShown, Reading, StepShown};
use super::words;
use crate::model::{Pattern, Phase};

/// Compiled patterns, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct Patterns(Arc<[Compiled]>);

#[derive(Debug)]
struct Compiled {
    name: String,
    phase: Phase,
    text: Regex,
    bytes: regex::bytes::Regex,
}

impl Patterns {
    /// Compiles them.
    ///
    /// # Errors
    /// The first that is no regular expression or too large; a profile was checked before.
    pub fn new(patterns: &[Pattern]) -> Result<Self, regex::Error> {
        let compiled = |pattern: &Pattern| {
            let text = RegexBuilder::new(&pattern.regex)
                .size_limit(Pattern::MOST_BYTES)
                .build()?;
            let bytes = regex::bytes::RegexBuilder::new(&pattern.regex)
                .size_limit(Pattern::MOST_BYTES)
                .build()?;
            Ok(Compiled {
                name: pattern.name.clone(),
                phase: pattern.phase,
                text,
                bytes,
            })
        };
        patterns.iter().map(compiled).collect::<Result<_, _>>()
    }

    /// Whether one of them fits this line.
    pub(super) fn fit(&self, line: &[u8]) -> bool {
        self.0.iter().any(|one| one.bytes.is_match(line))
    }

    /// What the first that fits says.
    pub(super) fn read(&self, line: &str) -> Option<Reading> {
        self.0.iter().find_map(|one| {
            let found = one.text.captures(line)?;
            one.reading(&found)
        })
    }
}

impl FromIterator<Compiled> for Patterns {
    fn from_iter<I: IntoIterator<Item = Compiled>>(list: I) -> Self {
        Self(list.into_iter().collect())
    }
}

impl Compiled {
    /// None where no group caught a number.
    fn reading(&self, found: &Captures<'_>) -> Option<Reading> {
        let get = |group: &str| number(found.name(group)?.as_str());
        let count = |group: &str| {
            let n = get(group)?;
            (0.0..1e15).contains(&n).then_some(n)
        };
        let epoch = count("epoch").map(|value| EpochShown {
            value,
            total: count("epochs"),
            done: false,
            fractional: value.fract() != 0.0,
        });
        let step = count("step").map(|n| StepShown {
            n: n as u64,
            total: count("steps").map(|total| total as u64),
            name: self.name.clone(),
            bar: false,
            whole_run: false,
        });
        let reading = Reading {
            source: self.name.clone().into(),
            phase: self.phase,
            says_train: self.phase == Phase::Train,
            is_told: true,
            epoch,
            step,
            percent: get("percent").filter(|p| (0.0..=100.0).contains(p)),
            loss: get("loss"),
            rate: get("rate").filter(|rate| *rate >= 0.0),
            ..Reading::default()
        };
        let says = reading.epoch.is_some()
            || reading.step.is_some()
            || reading.percent.is_some()
            || reading.loss.is_some()
            || reading.rate.is_some();
        says.then_some(reading)
    }
}

/// A number as people write it: `1200`, `1,200`, `1_200`, `0,53`, `1.2k`, `42%`, `nan`.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Some(value) = words::not_finite(text) {
        return Some(value);
    }
    let end = text.rfind(|c: char| c.is_ascii_digit() || c == '.')? + 1;
    let (digits, unit) = text.split_at(end);
    let scale = match unit.trim() {
        "" | "%" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" | "B" => 1e9,
        _ => return None,
    };
    let plain = digits.replace(['_', ' ', '\''], "");
    let parsed = match plain.split_once(',') {
        // Three digits behind a comma are thousands, as displays write them.
        Some((_, behind)) if grouped(behind) => plain.replace(',', ""),
        Some(_) => plain.replacen(',', ".", 1),
        None => plain,
    };
    let value = parsed.parse::<f64>().ok()?;
    value.is_finite().then_some(value * scale)
}

/// Whether what follows the first comma is groups of three: `200`, `200,000`, `200.5`.
fn grouped(behind: &str) -> bool {
    let whole = behind.split('.').next().unwrap_or_default();
    whole.split(',').all(|group| group.len() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, value) in [
            ("12", Some(12.0)),
            (" 1,200 ", Some(1200.0)),
            ("1,200,000", Some(1_200_000.0)),
            ("1_200", Some(1200.0)),
            ("0,53", Some(0.53)),
            ("1.2k", Some(1200.0)),
            ("42%", Some(42.0)),
            ("-0.5", Some(-0.5)),
            ("1e-3", Some(0.001)),
            ("", None),
            ("abc", None),
            ("12 apples", None),
        ] {
            assert_eq!(number(text), value, "{text}");
        }
        assert!(number("NaN").is_some_and(f64::is_nan));
    }

    #[test]
    fn the_first_pattern_that_fits_says_it_all() {
        let pattern = |name: &str, regex: &str, phase| Pattern {
            name: name.to_owned(),
            regex: regex.to_owned(),
            phase,
        };
        let patterns = Patterns::new(&[
            pattern("check", r"checking (?<step>\d+)", Phase::Eval),
            pattern("mine", r"it=(?<step>\S+) of (?<steps>\S+)", Phase::Train),
        ])
        .unwrap();
        assert!(patterns.fit(b"it=1,5 of 9") && !patterns.fit(b"it 3"));
        let read = patterns.read("it=1,200 of 9,000").unwrap();
        let step = read.step.unwrap();
        assert_eq!((step.n, step.total), (1200, Some(9000)));
        assert_eq!((&*read.source, read.phase), ("mine", Phase::Train));
        let eval = patterns.read("checking 7: it=1 of 2").unwrap();
        assert_eq!(eval.phase, Phase::Eval);
        assert!(patterns.read("it=x of y").is_none());
    }
}
