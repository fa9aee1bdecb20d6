//! A user's rule: an expression over readings, parsed in `plan`, evaluated in `judge`.

use std::time::Duration;

use super::Severity;

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

/// A condition over named values. A comparison with a value that is missing is neither true
/// nor false: `Option<bool>` in three-valued logic.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `name op number`; the number is in the name's base unit (%, MiB, s, W, C).
    Compare {
        /// Such as `gpu.util`.
        name: String,
        /// How.
        op: Comparison,
        /// With what.
        number: f64,
    },
    /// A name alone: `finding.gpu_unused`.
    Holds(String),
    /// Both.
    And(Box<Condition>, Box<Condition>),
    /// Either.
    Or(Box<Condition>, Box<Condition>),
    /// Not.
    Not(Box<Condition>),
}

impl Condition {
    /// Whether it holds, given the values by name (true is 1). None: what it needs is missing.
    pub fn holds(&self, value: &dyn Fn(&str) -> Option<f64>) -> Option<bool> {
        match self {
            Self::Compare { name, op, number } => {
                let value = value(name)?;
                Some(match op {
                    Comparison::Less => value < *number,
                    Comparison::LessOrEqual => value <= *number,
                    Comparison::Greater => value > *number,
                    Comparison::GreaterOrEqual => value >= *number,
                    Comparison::Equal => (value - number).abs() < f64::EPSILON,
                    Comparison::NotEqual => (value - number).abs() >= f64::EPSILON,
                })
            }
            Self::Holds(name) => value(name).map(|v| v != 0.0),
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
    /// What to say; the condition where absent.
    pub say: Option<String>,
}
