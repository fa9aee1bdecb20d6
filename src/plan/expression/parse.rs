//! Words to a condition, or to the one mistake that stands first.

use std::ops::Range;

use super::token::{Kind, Token, tokens};
use super::{ExpressionError, Names, Scope};
use crate::model::names::Unit;
use crate::model::{Comparison, Condition, Term};
use crate::plan::nearest::suggestion;

/// Nesting beyond this is no rule that a person wrote.
const MAX_DEPTH: usize = 50;

/// So is a longer text, in bytes.
const MAX_LENGTH: usize = 2000;

/// Units: how they are written, of what, and how much of its base unit one is.
pub(super) const UNITS: [(&str, Unit, f64); 10] = [
    ("%", Unit::Percent, 1.0),
    ("MiB", Unit::Mib, 1.0),
    ("GiB", Unit::Mib, 1024.0),
    ("s", Unit::Seconds, 1.0),
    ("m", Unit::Seconds, 60.0),
    ("h", Unit::Seconds, 3600.0),
    ("W", Unit::Watts, 1.0),
    ("C", Unit::Celsius, 1.0),
    ("MHz", Unit::Megahertz, 1.0),
    ("MB/s", Unit::MbPerSecond, 1.0),
];

/// Parses an expression.
///
/// # Errors
/// The first mistake: an unknown name or unit, or words in an order that means nothing.
pub fn parse(text: &str, names: Names<'_>) -> Result<Condition, ExpressionError> {
    if text.len() > MAX_LENGTH {
        let what = format!("the expression is too long: {MAX_LENGTH} bytes are the most");
        return Err(ExpressionError::new("...", 0..3, what));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser {
        text,
        names,
        tokens: &tokens,
        depth: 0,
    };
    let condition = parser.any()?;
    match parser.peek() {
        None => Ok(condition),
        Some(token) => {
            Err(parser.unexpected(token, "'and' or 'or' must stand between two conditions"))
        }
    }
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) names: Names<'a>,
    tokens: &'a [Token<'a>],
    depth: usize,
}

