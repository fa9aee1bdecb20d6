//! Named numbers, remaining time, rates.
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

/// Remaining seconds as displayed.
pub(super) fn eta(tokens: &[Token<'_>], running: bool) -> Option<f64> {
    for (i, t) in tokens.iter().enumerate() {
        // [00:12<00:34
        if t.is('<') && i > 0 && matches!(tokens[i - 1].kind, Kind::Clock(_)) {
            return seconds(tokens.get(i + 1)?);
        }
        if t.is_word() && words::is_remaining(t.text) {
            let skip = tokens[i + 1..]
                .iter()
                .take(2)
                .take_while(|t| t.is(':') || t.is('=') || (t.is_word() && t.text == "time"))
                .count();
            let bare = t.text.to_lowercase().ends_with("_seconds") || t.text.ends_with("_s");
            let number = tokens.get(i + 1 + skip)?;
            return seconds(number).or_else(|| number.number().filter(|_| bare));
        }
    }
    // Keras shows the remaining time before the pace while the bar runs: "2s 49ms/step".
    tokens.windows(2).find_map(|w| {
        let paced = w[1].unit.ends_with("s/step") && running;
        if paced { seconds(&w[0]) } else { None }
    })
}

fn seconds(token: &Token<'_>) -> Option<f64> {
    match token.kind {
        Kind::Clock(s) => Some(s),
        Kind::Int(n) | Kind::Float(n) => match token.unit {
            "s" | "sec" => Some(n),
            "m" | "min" => Some(n * 60.0),
            "h" => Some(n * 3600.0),
            "d" => Some(n * 86_400.0),
            _ => None,
        },
        _ => None,
    }
}

/// Steps a second as displayed.
pub(super) fn rate(tokens: &[Token<'_>], beside_bar: bool) -> Option<f64> {
    tokens.iter().enumerate().find_map(|(i, t)| {
        let n = t.number().filter(|n| n.is_finite() && *n > 0.0)?;
        if !t.unit.is_empty() {
            return pace(n, t.unit, beside_bar);
        }
        // "19.5 steps/s", "global_step/sec: 122.6", "11.65 batches/s"
        let behind = tokens
            .get(i + 1)
            .filter(|w| w.is_word() && w.text.contains('/'));
        if let Some(word) = behind {
            return pace(n, word.text, beside_bar);
        }
        let mark = i
            .checked_sub(1)
            .filter(|m| tokens[*m].is(':') || tokens[*m].is('='))?;
        let key = mark.checked_sub(1).map(|k| &tokens[k])?;
        if key.is_word() && key.text.contains('/') {
            return pace(n, key.text, false);
        }
        None
    })
}

fn pace(n: f64, unit: &str, beside_bar: bool) -> Option<f64> {
    let (what, per) = unit.rsplit_once('/')?;
    let is_step = |word: &str| {
        word == "it" || words::counter(word).is_some_and(|(c, _)| c != words::Counts::Epochs)
    };
    let is_epoch =
        |word: &str| words::counter(word).is_some_and(|(c, _)| c == words::Counts::Epochs);
    if matches!(per, "s" | "sec" | "second") {
        let (factor, bytes) = match what.strip_prefix('k') {
            Some(rest) if rest.len() > 1 => (1e3, false),
            _ => words::scale(what),
        };
        let counted = is_step(what) || (beside_bar && !bytes && !is_epoch(what));
        return counted.then_some(
            n * if what.len() > 1 || factor > 1.0 {
                factor
            } else {
                1.0
            },
        );
    }
    let scale = match what {
        "s" | "sec" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        _ => return None,
    };
    let counted = is_step(per) || (beside_bar && !is_epoch(per));
    (counted && n > 0.0).then(|| 1.0 / (n * scale))
}
