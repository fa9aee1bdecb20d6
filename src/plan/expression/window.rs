//! Functions of an expression: what a value was over the last so much time.
//!
//! Owns their names, how long a window may be, and what is said about wrong ones.

use std::ops::Range;
use std::time::Duration;

use super::parse::{Parsed, Parser};
use super::token::{Kind, Token};
use super::{ExpressionError, Scope};
use crate::model::names::Unit;
use crate::model::{Aggregate, Term, units};
use crate::plan::nearest::suggestion;

/// A shorter window is hardly more than one sample.
pub const SHORTEST: Duration = Duration::from_secs(10);

/// Nobody waits longer than this for the first answer.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// What is said in every message about a form that is wrong.
const EXAMPLE: &str = "write it like 'mean(gpu.util, 10m) < 20'";

/// How others call it, and how it is called here.
const FOREIGN: [(&str, Aggregate); 13] = [
    ("avg", Aggregate::Mean),
    ("average", Aggregate::Mean),
    ("minimum", Aggregate::Min),
    ("least", Aggregate::Min),
    ("maximum", Aggregate::Max),
    ("peak", Aggregate::Max),
    ("percentile", Aggregate::P95),
    ("quantile", Aggregate::P95),
    ("p90", Aggregate::P95),
    ("p99", Aggregate::P95),
    ("delta", Aggregate::Rise),
    ("increase", Aggregate::Rise),
    ("growth", Aggregate::Rise),
];

impl Parser<'_> {
    /// `name(value, window) op number`; `token` is the name's.
    pub(super) fn aggregated(&mut self, name: &str, token: &Token<'_>) -> Parsed {
        let how = self.function(name, token)?;
        // The parenthesis, which is known to be there.
        self.next();
        let (value, unit) = self.value()?;
        self.must_be(Kind::Comma, "a comma and a window are missing here")?;
        let window = self.window()?;
        let close = self.must_be(Kind::Close, "')' is missing here")?;
        let term = Term {
            name: value,
            over: Some((how, window)),
        };
        self.compared(term, unit, token.at.start..close.end)
    }

    /// The next word, which can only be this one.
    fn must_be(&mut self, kind: Kind<'_>, what: &str) -> Result<Range<usize>, ExpressionError> {
        let next = self.next();
        match next {
            Some(token) if token.kind == kind => Ok(token.at.clone()),
            _ => {
                let at = next.map_or(self.end(), |token| token.at.clone());
                Err(self.error(at, format!("{what}: {EXAMPLE}")))
            }
        }
    }

    /// How a function would be written, if this is one.
    pub(super) fn example_of(&self, name: &str) -> Option<String> {
        let (_, name) = Aggregate::ALL.iter().find(|(_, known)| *known == name)?;
        (self.names.scope == Scope::Rules).then(|| format!("{name}(gpu.util, 10m) < 20"))
    }

    fn function(&self, name: &str, token: &Token<'_>) -> Result<Aggregate, ExpressionError> {
        let known = Aggregate::ALL.iter().find(|(_, known)| *known == name);
        let what = match (known, self.names.scope) {
            (Some((how, _)), Scope::Rules) => return Ok(*how),
            (Some(_), Scope::Gates) => {
                format!("'{name}' is for 'rules': 'fail_if' is about the whole run")
            }
            (None, _) if self.names.unit(name).is_some() => {
                format!("'{name}' is a value and no function: {EXAMPLE}")
            }
            (None, _) => unknown(name),
        };
        Err(self.error(token.at.clone(), what))
    }

    /// The value that the function is of.
    fn value(&mut self) -> Result<(String, Unit), ExpressionError> {
        let Some(token) = self.next() else {
            let what = format!("a value is missing here: {EXAMPLE}");
            return Err(self.error(self.end(), what));
        };
        let Kind::Word(name) = token.kind else {
            let what = format!("the name of a value must stand here: {EXAMPLE}");
            return Err(self.error(token.at.clone(), what));
        };
        if name.starts_with("finding.") {
            let what = format!("'{name}' is true or false, and a function is of numbers");
            return Err(self.error(token.at.clone(), what));
        }
        match self.names.unit(name) {
            Some(unit) => Ok((name.to_owned(), unit)),
            None => Err(self.unknown(name, token)),
        }
    }

    fn window(&mut self) -> Result<Duration, ExpressionError> {
        let Some(token) = self.next() else {
            let what = format!("a window is missing here: {EXAMPLE}");
            return Err(self.error(self.end(), what));
        };
        let text = self.text.get(token.at.clone()).unwrap_or_default();
        let what = match token.kind {
            Kind::Number(..) => match units::duration(text) {
                Ok(window) if (SHORTEST..=LONGEST).contains(&window) => {
                    // As it is printed.
                    return Ok(Duration::from_millis(window.as_millis() as u64));
                }
                Ok(_) => "this is out of range: a window is from 10s to 24h".to_owned(),
                Err(error) => error.to_string(),
            },
            _ => format!("a window must stand here: {EXAMPLE}"),
        };
        Err(self.error(token.at.clone(), what))
    }
}

fn unknown(name: &str) -> String {
    let lower = name.to_lowercase();
    let foreign = FOREIGN.iter().find(|(theirs, _)| *theirs == lower);
    let known = Aggregate::ALL.iter().map(|(_, name)| *name);
    let near = match foreign {
        Some((_, ours)) => format!("; did you mean '{}'?", ours.name()),
        None => suggestion(name, known.clone()),
    };
    if near.is_empty() {
        let known: Vec<&str> = known.collect();
        return format!(
            "there is no function '{name}': known are {}",
            known.join(", ")
        );
    }
    format!("there is no function '{name}'{near}")
}
