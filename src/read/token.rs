//! A line cut into words, numbers, clocks, bars and punctuation.
//!
//! Owns how numbers are written. Must not know what a word means, except where a counter is
//! glued to its name (`step100`).

use super::words;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// A name: letters, digits, `_`, and `-./@` inside.
    Word,
    /// A whole number.
    Int(f64),
    /// Any other number; NaN and infinity as well.
    Float(f64),
    /// A number with a percent sign.
    Percent(f64),
    /// `00:12`, `1:02:03`: in seconds.
    Clock(f64),
    /// A run of a progress bar's glyphs, its frame included.
    Bar,
    /// A date, a version, an address: digits that count nothing.
    Opaque,
    /// One punctuation mark, full-width ones as their ASCII twins.
    Mark(char),
}

/// One token of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    /// Letters glued to a number: `k`, `it`, `ms/step`.
    pub unit: &'a str,
    /// Whitespace, or the line's start, stands before it.
    pub gap: bool,
    /// How many blanks stand before it.
    pub blanks: usize,
}

impl Token<'_> {
    /// The value of a number.
    pub fn number(&self) -> Option<f64> {
        match self.kind {
            Kind::Int(n) | Kind::Float(n) => Some(n),
            _ => None,
        }
    }

    pub fn is(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }

    pub fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }
}

/// A line longer than this is cut: no display of progress is.
const MOST_TOKENS: usize = 400;

/// Cuts a line into tokens.
pub(super) fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut list: Vec<Token<'_>> = Vec::with_capacity(32);
    let mut rest = line;
    let mut blanks = 1;
    while let Some(c) = rest.chars().next() {
        if c.is_whitespace() {
            blanks += if c == '\t' { 2 } else { 1 };
            rest = &rest[c.len_utf8()..];
            continue;
        }
        if matches!(c, '"' | '\'' | '`' | '\u{fffd}') || c.is_control() {
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (kind, len, unit) = next(rest, list.last(), blanks > 0);
        let (text, after) = rest.split_at(len);
        list.push(Token {
            kind,
            text,
            unit: &text[text.len() - unit..],
            gap: blanks > 0,
            blanks,
        });
        rest = after;
        blanks = 0;
        if list.len() == MOST_TOKENS {
            break;
        }
    }
    list
}

/// Kind, length, and length of the unit at its end.
fn next(rest: &str, before: Option<&Token<'_>>, gap: bool) -> (Kind, usize, usize) {
    let c = rest.chars().next().unwrap_or(' ');
    if let Some(len) = bar(rest, before, gap) {
        return (Kind::Bar, len, 0);
    }
    if c.is_ascii_digit() || starts_number(rest, before, gap) {
        return number(rest, before, gap);
    }
    if c.is_alphabetic() || c == '_' {
        return word(rest, before, gap);
    }
    (Kind::Mark(ascii_twin(c)), c.len_utf8(), 0)
}

fn ascii_twin(c: char) -> char {
    match c {
        '：' => ':',
        '＝' => '=',
        '，' | '、' => ',',
        '【' | '［' => '[',
        '】' | '］' => ']',
        '（' => '(',
        '）' => ')',
        '％' => '%',
        '／' => '/',
        '│' | '┃' | '｜' | '║' => '|',
        _ => c,
    }
}

/// A sign or a point that belongs to the number after it.
fn starts_number(rest: &str, before: Option<&Token<'_>>, gap: bool) -> bool {
    let free =
        gap || before.is_none_or(|t| matches!(t.kind, Kind::Mark(m) if m != '/' && m != '.'));
    let bytes = rest.as_bytes();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    match bytes.first() {
        Some(b'-' | b'+') => free && (digit(1) || (bytes.get(1) == Some(&b'.') && digit(2))),
        Some(b'.') => free && digit(1),
        _ => false,
    }
}

