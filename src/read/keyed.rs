//! Numbers with a counter's name: `step 3`, `epoch=3`, `Batch [0-50]`, `113batch:`.
//!
//! Owns how name and number stand together. Must not know whether the line as a whole shows
//! progress.

use super::counters::Counter;
use super::foreign::{is_in_file_name, is_option};
use super::token::{Kind, Token};
use super::words::{self, Counts};

/// `name n`, `name=n`, `name: [n]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Keyed {
    /// The name's token.
    pub at: usize,
    pub n: f64,
    pub counts: Counts,
    pub name: String,
    /// A colon or an equals sign stands between.
    pub separated: bool,
    pub fractional: bool,
    /// Its name is a plural, as that of a total mostly is.
    pub plural: bool,
    /// How many words stand before it on the line.
    pub words_before: usize,
}

/// All `name n` whose name is a counter's.
pub(super) fn keyed(tokens: &[Token<'_>], counters: &[Counter]) -> Vec<Keyed> {
    let taken = |i: usize| counters.iter().any(|c| (c.at..c.end).contains(&i));
    let mut list: Vec<Keyed> = (0..tokens.len())
        .filter_map(|at| key(tokens, at, &taken).or_else(|| glued_key(tokens, at, &taken)))
        .collect();
    // "(epoch: 3, iters: 100": a plural where we are, since an epoch stands before it.
    let one = |k: &Keyed| k.counts == Counts::Epochs || !k.plural;
    let epoch = list
        .iter()
        .any(|k| k.counts == Counts::Epochs && !k.plural && k.separated);
    list.retain(|k| one(k) && !k.plural || epoch && k.plural && k.counts == Counts::Steps);
    list
}

/// The counter whose name is glued to this number: `50epoch`, `113batch`.
pub(super) fn glued(number: &Token<'_>) -> Option<Counts> {
    if number.unit.len() < 4 {
        return None;
    }
    let (counts, plural) = words::counter(number.unit)?;
    (!plural).then_some(counts)
}

/// `3epoch:train:1-113batch:`
fn glued_key(tokens: &[Token<'_>], at: usize, taken: &dyn Fn(usize) -> bool) -> Option<Keyed> {
    let number = tokens.get(at)?;
    let counts = glued(number)?;
    let Kind::Int(n) = number.kind else {
        return None;
    };
    let told = tokens.get(at + 1).is_some_and(|t| t.is(':'));
    (told && n != 0.0 && !taken(at)).then(|| Keyed {
        at,
        // "1-113batch": the second number is negative by its looks.
        n: n.abs(),
        counts,
        name: number.unit.to_lowercase(),
        separated: true,
        fractional: false,
        plural: false,
        words_before: tokens[..at].iter().filter(|t| t.is_word()).count(),
    })
}

fn key(tokens: &[Token<'_>], at: usize, taken: &dyn Fn(usize) -> bool) -> Option<Keyed> {
    let name = &tokens[at];
    if !name.is_word() {
        return None;
    }
    let ordinal = name.text == "第" || name.text.ends_with('第');
    let (counts, plural) = match words::counter(name.text) {
        Some(found) => found,
        None if ordinal => words::counter(tokens.get(at + 2)?.text)?,
        // "Train: 3 [ 50/1251 ( 4%)]": timm gives the epoch no name of its own.
        None if is_bare_epoch(tokens, at, taken) => (Counts::Epochs, false),
        None => return None,
    };
    let before = at.checked_sub(1).map(|i| &tokens[i]);
    let elsewhere = before.is_some_and(|t| t.is_word() && words::is_elsewhere(t.text));
    if elsewhere || is_option(tokens, at) {
        return None;
    }
    let mut i = at + 1;
    if tokens.get(i)?.is('(') && tokens.get(i + 2)?.is(')') && tokens[i + 1].is_word() {
        i += 3;
    }
    let (mut i, separated, boxed) = marks(tokens, at, i)?;
    if plural && !separated {
        return None;
    }
    // "Batch [0-50]": up to the second one.
    let range = boxed
        && tokens.get(i + 2).is_some_and(|t| t.is(']'))
        && tokens.get(i + 1).is_some_and(|t| t.text.starts_with('-'));
    i += usize::from(range);
    let number = tokens.get(i)?;
    let sign = if range { -1.0 } else { 1.0 };
    let n = number.number().map(|n| n * sign);
    let n = n.filter(|n| *n >= 0.0 && n.is_finite())?;
    let fractional = matches!(number.kind, Kind::Float(_));
    if fractional && (counts != Counts::Epochs || !separated) {
        return None;
    }
    // "step 1 250/5 000": thousands that a blank parts.
    let parted = counts != Counts::Epochs && is_parted(tokens, i);
    if parted || taken(i) || goes_on(tokens, i, boxed) {
        return None;
    }
    Some(Keyed {
        at,
        n,
        counts,
        name: name.text.to_lowercase(),
        separated,
        fractional,
        plural,
        words_before: tokens[..at].iter().filter(|t| t.is_word()).count(),
    })
}

fn is_parted(tokens: &[Token<'_>], at: usize) -> bool {
    matches!(tokens.get(at + 1..), Some([rest, slash, ..])
        if rest.text.len() == 3 && matches!(rest.kind, Kind::Int(_)) && slash.is('/'))
}

/// Whether what stands behind the number makes something else of it than a count.
fn goes_on(tokens: &[Token<'_>], at: usize, boxed: bool) -> bool {
    let after = tokens.get(at + 1);
    let in_name = after.is_some_and(|t| t.is('.') && !t.gap)
        && tokens.get(at + 2).is_some_and(|t| t.is_word() && !t.gap);
    let unclosed = boxed && !after.is_some_and(|t| t.is(']') || t.is(')') || t.is(','));
    in_name || unclosed || !tokens[at].unit.is_empty() || is_in_file_name(tokens, at)
}

/// What stands between a name and its number: where the number is, whether a colon or an equals
/// sign separates them, whether a bracket is open.
fn marks(tokens: &[Token<'_>], at: usize, from: usize) -> Option<(usize, bool, bool)> {
    let mut i = from;
    let mut separated = false;
    let mut boxed = false;
    for _ in 0..3 {
        match tokens.get(i)?.kind {
            Kind::Mark(':' | '=') => separated = true,
            Kind::Mark('#' | '-') => {}
            Kind::Mark('.') if !tokens[i].gap && i == at + 1 => {}
            Kind::Mark('[' | '(') => boxed = true,
            // A row of a boxed table.
            Kind::Mark('|') if at > 0 && tokens[at - 1].is('|') => separated = true,
            _ => break,
        }
        i += 1;
    }
    Some((i, separated, boxed))
}

fn is_bare_epoch(tokens: &[Token<'_>], at: usize, taken: &dyn Fn(usize) -> bool) -> bool {
    let named = |t: Option<&Token<'_>>| t.is_some_and(|t| matches!(t.kind, Kind::Int(_)));
    // "Train     1:  40%|####"
    if words::is_train(tokens[at].text)
        && named(tokens.get(at + 1))
        && tokens.get(at + 2).is_some_and(|t| t.is(':'))
        && tokens
            .get(at + 3)
            .is_some_and(|t| matches!(t.kind, Kind::Percent(_)))
        && tokens.get(at + 4).is_some_and(|t| t.kind == Kind::Bar)
    {
        return true;
    }
    words::is_train(tokens[at].text)
        && tokens.get(at + 1).is_some_and(|t| t.is(':'))
        && tokens
            .get(at + 2)
            .is_some_and(|t| matches!(t.kind, Kind::Int(_)))
        && tokens.get(at + 3).is_some_and(|t| t.is('['))
        && taken(at + 4)
}
