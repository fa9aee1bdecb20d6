//! The text around lines that a run may have failed of.
//!
//! Owns how much of it is kept. What is kept doesn't depend on how the bytes were cut.

use std::collections::{BTreeMap, VecDeque};

use super::Kind;
use super::lines::clean;
use super::ranks::label;

/// So many lines before and after are kept.
const LINES: usize = 6;
/// They are looked for in so many bytes before.
const WINDOW: usize = 8192;
/// So much of each is kept, characters.
const LONGEST: usize = 240;
/// So many lines may wait for what comes after them, a stream.
const OPEN: usize = 8;
/// Of exceptions so many first and so many last ones are kept: which of them a run failed of is
/// known in the end.
const EXCEPTIONS: usize = 8;

/// A line and what stands around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The line, as it was told.
    pub text: String,
    before: Vec<String>,
    after: Vec<String>,
    kind: Kind,
    rank: Option<u32>,
}

impl Quote {
    /// Six lines before it at most, itself, and six after it: what it shares them with. Each is
    /// cut to 240 characters, without control characters; lines of other ranks are left out.
    pub fn lines(&self) -> Vec<String> {
        let text = cut(self.text.clone());
        let before = self.before.iter().cloned();
        before
            .chain([text])
            .chain(self.after.iter().cloned())
            .collect()
    }

    fn takes(&self, line: &str) -> bool {
        let other = label(line).0.filter(|_| self.rank.is_some());
        !line.trim().is_empty() && (other.is_none() || other == self.rank)
    }
}

/// What one stream may still have to say.
#[derive(Clone, Debug, Default)]
pub struct Nearby {
    /// The last bytes before the line that hasn't ended.
    before: Vec<u8>,
    /// The last bytes of that line.
    line: Vec<u8>,
    /// Lines that wait for what comes after them.
    open: VecDeque<Quote>,
    /// A line that ended with a carriage return: drawn over unless a newline comes next.
    returned: Option<String>,
}

impl Nearby {
    /// The line that begins at `start` of these bytes (None: in earlier ones) is this one.
    pub fn quote(&self, kind: Kind, text: &str, bytes: &[u8], start: Option<usize>) -> Quote {
        let mut window = self.before.clone();
        extend(&mut window, &bytes[..start.unwrap_or(0)]);
        let mut quote = Quote {
            text: text.to_owned(),
            before: Vec::new(),
            after: Vec::new(),
            kind,
            rank: label(text).0,
        };
        let drawn = |line: &[u8]| {
            let line = line.trim_ascii_end();
            let last = line.rsplit(|b| *b == b'\r').next().unwrap_or_default();
            cut(clean(last))
        };
        // Where the window begins, no line does.
        let whole = window.split(|b| *b == b'\n');
        let lines = whole.skip(usize::from(window.len() >= WINDOW)).map(drawn);
        for line in lines.filter(|line| quote.takes(line)).collect::<Vec<_>>() {
            quote.before.push(line);
        }
        let more = quote.before.len().saturating_sub(LINES);
        quote.before.drain(..more);
        quote
    }

    /// This one waits for what comes after it.
    pub fn open(&mut self, quote: Quote, quotes: &mut Quotes) {
        // It is the line that ended just now: those before it have it, whatever comes next.
        if let Some(line) = self.returned.take() {
            self.follow(&line, quotes);
        }
        if self.open.len() == OPEN {
            quotes.keep(self.open.pop_front());
        }
        self.open.push_back(quote);
    }

    /// Whether anything waits.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// A line has ended, with a carriage return or a newline.
    pub fn ended(&mut self, line: &[u8], by_return: bool, quotes: &mut Quotes) {
        let text = cut(clean(line));
        let returned = self.returned.take();
        if by_return {
            self.returned = (!text.trim().is_empty()).then_some(text);
            return;
        }
        let line = match returned {
            Some(returned) if text.trim().is_empty() => returned,
            _ => text,
        };
        self.follow(&line, quotes);
    }

    fn follow(&mut self, line: &str, quotes: &mut Quotes) {
        for quote in &mut self.open {
            if quote.after.len() < LINES && quote.takes(line) {
                quote.after.push(line.to_owned());
            }
        }
        while self.open.front().is_some_and(|q| q.after.len() >= LINES) {
            quotes.keep(self.open.pop_front());
        }
    }

    /// So much more of the line that hasn't ended.
    pub fn hold(&mut self, bytes: &[u8]) {
        extend(&mut self.line, bytes);
    }

    /// The line that began in earlier bytes has ended.
    pub fn pass_held(&mut self) {
        let line = std::mem::take(&mut self.line);
        extend(&mut self.before, &line);
    }

    /// The bytes before the line that begins now.
    pub fn pass(&mut self, bytes: &[u8]) {
        extend(&mut self.before, bytes);
    }

    /// Nothing comes after them.
    pub fn close(&mut self, quotes: &mut Quotes) {
        for quote in self.open.drain(..) {
            quotes.keep(Some(quote));
        }
    }
}

/// All that are kept.
#[derive(Clone, Debug, Default)]
pub struct Quotes {
    first: BTreeMap<Kind, Vec<Quote>>,
    last: BTreeMap<Kind, VecDeque<Quote>>,
}

impl Quotes {
    fn keep(&mut self, quote: Option<Quote>) {
        let Some(quote) = quote else { return };
        let most = if quote.kind == Kind::Exception {
            EXCEPTIONS
        } else {
            1
        };
        let first = self.first.entry(quote.kind).or_default();
        if first.len() < most {
            first.push(quote);
            return;
        }
        let last = self.last.entry(quote.kind).or_default();
        if last.len() == most {
            last.pop_front();
        }
        last.push_back(quote);
    }

    /// The first and the last ones of each kind.
    pub fn take(&mut self) -> Vec<Quote> {
        let first = std::mem::take(&mut self.first).into_values().flatten();
        let last = std::mem::take(&mut self.last).into_values().flatten();
        first.chain(last).collect()
    }
}

/// The last bytes of both.
fn extend(kept: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = &bytes[bytes.len().saturating_sub(WINDOW)..];
    let older = (WINDOW - bytes.len()).min(kept.len());
    kept.drain(..kept.len() - older);
    kept.extend_from_slice(bytes);
}

fn cut(mut line: String) -> String {
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
    }
    line
}