pub(super) type Parsed = Result<Condition, ExpressionError>;

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> Option<&'a Token<'a>> {
        self.tokens.first()
    }

    pub(super) fn next(&mut self) -> Option<&'a Token<'a>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|t| t.kind == Kind::Word(word));
        if found {
            self.next();
        }
        found
    }

    fn any(&mut self) -> Parsed {
        let mut left = self.all()?;
        while self.take("or") {
            left = Condition::Or(Box::new(left), Box::new(self.all()?));
        }
        Ok(left)
    }

    fn all(&mut self) -> Parsed {
        let mut left = self.one()?;
        while self.take("and") {
            left = Condition::And(Box::new(left), Box::new(self.one()?));
        }
        Ok(left)
    }

    fn one(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let at = self.peek().map_or(self.end(), |t| t.at.clone());
            let what = format!("this is nested too deep: {MAX_DEPTH} levels are the most");
            return Err(self.error(at, what));
        }
        let parsed = if self.take("not") {
            self.one().map(|inner| Condition::Not(Box::new(inner)))
        } else {
            self.primary()
        };
        self.depth -= 1;
        parsed
    }

    fn primary(&mut self) -> Parsed {
        let Some(token) = self.next() else {
            let what = "a condition is missing here, like 'duration > 60s'";
            return Err(self.error(self.end(), what));
        };
        match token.kind {
            Kind::Open => self.parenthesised(token),
            Kind::Word(word @ ("and" | "or")) => {
                let what = format!("a condition is missing before '{word}'");
                Err(self.error(token.at.clone(), what))
            }
            Kind::Word(name) => match self.peek().map(|t| t.kind) {
                Some(Kind::Open) => self.aggregated(name, token),
                _ => self.named(name, token),
            },
            Kind::Number(..) => {
                let what = "a name must come first, like 'duration > 60s'";
                Err(self.error(token.at.clone(), what))
            }
            Kind::Op(_) => Err(self.unexpected(token, "a name must stand before it")),
            Kind::Close => Err(self.unexpected(token, "a condition is missing before ')'")),
            Kind::Comma => Err(self.unexpected(token, "a comma belongs into a function alone")),
        }
    }

    fn parenthesised(&mut self, open: &Token<'_>) -> Parsed {
        let inner = self.any()?;
        match self.next() {
            Some(token) if token.kind == Kind::Close => Ok(inner),
            Some(token) => Err(self.unexpected(token, "'and', 'or' or ')' must stand here")),
            None => Err(self.error(open.at.clone(), "this '(' is never closed")),
        }
    }

    fn named(&mut self, name: &str, token: &Token<'_>) -> Parsed {
        let compared = matches!(self.peek().map(|t| t.kind), Some(Kind::Op(_)));
        if let Some(finding) = name.strip_prefix("finding.") {
            if !self.names.is_finding(finding) {
                return Err(self.unknown(name, token));
            }
            if compared {
                let what = format!("'{name}' is true or false: write it alone, or after 'not'");
                return Err(self.error(token.at.clone(), what));
            }
            return Ok(Condition::Holds(Term::now(name)));
        }
        let Some(unit) = self.names.unit(name) else {
            return Err(self.unknown(name, token));
        };
        self.compared(Term::now(name), unit, token.at.clone())
    }

    /// A term and what it is compared with; `at` is where the term stands.
    pub(super) fn compared(&mut self, term: Term, unit: Unit, at: Range<usize>) -> Parsed {
        if !matches!(self.peek().map(|t| t.kind), Some(Kind::Op(_))) {
            let what = format!("'{term}' must be compared with a number, like '{term} < 20'");
            return Err(self.error(at, what));
        }
        let (op, number) = self.comparison(&term.name, unit)?;
        Ok(Condition::Compare { term, op, number })
    }

    fn comparison(&mut self, name: &str, unit: Unit) -> Result<(Comparison, f64), ExpressionError> {
        let Some(Kind::Op(op)) = self.next().map(|t| t.kind) else {
            return Err(self.error(self.end(), "a comparison is missing here"));
        };
        match self.next() {
            Some(token) => match token.kind {
                Kind::Number(value, written) => {
                    let number = self.scaled(name, unit, value, written, &token.at)?;
                    Ok((op, number))
                }
                _ => Err(self.unexpected(token, "a number must stand here")),
            },
            None => Err(self.error(self.end(), "a number is missing here")),
        }
    }

    /// The number in the base unit of the name that it is compared with.
    fn scaled(
        &self,
        name: &str,
        unit: Unit,
        value: f64,
        written: &str,
        at: &Range<usize>,
    ) -> Result<f64, ExpressionError> {
        if written.is_empty() {
            return Ok(value);
        }
        let known = UNITS
            .iter()
            .find(|(text, of, _)| *text == written && *of == unit);
        if let Some((_, _, factor)) = known {
            return Ok(value * factor);
        }
        let right: Vec<&str> = UNITS
            .iter()
            .filter(|(_, of, _)| *of == unit)
            .map(|(text, ..)| *text)
            .collect();
        let what = if right.is_empty() {
            format!("'{name}' is a plain number: leave '{written}' out")
        } else {
            let right = right.join(" or ");
            format!("'{name}' is in {right}: '{written}' is no unit of it")
        };
        Err(self.error(at.clone(), what))
    }

    pub(super) fn unknown(&self, name: &str, token: &Token<'_>) -> ExpressionError {
        let scope = self.names.scope;
        if let Some(example) = self.example_of(name) {
            let what = format!("'{name}' is a function: write it like '{example}'");
            return self.error(token.at.clone(), what);
        }
        let elsewhere = scope
            .other()
            .names()
            .iter()
            .any(|(known, ..)| *known == name);
        let what = if elsewhere {
            let (here, there) = (scope.key(), scope.other().key());
            format!("'{name}' is a value of '{there}', not of '{here}'")
        } else {
            let all = self.names.all();
            let near = suggestion(name, all.iter().map(String::as_str));
            if near.is_empty() {
                format!("there is no value '{name}': known are {}", self.known())
            } else {
                format!("there is no value '{name}'{near}")
            }
        };
        self.error(token.at.clone(), what)
    }

    fn known(&self) -> String {
        let names: Vec<&str> = self.names.scope.names().iter().map(|(n, ..)| *n).collect();
        let example = match self.names.scope {
            Scope::Rules => "finding.stalled",
            Scope::Gates => "finding.gpu_unused",
        };
        format!("{} and findings such as {example}", names.join(", "))
    }

    pub(super) fn unexpected(&self, token: &Token<'_>, what: &str) -> ExpressionError {
        self.error(token.at.clone(), what)
    }

    pub(super) fn error(&self, at: Range<usize>, what: impl Into<String>) -> ExpressionError {
        ExpressionError::new(self.text, at, what)
    }

    /// Just behind the last word.
    pub(super) fn end(&self) -> Range<usize> {
        let end = self.text.trim_end().len();
        end..end + 1
    }
}