fn word(rest: &str, before: Option<&Token<'_>>, gap: bool) -> (Kind, usize, usize) {
    let mut end = 0;
    let mut chars = rest.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        let inside = matches!(c, '-' | '.' | '/' | '@' | '\'')
            && i > 0
            && chars
                .peek()
                .is_some_and(|(_, n)| n.is_alphanumeric() || *n == '_');
        if !(c.is_alphanumeric() || c == '_' || inside) {
            break;
        }
        let digit_next = inside && chars.peek().is_some_and(|(_, n)| n.is_ascii_digit());
        if (c.is_ascii_digit() || (digit_next && c == '-')) && words::counts(&rest[..i]) {
            break;
        }
        if i > 0 && (words::is_ideograph(c) != words::is_ideograph_at_start(rest)) {
            break;
        }
        end = i + c.len_utf8();
    }
    let text = &rest[..end];
    let free = gap || before.is_none_or(|t| !t.is('/') && !t.is('.'));
    if free && let Some(value) = words::not_finite(text) {
        return (Kind::Float(value), end, 0);
    }
    (Kind::Word, end, 0)
}

fn number(rest: &str, before: Option<&Token<'_>>, gap: bool) -> (Kind, usize, usize) {
    let bytes = rest.as_bytes();
    let sign = usize::from(matches!(bytes[0], b'-' | b'+'));
    let mut end = sign + digits(&bytes[sign..]);
    let grouped = thousands(rest, sign, end);
    let commas = grouped > end;
    end = grouped;
    if bytes.get(end) == Some(&b':') && digits(&bytes[end + 1..]) == 2 && !commas && sign == 0 {
        let (seconds, len) = clock(rest);
        return (Kind::Clock(seconds), len, 0);
    }
    let mut whole = true;
    let listed = !gap && before.is_some_and(|t| t.is(','));
    let decimal_comma = !commas && !listed && has_decimal_comma(bytes, sign, end);
    if decimal_comma {
        end += 1 + digits(&bytes[end + 1..]);
        whole = false;
    }
    if bytes.get(end) == Some(&b'.') && (digits(&bytes[end + 1..]) > 0 || ends_number(rest, end)) {
        end += 1 + digits(&bytes[end + 1..]);
        whole = false;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let exponent = digits(&bytes[end + 1 + signed..]);
        if exponent > 0 {
            end += 1 + signed + exponent;
            whole = false;
        }
    }
    let free = gap || before.is_none_or(|t| !t.is('.') && !t.is_word());
    if let Some(len) = opaque(rest, end).filter(|_| free) {
        return (Kind::Opaque, len, 0);
    }
    let value = if commas {
        rest[..end].replace([',', '_', '\''], "").parse()
    } else if decimal_comma {
        rest[..end].replace(',', ".").parse()
    } else {
        rest[..end].parse()
    };
    let Ok(value) = value else {
        return (Kind::Opaque, end.max(1), 0);
    };
    if rest[end..].starts_with('%') || rest[end..].starts_with('％') {
        let len = rest[end..].chars().next().map_or(0, char::len_utf8);
        return (Kind::Percent(value), end + len, 0);
    }
    let unit = unit(&rest[end..]);
    let kind = if whole {
        Kind::Int(value)
    } else {
        Kind::Float(value)
    };
    (kind, end + unit, unit)
}

/// Where `1,234,567`, `1_234_567` or `1'234'567` ends, whose first digits end at `end`.
fn thousands(rest: &str, sign: usize, mut end: usize) -> usize {
    let bytes = rest.as_bytes();
    if (1..=3).contains(&(end - sign)) && !rest[sign..].starts_with("0,") {
        let mark = bytes
            .get(end)
            .filter(|mark| matches!(mark, b',' | b'_' | b'\''));
        while mark.is_some() && bytes.get(end) == mark && digits(&bytes[end + 1..]) == 3 {
            end += 4;
        }
    }
    end
}

