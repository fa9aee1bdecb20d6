//! Named numbers, rates.
//!
//! Owns `key=value` in all its spellings. Must not know which values matter.

use super::counters::Counter;
use super::token::{Kind, Token};
use super::words;

/// More measures than this on a line are left out.
pub(super) const MOST: usize = 24;
/// A longer name is no name.
const LONGEST_NAME: usize = 48;

/// `name: value`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    pub name: String,
    pub number: f64,
    /// The first token of the name.
    pub first: usize,
    /// The number's token.
    pub at: usize,
    /// A colon or an equals sign stands between.
    pub separated: bool,
}

/// All named numbers of a line.
pub(super) fn find(tokens: &[Token<'_>], counters: &[Counter]) -> Vec<Value> {
    let taken = |i: usize| counters.iter().any(|c| (c.at..c.end).contains(&i));
    let mut list: Vec<Value> = Vec::new();
    for at in 0..tokens.len() {
        if tokens[at].is_word()
            && let Some(value) = value(tokens, at, &taken)
        {
            list.push(value);
        }
    }
    list
}

fn value(tokens: &[Token<'_>], at: usize, taken: &dyn Fn(usize) -> bool) -> Option<Value> {
    let name = &tokens[at];
    let mut i = at + 1;
    // "lr(PiecewiseDecay): 0.1", "time per iteration (ms): 101.4"
    if tokens.get(i)?.is('(')
        && let Some(close) = tokens[i..].iter().take(5).position(|t| t.is(')'))
        && tokens
            .get(i + close + 1)
            .is_some_and(|t| t.is(':') || t.is('='))
    {
        i += close + 1;
    }
    let mark = tokens.get(i)?;
    let table = mark.is('|') && at > 0 && tokens[at - 1].is('|');
    let separated = mark.is(':') || mark.is('=') || table;
    let is = mark.is_word() && mark.text == "is" && words::is_measure(name.text);
    if separated || is {
        i += 1;
    } else if !words::is_measure(name.text) || name.text.contains('-') {
        // "libgpg-error-dev 509" is somebody's list.
        return None;
    }
    // "> loss: [0.5]" and "lr=[0.001]"
    if separated && tokens.get(i)?.is('[') {
        i += 1;
    }
    let number = tokens.get(i)?;
    let shown = match number.kind {
        Kind::Int(n) | Kind::Float(n) if number.unit.is_empty() => n,
        Kind::Percent(n) => n,
        // "loss: -inf"
        Kind::Mark('-') => tokens
            .get(i + 1)
            .filter(|t| !t.gap)
            .and_then(Token::number)
            .filter(|n| !n.is_finite())
            .map(|n| -n)?,
        _ => return None,
    };
    let place = name.text.contains('.') && !number.gap;
    let drawn = tokens
        .get(i + 1)
        .is_some_and(|t| t.kind == Kind::Bar && !t.gap);
    if taken(i) || place || drawn || name.text == "pid" {
        return None;
    }
    let first = first_word(tokens, at);
    let words: Vec<&str> = tokens[first..=at].iter().map(|t| t.text).collect();
    let full = words.join(" ");
    (full.len() <= LONGEST_NAME).then_some(Value {
        name: full,
        number: shown,
        first,
        at: i,
        separated,
    })
}

/// A name may be up to three words that no punctuation parts: `lm loss`, `grad norm`.
fn first_word(tokens: &[Token<'_>], at: usize) -> usize {
    let mut first = at;
    while first > 0 && at - first < 2 {
        let before = &tokens[first - 1];
        let joins = before.is_word()
            && tokens[first].blanks == 1
            && words::counter(before.text).is_none()
            && !words::is_level(before.text);
        if !joins {
            break;
        }
        first -= 1;
    }
    first
}
