//! From bytes to the lines that matter.
//!
//! Owns cutting into lines, removing control characters, and how many lines of a kind are
//! told. What comes out doesn't depend on how the bytes were cut.

use std::collections::BTreeMap;

use memchr::memchr2;

use super::quotes::{Nearby, Quote, Quotes};
use super::ranks::label;
use super::{Kind, fingerprint, may_matter};
use crate::model::Stream;

/// So much of a line is looked at, bytes.
const LOOKED_AT: usize = 4096;
/// So much of a line is told, bytes.
const TOLD: usize = 2000;
/// So many lines of a kind are told, and then one in as many: the first ones matter.
const OF_A_KIND: u64 = 64;
/// A traceback has an end, or was none.
const TRACEBACK_LINES: u32 = 400;
/// A prompt is short.
const PROMPT: usize = 512;
/// How prompts that a debugger draws begin, and the ends of questions.
const PROMPTS: [&str; 4] = ["(Pdb) ", "(Pdb++) ", "ipdb> ", "(cuda-gdb) "];
const QUESTIONS: [&str; 3] = ["[y/N]", "[Y/n]", "[y/n]"];

/// Where lines come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
    /// A followed file, by its number.
    File(usize),
}

impl From<Stream> for Source {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Out => Self::Out,
            Stream::Err => Self::Err,
        }
    }
}

/// Finds the lines that matter in what a program prints. Memory is bounded.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    partial: BTreeMap<Source, Partial>,
    told: BTreeMap<Kind, u64>,
    quotes: Quotes,
}

/// A line that hasn't ended.
#[derive(Clone, Debug, Default)]
struct Partial {
    line: Vec<u8>,
    /// Its prompt was told.
    prompted: bool,
    /// Lines left of a traceback.
    traceback: u32,
    nearby: Nearby,
}

impl Lines {
    /// Nothing printed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes as they came and gives the lines that matter: control characters removed,
    /// at most 2000 bytes each, in their order. A prompt is given although its line has not
    /// ended.
    pub fn feed(&mut self, source: impl Into<Source>, bytes: &[u8]) -> Vec<String> {
        let Self {
            partial,
            told,
            quotes,
        } = self;
        let partial = partial.entry(source.into()).or_default();
        let mut found = Vec::new();
        let mut start = 0;
        while let Some(end) = memchr2(b'\n', b'\r', &bytes[start..]) {
            let end = start + end;
            let by_return = bytes[end] == b'\r';
            partial.end_line(bytes, start..end, by_return, (told, quotes), &mut found);
            start = end + 1;
        }
        if start > 0 {
            partial.nearby.pass(&bytes[..start]);
        }
        partial.hold(&bytes[start..]);
        if let Some(prompt) = partial.ask()
            && tells(told, Kind::Prompt)
        {
            found.push(prompt);
        }
        found
    }

    /// A followed file begins anew.
    pub fn turn(&mut self, source: Source) {
        if let Some(mut partial) = self.partial.remove(&source) {
            partial.nearby.close(&mut self.quotes);
        }
    }

    /// Nothing more will come: what matters of lines that never ended.
    pub fn finish(&mut self) -> Vec<(Source, String)> {
        let sources: Vec<Source> = self.partial.keys().copied().collect();
        let mut found = Vec::new();
        for source in sources {
            let open = self.partial.get(&source).map(|p| p.line.is_empty());
            if open == Some(false) {
                let texts = self.feed(source, b"\n");
                found.extend(texts.into_iter().map(|text| (source, text)));
            }
            self.turn(source);
        }
        found
    }

    /// The lines that a run may have failed of, with what stands around them: the first and the
    /// last ones of each kind, once [`Lines::finish`] was called.
    pub fn quotes(&mut self) -> Vec<Quote> {
        self.quotes.take()
    }
}

/// Whether one more line of this kind is told.
fn tells(told: &mut BTreeMap<Kind, u64>, kind: Kind) -> bool {
    let n = told.entry(kind).or_default();
    *n += 1;
    *n <= OF_A_KIND || n.is_multiple_of(OF_A_KIND)
}

impl Partial {
    /// The line that ends here, all of it or its last part.
    fn end_line(
        &mut self,
        bytes: &[u8],
        part: std::ops::Range<usize>,
        by_return: bool,
        (told, quotes): (&mut BTreeMap<Kind, u64>, &mut Quotes),
        found: &mut Vec<String>,
    ) {
        let mut held = std::mem::take(&mut self.line);
        let begins = held.is_empty().then_some(part.start);
        let rest = &bytes[part];
        let room = LOOKED_AT.saturating_sub(held.len());
        let line = if held.is_empty() {
            &rest[..rest.len().min(LOOKED_AT)]
        } else {
            held.extend_from_slice(&rest[..rest.len().min(room)]);
            &held[..]
        };
        // It comes after what was told before.
        if self.nearby.is_open() {
            self.nearby.ended(line, by_return, quotes);
        }
        if let Some((kind, text)) = self.look(line)
            && tells(told, kind)
        {
            if kind.is_failure() {
                let quote = self.nearby.quote(kind, &text, bytes, begins);
                self.nearby.open(quote, quotes);
            }
            found.push(text);
        }
        if begins.is_none() {
            self.nearby.pass_held();
        }
        held.clear();
        self.line = held;
        self.prompted = false;
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = LOOKED_AT.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.nearby.hold(bytes);
    }

    /// A whole line.
    fn look(&mut self, line: &[u8]) -> Option<(Kind, String)> {
        let within = self.traceback > 0;
        if !within && !may_matter(line) {
            return None;
        }
        let text = clean(line);
        if let Some(prompt) = prompt(&text) {
            return (!self.prompted).then_some((Kind::Prompt, prompt));
        }
        let kind = fingerprint(&text);
        let (_, plain) = label(&text);
        match kind {
            Some(Kind::Traceback) => self.traceback = TRACEBACK_LINES,
            _ if self.traceback == 0 => {}
            // Frames are indented, by spaces or by a box.
            _ if plain.is_empty() || !plain.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                self.traceback -= 1;
            }
            _ => self.traceback = 0,
        }
        // Outside a traceback a line like `ValueError: ...` is somebody's log.
        let told = match kind {
            Some(Kind::Exception) => within && self.traceback == 0,
            Some(Kind::Prompt) | None => false,
            Some(_) => true,
        };
        kind.filter(|_| told).map(|kind| (kind, bounded(text)))
    }

    /// The line so far, if it is a question.
    fn ask(&mut self) -> Option<String> {
        if self.prompted || self.line.is_empty() || !may_matter(&self.line) {
            return None;
        }
        let prompt = prompt(&clean(&self.line))?;
        self.prompted = true;
        Some(prompt)
    }
}

/// A prompt at the beginning of a line, or a question up to its end.
fn prompt(text: &str) -> Option<String> {
    if let Some(prompt) = PROMPTS.iter().find(|p| text.starts_with(**p)) {
        return Some((*prompt).to_owned());
    }
    let ends = QUESTIONS.iter();
    let end = ends
        .filter_map(|q| text.find(q).map(|at| at + q.len()))
        .min()?;
    (end <= PROMPT).then(|| text[..end].to_owned())
}

fn bounded(mut text: String) -> String {
    if text.len() > TOLD {
        let end = (0..=TOLD).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
    }
    text
}

/// Without escape sequences and control characters; a tab is a space.
pub fn clean(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                // CSI: up to a letter. OSC: up to BEL or ST.
                Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                Some(']') => while chars.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
                _ => {}
            },
            '\t' => out.push(' '),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}
