//! The paths (`std::fs::read`, `crate::{model, sys::fd}`) that a piece of code names.

use super::lexer::Token;

/// A path with its `use` tree unfolded, and the line of its first word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub segments: Vec<String>,
    pub line: usize,
}

impl Path {
    /// Whether the path begins with these segments.
    pub fn starts_with(&self, prefix: &[&str]) -> bool {
        self.segments.len() >= prefix.len() && self.segments.iter().zip(prefix).all(|(a, b)| a == b)
    }

    /// Whether a segment is called so.
    pub fn names(&self, segment: &str) -> bool {
        self.segments.iter().any(|s| s == segment)
    }
}

/// Every path, single words included.
pub fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_word(&tokens[at].text) {
            at = tree(tokens, at, &[], &mut found);
        } else {
            at += 1;
        }
    }
    found
}

/// Reads one (sub)tree that starts at `at` below `prefix`; returns where it ends.
fn tree(tokens: &[Token], mut at: usize, prefix: &[String], found: &mut Vec<Path>) -> usize {
    let line = tokens[at].line;
    let mut segments = prefix.to_vec();
    loop {
        match tokens.get(at).map(|t| t.text.as_str()) {
            Some("{") => return group(tokens, at, &segments, found),
            Some(word) if is_word(word) || word == "*" => {
                segments.push(word.to_owned());
                at += 1;
            }
            // A turbofish or a qualified path: what stands inside is read on its own.
            _ => break,
        }
        if tokens.get(at).is_some_and(|t| t.text == "::") {
            at += 1;
        } else {
            break;
        }
    }
    found.push(Path { segments, line });
    at
}

fn group(tokens: &[Token], open: usize, prefix: &[String], found: &mut Vec<Path>) -> usize {
    let mut at = open + 1;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "}" => return at + 1,
            "as" => at += 2,
            word if is_word(word) || word == "*" => at = tree(tokens, at, prefix, found),
            _ => at += 1,
        }
    }
    at
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
