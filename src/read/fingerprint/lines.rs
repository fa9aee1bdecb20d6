//! From bytes to the lines that matter.
//!
//! Owns cutting into lines, removing control characters, and how many lines of a kind are
//! told. What comes out doesn't depend on how the bytes were cut.

use std::collections::BTreeMap;

use memchr::memchr2;

use super::patterns::without_rank;
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

/// Finds the lines that matter in what a program prints. Memory is bounded.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    out: Partial,
    err: Partial,
    told: BTreeMap<Kind, u64>,
}

/// A line that hasn't ended.
#[derive(Clone, Debug, Default)]
struct Partial {
    line: Vec<u8>,
    /// Its prompt was told.
    prompted: bool,
    /// Lines left of a traceback.
    traceback: u32,
}

impl Lines {
    /// Nothing printed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes as they came and gives the lines that matter: control characters removed,
    /// at most 2000 bytes each, in their order. A prompt is given although its line has not
    /// ended.
    pub fn feed(&mut self, stream: Stream, bytes: &[u8]) -> Vec<String> {
        let partial = match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        let mut found = Vec::new();
        let mut rest = bytes;
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            if partial.line.is_empty() {
                partial.look(&rest[..end.min(LOOKED_AT)], &mut found);
            } else {
                partial.hold(&rest[..end]);
                let line = std::mem::take(&mut partial.line);
                partial.look(&line, &mut found);
                partial.line = line;
                partial.line.clear();
            }
            partial.prompted = false;
            rest = &rest[end + 1..];
        }
        partial.hold(rest);
        partial.ask(&mut found);
        found.retain(|(kind, _)| {
            let n = self.told.entry(*kind).or_default();
            *n += 1;
            *n <= OF_A_KIND || n.is_multiple_of(OF_A_KIND)
        });
        found.into_iter().map(|(_, text)| text).collect()
    }
}

impl Partial {
    fn hold(&mut self, bytes: &[u8]) {
        let room = LOOKED_AT - self.line.len();
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// A whole line.
    fn look(&mut self, line: &[u8], found: &mut Vec<(Kind, String)>) {
        if self.traceback == 0 && !may_matter(line) {
            return;
        }
        let text = clean(line);
        if let Some(prompt) = prompt(&text) {
            if !self.prompted {
                found.push((Kind::Prompt, prompt));
            }
            return;
        }
        let kind = fingerprint(&text);
        let plain = without_rank(&text);
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
            Some(Kind::Exception) => self.traceback == 0 && !may_matter(line),
            Some(Kind::Prompt) | None => false,
            Some(_) => true,
        };
        if let (Some(kind), true) = (kind, told) {
            found.push((kind, bounded(text)));
        }
    }

    /// The line so far, if it is a question.
    fn ask(&mut self, found: &mut Vec<(Kind, String)>) {
        if self.prompted || self.line.is_empty() {
            return;
        }
        if may_matter(&self.line)
            && let Some(prompt) = prompt(&clean(&self.line))
        {
            self.prompted = true;
            found.push((Kind::Prompt, prompt));
        }
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
fn clean(line: &[u8]) -> String {
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
