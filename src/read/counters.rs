//! Counters: `3/10`, `3 of 10`, `147it [`; and where a line's message begins.
//!
//! Owns what stands for a count and what it counts. Must not know whether the line as a whole
//! shows progress.

use super::foreign::is_option;
use super::keyed::glued;
use super::token::{Kind, Token};
use super::words::{self, Counts};

/// `n/total`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counter {
    /// The first number's token.
    pub at: usize,
    /// The token behind it.
    pub end: usize,
    pub n: f64,
    pub total: Option<f64>,
    /// What it counts, where its name says.
    pub counts: Option<Counts>,
    pub name: String,
    /// A bar stands between the name and the numbers.
    pub behind_bar: bool,
    /// Counts bytes.
    pub bytes: bool,
    /// A measure's own ratio: `accuracy: 357/400`.
    pub of_measure: bool,
}

/// Where the message begins, behind dates, clocks, levels and ranks.
pub(super) fn body(tokens: &[Token<'_>]) -> usize {
    let mut at = 0;
    while let Some(t) = tokens.get(at) {
        let next = match t.kind {
            Kind::Mark('[') if at == 0 && is_tagged(tokens) => 9,
            Kind::Opaque | Kind::Clock(_) => at + 1,
            Kind::Word if words::is_level(t.text) || (at == 0 && is_glog(t.text)) => at + 1,
            Kind::Int(_) if short_date(&tokens[at..]) => at + 3,
            Kind::Int(_) if at > 0 && matches!(tokens[at - 1].kind, Kind::Clock(_)) => at + 1,
            Kind::Word if at > 0 && t.text.contains('.') => at + 1,
            Kind::Mark('-' | '|' | ':' | '>' | ',' | ']') if at > 0 => at + 1,
            Kind::Int(_) if at > 0 && tokens[at - 1].is(':') && !tokens[at - 1].gap => at + 1,
            Kind::Mark('[' | '(') => match prefix_group(&tokens[at..]) {
                Some(len) => at + len,
                None => return at,
            },
            _ => return at,
        };
        at = next;
    }
    at
}

/// mpirun's `[1,0]<stdout>:`.
fn is_tagged(tokens: &[Token<'_>]) -> bool {
    matches!(tokens, [_, _, comma, _, close, open, _, end, colon, ..]
        if comma.is(',') && close.is(']') && open.is('<') && end.is('>') && colon.is(':'))
}

/// `11/30` before a clock: the month and the day.
fn short_date(tokens: &[Token<'_>]) -> bool {
    matches!(tokens, [_, slash, day, clock, ..]
        if slash.is('/')
            && !slash.gap
            && matches!(day.kind, Kind::Int(_))
            && matches!(clock.kind, Kind::Clock(_))
            && clock.text.matches(':').count() == 2)
}

/// Google's log prefix: `I1130 12:00:00.123456 1234 train.py:100]`.
fn is_glog(word: &str) -> bool {
    word.len() == 5
        && word.starts_with(['I', 'W', 'E', 'F'])
        && word[1..].bytes().all(|b| b.is_ascii_digit())
}

/// `[2026-11-30 12:00:00,123]`, `[INFO]`, `[rank0]`, `[11/30 12:00:00 d2.utils]`: its length.
fn prefix_group(tokens: &[Token<'_>]) -> Option<usize> {
    let close = if tokens[0].is('[') { ']' } else { ')' };
    let end = tokens.iter().take(12).position(|t| t.is(close))?;
    let inside = &tokens[1..end];
    let dated = inside.iter().enumerate().any(|(i, t)| match t.kind {
        Kind::Opaque => true,
        Kind::Clock(_) => {
            t.text.matches(':').count() == 2 && !inside.get(i + 1).is_some_and(|t| t.is('<'))
        }
        _ => false,
    });
    let named = inside.iter().any(|t| {
        t.is_word() && (words::is_level(t.text) || words::is_rank(t.text) || t.text.contains(".py"))
    });
    (dated || named).then_some(end + 1)
}

/// All counters behind the prefix.
pub(super) fn find(tokens: &[Token<'_>], body: usize) -> Vec<Counter> {
    let mut list = Vec::new();
    let mut at = body;
    // The word behind a counter that names it names no other one.
    let mut spent = None;
    while at + 2 < tokens.len() {
        match counter(tokens, at, spent) {
            Some((counter, name)) => {
                at = counter.end;
                spent = name.or(spent);
                list.push(counter);
            }
            None => at += 1,
        }
    }
    list
}

/// The counter that begins at `at`, and the word behind it if that is its name.
fn counter(
    tokens: &[Token<'_>],
    at: usize,
    spent: Option<usize>,
) -> Option<(Counter, Option<usize>)> {
    let (first, mid, last) = (&tokens[at], &tokens[at + 1], &tokens[at + 2]);
    let n = first.number().filter(|n| *n >= 0.0)?;
    let mid_of = |t: &Token<'_>| t.is_word() && t.text == "of";
    if mid.is_word() && mid.text == "out" && mid_of(last) {
        return out_of(tokens, at, n, spent);
    }
    let of = mid.is_word() && matches!(mid.text, "of" | "de" | "von" | "sur" | "из");
    if !(mid.is('/') || (of && by_points(last))) {
        return None;
    }
    let glued_slash = |t: Option<&Token<'_>>| t.is_some_and(|t| t.is('/') && !t.gap);
    let before = at.checked_sub(1).map(|i| &tokens[i]);
    if (glued_slash(before) && !first.gap) || glued_slash(tokens.get(at + 3)) {
        return None;
    }
    let unknown = last.is('?') || (last.is_word() && last.text == "Unknown");
    let total = match last.number() {
        Some(total) => Some(total),
        None if unknown => None,
        None => return None,
    };
    let word_after = tokens.get(at + 3).filter(|t| t.is_word());
    let bytes = words::scale(last.unit).1 || word_after.is_some_and(|t| words::is_bytes(t.text));
    let (name, behind_bar) = name_before(tokens, at, spent);
    let label = name.and_then(words::counter).map(|(c, _)| c);
    let (n, total) = scaled((n, first), (total, last), label, bytes)?;
    if !n.is_finite() || total.is_some_and(|t| t < 1.0 || n > t) {
        return None;
    }
    // "第 3/10 轮 [120/500]": the noun belongs to what stands behind the sign of ordinals.
    let ordinal = before.is_some_and(|t| t.text.ends_with('第'));
    let behind = word_after
        .filter(|_| label.is_none() && (ordinal || !keys_a_number(tokens, at + 3)))
        .and_then(|t| words::counter(t.text));
    // "4/50epoch started"
    let label = label.or_else(|| glued(last));
    let name = match behind {
        Some(_) => word_after.map(|t| t.text),
        None => name,
    };
    let named_behind = behind.is_some().then_some(at + 3);
    let counter = Counter {
        at,
        end: at + 3,
        n,
        total,
        counts: label.or(behind.map(|(c, _)| c)),
        name: name.unwrap_or_default().to_lowercase(),
        behind_bar: behind_bar && behind.is_none(),
        bytes,
        of_measure: label.is_none()
            && name.is_some_and(|n| words::is_measure(n) || n.eq_ignore_ascii_case("correct")),
    };
    Some((counter, named_behind))
}

/// The two numbers with their units put in; None where fractions can't be counts.
fn scaled(
    (n, first): (f64, &Token<'_>),
    (total, last): (Option<f64>, &Token<'_>),
    label: Option<Counts>,
    bytes: bool,
) -> Option<(f64, Option<f64>)> {
    let (own, _) = words::scale(first.unit);
    let (factor, _) = words::scale(last.unit);
    let scaled = factor > 1.0 || bytes;
    let fraction = matches!(first.kind, Kind::Float(_)) || matches!(last.kind, Kind::Float(_));
    // "Epoch: 1.11/4.0"
    let of_epochs = fraction && label == Some(Counts::Epochs);
    // "Schritt 1.250 von 5.000"
    let points = fraction && label.is_some() && !of_epochs && by_points(first) && by_points(last);
    if fraction && !scaled && !of_epochs && !points {
        return None;
    }
    let thousand = |t: &Token<'_>| {
        if points && t.text.contains('.') {
            1e3
        } else {
            1.0
        }
    };
    let round = |n: f64| if of_epochs { n } else { n.round() };
    let total = total.map(|t| round(t * factor * thousand(last)));
    Some((round(n * own * thousand(first)), total))
}

/// `batch # 12 out of 100`
fn out_of(
    tokens: &[Token<'_>],
    at: usize,
    n: f64,
    spent: Option<usize>,
) -> Option<(Counter, Option<usize>)> {
    let total = tokens.get(at + 3)?.number()?;
    let (name, _) = name_before(tokens, at, spent);
    let counts = name.and_then(words::counter).map(|(c, _)| c)?;
    (n <= total).then(|| {
        let counter = Counter {
            at,
            end: at + 4,
            n,
            total: Some(total),
            counts: Some(counts),
            name: name.unwrap_or_default().to_lowercase(),
            behind_bar: false,
            bytes: false,
            of_measure: false,
        };
        (counter, None)
    })
}

/// `5.000`, or a number without a point.
fn by_points(number: &Token<'_>) -> bool {
    match number.text.split_once('.') {
        Some((head, tail)) => head.len() <= 3 && tail.len() == 3,
        None => matches!(number.kind, Kind::Int(_)),
    }
}

/// Whether this word is the name of the number behind it.
fn keys_a_number(tokens: &[Token<'_>], at: usize) -> bool {
    tokens[at + 1..]
        .iter()
        .take(3)
        .find(|t| !matches!(t.kind, Kind::Mark(':' | '=' | '[' | '(' | '#')))
        .is_some_and(|t| t.number().is_some())
}

/// The word that names the counter at `at`, and whether a bar stands between them.
fn name_before<'a>(
    tokens: &[Token<'a>],
    at: usize,
    spent: Option<usize>,
) -> (Option<&'a str>, bool) {
    let mut bar = false;
    let mut i = at;
    for _ in 0..10 {
        let Some(before) = i.checked_sub(1) else {
            break;
        };
        i = before;
        match tokens[i].kind {
            Kind::Bar => bar = true,
            Kind::Percent(_) | Kind::Mark('[' | '(' | ':' | '=' | '#' | '-' | '|' | '>') => {}
            Kind::Mark(')') => match tokens[..i].iter().rposition(|t| t.is('(')) {
                Some(open) if i - open <= 3 => i = open,
                _ => break,
            },
            Kind::Word if spent == Some(i) || is_option(tokens, i) => break,
            Kind::Word => return (Some(tokens[i].text), bar),
            // "Ep. 3/10"
            Kind::Mark('.') if i > 0 && tokens[i - 1].is_word() && !tokens[i].gap => {}
            _ => break,
        }
    }
    (None, bar)
}

/// `147it [00:12, 11.19it/s]`: a bar whose total isn't known.
pub(super) fn without_total<'a>(tokens: &[Token<'a>]) -> Option<(u64, &'a str)> {
    tokens.windows(3).find_map(|w| {
        let Kind::Int(n) = w[0].kind else { return None };
        let boxed = w[1].is('[') && matches!(w[2].kind, Kind::Clock(_));
        let counted = !w[0].unit.is_empty() && !w[0].unit.contains('/') && n >= 0.0;
        let (factor, bytes) = words::scale(w[0].unit);
        (boxed && counted && !bytes).then_some(((n * factor) as u64, w[0].unit))
    })
}

/// Slurm's `srun --label`: `0: step 10/100`, before a line that names its counter.
pub(super) fn labelled_rank(tokens: &[Token<'_>]) -> Option<u32> {
    match (tokens.first()?.kind, tokens.get(1)?, tokens.get(2)?) {
        (Kind::Int(n), colon, next) if colon.is(':') && !colon.gap && next.gap && n < 1e6 => {
            Some(n as u32)
        }
        _ => None,
    }
}

/// `[rank0]`, `Rank: 0`, `rank=0`, and mpirun's `[1,0]<stdout>`.
pub(super) fn rank(tokens: &[Token<'_>]) -> Option<u32> {
    let head = &tokens[..tokens.len().min(24)];
    let integer = |t: Option<&Token<'_>>| match t?.kind {
        Kind::Int(n) if (0.0..1e6).contains(&n) => Some(n as u32),
        _ => None,
    };
    let tagged = head.windows(6).take(1).find_map(|w| {
        let tag = w[0].is('[') && w[2].is(',') && w[4].is(']') && w[5].is('<');
        integer(tag.then_some(&w[3]))
    });
    tagged.or_else(|| {
        (0..head.len()).find_map(|i| {
            if !(head[i].is_word() && words::is_rank(head[i].text)) {
                return None;
            }
            let skip = usize::from(head.get(i + 1).is_some_and(|t| t.is(':') || t.is('=')));
            integer(head.get(i + 1 + skip))
        })
    })
}
