//! An expression's words: names, numbers with their units, operators, parentheses, commas.

use std::ops::Range;

use super::ExpressionError;
use crate::model::Comparison;

/// A word and the bytes that it stands on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub kind: Kind<'a>,
    pub at: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind<'a> {
    Word(&'a str),
    /// A number, and the unit that follows it.
    Number(f64, &'a str),
    Op(Comparison),
    Open,
    Close,
    Comma,
}

/// Operators, the longer ones first.
const OPERATORS: [(&str, Comparison); 6] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// How other languages write it, and how it is written here.
const FOREIGN: [(&str, &str); 5] = [
    ("&&", "and"),
    ("||", "or"),
    ("=", "=="),
    ("!", "not"),
    ("&", "and"),
];

/// All words of an expression.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, ExpressionError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let blanks = rest.len() - rest.trim_start().len();
        if blanks > 0 {
            at += blanks;
            continue;
        }
        let (kind, length) = token(text, rest, at)?;
        found.push(Token {
            kind,
            at: at..at + length,
        });
        at += length;
    }
    Ok(found)
}

fn token<'a>(text: &str, rest: &'a str, at: usize) -> Result<(Kind<'a>, usize), ExpressionError> {
    let first = rest.chars().next().unwrap_or(' ');
    match first {
        '(' => return Ok((Kind::Open, 1)),
        ')' => return Ok((Kind::Close, 1)),
        ',' => return Ok((Kind::Comma, 1)),
        _ => {}
    }
    if let Some((sign, op)) = OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign)) {
        return Ok((Kind::Op(*op), sign.len()));
    }
    if first.is_ascii_digit() || matches!(first, '-' | '+' | '.') {
        return number(text, rest, at);
    }
    let word = prefix(rest, |c| {
        c.is_alphanumeric() || matches!(c, '.' | '_' | '-')
    });
    if !word.is_empty() {
        return Ok((Kind::Word(word), word.len()));
    }
    let foreign = FOREIGN.iter().find(|(sign, _)| rest.starts_with(sign));
    let (length, what) = match foreign {
        Some((sign, ours)) => (sign.len(), format!("write '{ours}' for '{sign}'")),
        None => (
            first.len_utf8(),
            "this means nothing here: write like 'gpu.util < 20 and job.mem > 1GiB'".to_owned(),
        ),
    };
    Err(ExpressionError::new(text, at..at + length, what))
}

fn number<'a>(text: &str, rest: &'a str, at: usize) -> Result<(Kind<'a>, usize), ExpressionError> {
    let sign = usize::from(rest.starts_with(['-', '+']));
    let unsigned = rest.get(sign..).unwrap_or_default();
    let mut length = sign + prefix(unsigned, |c| c.is_ascii_digit() || c == '.').len();
    length += exponent(rest.get(length..).unwrap_or_default());
    let digits = rest.get(..length).unwrap_or_default();
    let value = digits.parse::<f64>().ok().filter(|value| value.is_finite());
    let Some(value) = value else {
        let end = at + length.max(1);
        return Err(ExpressionError::new(text, at..end, "this is no number"));
    };
    let after = rest.get(length..).unwrap_or_default();
    let unit = prefix(after, |c| {
        c.is_alphanumeric() || matches!(c, '%' | '°' | '_' | '/')
    });
    // A blank may stand before the unit, as people write it: `1 GiB`, `20 %`.
    let blanks = after.len() - after.trim_start_matches(' ').len();
    let apart = prefix(after.trim_start_matches(' '), |c| {
        c.is_alphanumeric() || matches!(c, '%' | '.' | '_' | '/')
    });
    if unit.is_empty() && blanks > 0 && is_unit(apart) {
        return Ok((Kind::Number(value, apart), length + blanks + apart.len()));
    }
    Ok((Kind::Number(value, unit), length + unit.len()))
}

/// Whether a word by itself can only be a unit.
fn is_unit(word: &str) -> bool {
    super::parse::UNITS.iter().any(|(unit, ..)| *unit == word)
}

/// The length of `e-3` where digits follow.
fn exponent(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix(['e', 'E']) else {
        return 0;
    };
    let sign = usize::from(after.starts_with(['-', '+']));
    let digits = prefix(after.get(sign..).unwrap_or_default(), |c| {
        c.is_ascii_digit()
    });
    if digits.is_empty() {
        0
    } else {
        1 + sign + digits.len()
    }
}

fn prefix(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}