/// `0,53` as half the world writes it, and no list: `0,1,2`.
fn has_decimal_comma(bytes: &[u8], sign: usize, comma: usize) -> bool {
    let behind = bytes.get(comma + 1..).map_or(0, digits);
    let after = bytes.get(comma + 1 + behind);
    let listed = after == Some(&b',')
        && bytes
            .get(comma + 2 + behind)
            .is_some_and(u8::is_ascii_digit);
    bytes.get(comma) == Some(&b',')
        && (1..=4).contains(&(comma - sign))
        && behind >= 2
        && !listed
        && !matches!(after, Some(b'.' | b':' | b'/' | b'-' | b')' | b']' | b'}'))
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// A point that ends a number (`1.`), not a sentence or a name.
fn ends_number(rest: &str, point: usize) -> bool {
    matches!(
        rest.as_bytes().get(point + 1),
        Some(b',' | b')' | b']' | b'}')
    )
}

/// The letters glued to a number: `it`, `k`, `ms/step`, `ksamples/s`.
fn unit(rest: &str) -> usize {
    let letters = |s: &str| {
        s.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ' && c != '_')
            .unwrap_or(s.len())
    };
    let first = letters(rest);
    if let Some(after) = rest[first..].strip_prefix('/') {
        let second = letters(after);
        let rate = first > 0 || matches!(&after[..second], "s" | "sec" | "it" | "step");
        if second > 0 && rate {
            return first + 1 + second;
        }
    }
    first
}

/// Dates, versions, addresses, hexadecimal numbers: digits joined by `-./:`.
fn opaque(rest: &str, end: usize) -> Option<usize> {
    let bytes = rest.as_bytes();
    let joined = |i: usize, mark: u8| {
        bytes.get(i) == Some(&mark) && bytes.get(i + 1).is_some_and(u8::is_ascii_digit)
    };
    let first = digits(bytes);
    let hex = bytes.starts_with(b"0x") || bytes.starts_with(b"0X");
    let date = first == 4 && joined(first, b'-');
    let slashed = joined(first, b'/') && {
        let second = first + 1 + digits(&bytes[first + 1..]);
        joined(second, b'/') || (first == 4 && bytes.get(second) == Some(&b'/'))
    };
    let dotted = joined(end, b'.');
    if !(hex || date || slashed || dotted) {
        return None;
    }
    let len = bytes
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'/' | b':')))
        .unwrap_or(bytes.len());
    // A date and a clock glued by T, with the fraction that Python writes behind a comma.
    Some(len.max(1))
}

/// `MM:SS`, `H:MM:SS`, `D:HH:MM:SS`, each with a fraction.
fn clock(rest: &str) -> (f64, usize) {
    let bytes = rest.as_bytes();
    let mut end = digits(bytes);
    let mut parts = vec![rest[..end].parse::<f64>().unwrap_or(0.0)];
    while bytes.get(end) == Some(&b':') && digits(&bytes[end + 1..]) == 2 && parts.len() < 4 {
        parts.push(rest[end + 1..end + 3].parse().unwrap_or(0.0));
        end += 3;
    }
    let mut seconds = match parts[..] {
        [m, s] => m * 60.0 + s,
        [h, m, s] => h * 3600.0 + m * 60.0 + s,
        [d, h, m, s] => d * 86_400.0 + h * 3600.0 + m * 60.0 + s,
        _ => 0.0,
    };
    // A fraction, unless it's the dots behind fastai's remaining time.
    if matches!(bytes.get(end), Some(b'.' | b',')) {
        let fraction = digits(&bytes[end + 1..]);
        if fraction > 0 {
            seconds += format!("0.{}", &rest[end + 1..end + 1 + fraction])
                .parse::<f64>()
                .unwrap_or(0.0);
            end += 1 + fraction;
        }
    }
    (seconds, end)
}

fn is_glyph(c: char) -> bool {
    matches!(c, '\u{2500}' | '\u{2501}' | '\u{2504}'..='\u{250b}' | '\u{2574}'..='\u{257f}'
        | '\u{2580}'..='\u{259f}' | '\u{25a0}'..='\u{25ff}' | '\u{2800}'..='\u{28ff}')
}

fn is_ascii_fill(c: char) -> bool {
    matches!(c, '=' | '#' | '>' | '-' | '.' | '*' | '+' | ' ' | '_' | '~')
}

