//! A user's rule: an expression over readings, parsed in `plan`, evaluated in `judge`.

use std::fmt;
use std::time::Duration;

use super::{Severity, duration_text};

/// What an expression compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

/// What is made of the values of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// Their mean over time.
    Mean,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// What they exceed in 5 % of the time.
    P95,
    /// The last one less the first one.
    Rise,
}

impl Aggregate {
    /// Each, as it is written, and what it means.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Mean, "mean"),
        (Self::Min, "min"),
        (Self::Max, "max"),
        (Self::P95, "p95"),
        (Self::Rise, "rise"),
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(how, _)| *how == self);
        found.map_or("", |(_, name)| name)
    }
}

/// A value that is compared: one by name, as it is now or over a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Such as `gpu.util`.
    pub name: String,
    /// What is made of the last so much time; None: as it is now.
    pub over: Option<(Aggregate, Duration)>,
}

impl Term {
    /// The value as it is now.
    pub fn now(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            over: None,
        }
    }
}

/// As it is written: `gpu.util`, `mean(gpu.util, 10m)`.
impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.over {
            None => f.write_str(&self.name),
            Some((how, window)) => {
                let window = duration_text(window);
                write!(f, "{}({}, {window})", how.name(), self.name)
            }
        }
    }
}

/// A condition over named values. A comparison with a value that is missing is neither true
/// nor false: `Option<bool>` in three-valued logic.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `term op number`; the number is in the name's base unit (%, MiB, s, W, C, MHz, 10^6 bytes
    /// a second).
    Compare {
        /// Such as `gpu.util`.
        term: Term,
        /// How.
        op: Comparison,
        /// With what.
        number: f64,
    },
    /// A name alone: `finding.gpu_unused`.
    Holds(Term),
    /// Both.
    And(Box<Condition>, Box<Condition>),
    /// Either.
    Or(Box<Condition>, Box<Condition>),
    /// Not.
    Not(Box<Condition>),
}

impl Condition {
    /// Whether it holds, given the values of its terms (true is 1). None: what it needs is missing.
    pub fn holds(&self, value: &dyn Fn(&Term) -> Option<f64>) -> Option<bool> {
        match self {
            Self::Compare { term, op, number } => {
                let value = value(term)?;
                Some(match op {
                    Comparison::Less => value < *number,
                    Comparison::LessOrEqual => value <= *number,
                    Comparison::Greater => value > *number,
                    Comparison::GreaterOrEqual => value >= *number,
                    Comparison::Equal => (value - number).abs() < f64::EPSILON,
                    Comparison::NotEqual => (value - number).abs() >= f64::EPSILON,
                })
            }
            Self::Holds(term) => value(term).map(|v| v != 0.0),
            Self::And(a, b) => match (a.holds(value), b.holds(value)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Or(a, b) => match (a.holds(value), b.holds(value)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Self::Not(a) => a.holds(value).map(|holds| !holds),
        }
    }

    /// Its terms, in the order in which they are written.
    pub fn terms(&self) -> Vec<&Term> {
        match self {
            Self::Compare { term, .. } | Self::Holds(term) => vec![term],
            Self::And(a, b) | Self::Or(a, b) => [a.terms(), b.terms()].concat(),
            Self::Not(a) => a.terms(),
        }
    }
}

/// One entry of a profile's `rules`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The finding's name.
    pub name: String,
    /// The condition as it was written, for the record and for people.
    pub when: String,
    /// The condition.
    pub condition: Condition,
    /// How long it must hold.
    pub lasting: Duration,
    /// How serious.
    pub severity: Severity,
    /// What to say; the condition where absent. `{gpu.util}` stands for the value of a term of the
    /// condition, see [`filled`].
    pub say: Option<String>,
}

/// A text with each `{...}` for which `value` has something replaced by it. What stands in the
/// braces is given without blanks.
pub fn filled(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let inner = after
            .split_once('}')
            .filter(|(inner, _)| !inner.contains('{'));
        let value = inner.and_then(|(inner, after)| {
            let plain: String = inner.split_whitespace().collect();
            Some((value(&plain)?, after))
        });
        let (shown, after) = value.unwrap_or_else(|| ("{".to_owned(), after));
        out.push_str(&shown);
        rest = after;
    }
    out + rest
}