/// Frames shorter than this around ASCII fill are brackets, not bars.
const SHORTEST_FRAME: usize = 5;

/// The length of the bar that starts here, if one does.
fn bar(rest: &str, before: Option<&Token<'_>>, gap: bool) -> Option<usize> {
    let c = rest.chars().next()?;
    if is_glyph(c) {
        let len: usize = rest
            .chars()
            .take_while(|c| is_glyph(*c))
            .map(char::len_utf8)
            .sum();
        return (rest[..len].chars().count() >= 2).then_some(len);
    }
    let close = match c {
        '|' => '|',
        '[' => ']',
        '(' => ')',
        _ => return None,
    };
    let inside = &rest[1..];
    // tqdm: whatever stands between `30%|` and the next `|` is the bar.
    if c == '|' && !gap && before.is_some_and(|t| matches!(t.kind, Kind::Percent(_))) {
        if let Some(end) = inside.find('|') {
            return Some(end + 2);
        }
        let len: usize = inside
            .chars()
            .take_while(|c| is_glyph(*c) || is_ascii_fill(*c))
            .map(char::len_utf8)
            .sum();
        return Some(len + 1);
    }
    let mut len = 0;
    for (count, c) in inside.chars().enumerate() {
        if c == close {
            let blank = inside[..len].trim().is_empty() && c == '|' && count < 2 * SHORTEST_FRAME;
            return (count >= SHORTEST_FRAME && !blank).then_some(len + 2);
        }
        if !(is_glyph(c) || is_ascii_fill(c)) {
            return None;
        }
        len += c.len_utf8();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(line: &str) -> Vec<Kind> {
        tokens(line).iter().map(|t| t.kind).collect()
    }

    #[test]
    fn numbers_as_programs_write_them() {
        assert_eq!(kinds("12"), [Kind::Int(12.0)]);
        assert_eq!(kinds("1,234,567"), [Kind::Int(1_234_567.0)]);
        assert_eq!(kinds("-1.5e-03"), [Kind::Float(-0.0015)]);
        assert_eq!(kinds("84.07％"), [Kind::Percent(84.07)]);
        assert_eq!(kinds("1:02:03"), [Kind::Clock(3723.0)]);
        assert_eq!(tokens("49ms/step")[0].unit, "ms/step");
        assert_eq!(tokens("147it")[0].unit, "it");
        assert_eq!(kinds("1_234_567"), [Kind::Int(1_234_567.0)]);
        assert_eq!(kinds("0,4001"), [Kind::Float(0.4001)]);
        assert_eq!(kinds("92,5125 %")[0], Kind::Float(92.5125));
        assert_eq!(kinds("0,250"), [Kind::Float(0.25)]);
        assert_eq!(kinds("0,11,22").len(), 5);
        assert!(matches!(kinds("loss=nan")[..], [_, _, Kind::Float(n)] if n.is_nan()));
    }

    #[test]
    fn what_counts_nothing() {
        for text in [
            "2026-11-30",
            "2026/11/30",
            "3.12.1",
            "10.0.0.1:8080",
            "0x7f00",
        ] {
            assert_eq!(kinds(text), [Kind::Opaque], "{text}");
        }
        assert_eq!(kinds("checkpoint-60"), [Kind::Word]);
        assert_eq!(kinds("train.py"), [Kind::Word]);
    }

    #[test]
    fn a_number_glued_to_its_name() {
        assert_eq!(kinds("Epoch1"), [Kind::Word, Kind::Int(1.0)]);
        assert_eq!(kinds("layer1"), [Kind::Word]);
    }

    #[test]
    fn bars() {
        for bar in [
            "━━━━╸───",
            "[=====>....]",
            "[####----]",
            "|###     |",
            "⣿⣿⣿⣀",
        ] {
            assert_eq!(kinds(bar)[0], Kind::Bar, "{bar}");
        }
        assert_eq!(kinds("30%|#4        | 3/10")[1], Kind::Bar);
        assert_eq!(kinds("[12]")[0], Kind::Mark('['));
    }
}
