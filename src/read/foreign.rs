//! Lines of other programs, and of source code, that use training's words.
//!
//! Owns what such a line looks like. Must not know what its words would mean.

use super::token::{Kind, Token};
use super::words;

/// How other programs begin a line: Ansible, GitHub's runner, systemd.
const HEADS: [&str; 6] = ["TASK [", "PLAY [", "##[", "::", "[  OK  ]", "Breakpoint "];

/// Whether this is no line of a training's log: code, a dump of settings, another program.
pub(super) fn is_foreign(line: &str, tokens: &[Token<'_>], body: usize) -> bool {
    let text = line.trim();
    HEADS.iter().any(|head| text.starts_with(head))
        || is_excerpt(tokens)
        || is_call(tokens, body)
        || is_prose(tokens)
}

/// Words that make sentences. Displays have one or two of them ("the loss is 0.5").
const OF_SENTENCES: [&str; 25] = [
    "the", "is", "are", "was", "were", "will", "would", "should", "could", "be", "been", "to",
    "that", "this", "these", "when", "than", "which", "you", "your", "we", "our", "they", "not",
    "because",
];

/// "At step 500/1000 the loss should be near 0.8.": three different such words, and no bar.
fn is_prose(tokens: &[Token<'_>]) -> bool {
    let of_sentence = |word: &&str| {
        let said = |t: &Token<'_>| t.is_word() && t.text.eq_ignore_ascii_case(word);
        tokens.iter().any(said)
    };
    // Most lines are too short for it.
    tokens.len() >= 8
        && OF_SENTENCES.iter().copied().filter(of_sentence).count() >= 3
        && !tokens.iter().any(|t| t.kind == Kind::Bar)
}

/// `   12 |   int step = 3;`: a compiler shows a line.
fn is_excerpt(tokens: &[Token<'_>]) -> bool {
    matches!(tokens, [number, bar, word, ..]
        if matches!(number.kind, Kind::Int(_)) && number.unit.is_empty()
            && bar.is('|') && word.is_word() && words::counter(word.text).is_none())
        && tokens.iter().any(|t| t.is(';') || t.is('{') || t.is('}'))
}

/// `Namespace(epochs=10, step=5)`, `    f(epoch=3, step=10)`: from the first word's bracket to
/// the end.
fn is_call(tokens: &[Token<'_>], body: usize) -> bool {
    let Some([name, open, ..]) = tokens.get(body..) else {
        return false;
    };
    let mut depth = 0_i32;
    let close = tokens.iter().skip(body + 1).position(|t| {
        depth += i32::from(t.is('(')) - i32::from(t.is(')'));
        depth == 0
    });
    name.is_word()
        && open.is('(')
        && !open.gap
        && close.is_some_and(|close| body + close + 2 == tokens.len())
        && words::counter(name.text).is_none()
        && tokens.iter().any(|t| t.is('='))
}

/// Whether the name at `at` is an option's: `--epoch 3`.
pub(super) fn is_option(tokens: &[Token<'_>], at: usize) -> bool {
    let dash = |i: usize| tokens.get(i).is_some_and(|t| t.is('-'));
    at >= 2 && dash(at - 1) && dash(at - 2) && !tokens[at].gap
}

/// Whether what follows the number at `at` makes a file's name of it: `epoch=3-step=10.ckpt`.
pub(super) fn is_in_file_name(tokens: &[Token<'_>], at: usize) -> bool {
    matches!(tokens.get(at + 1..), Some([dash, word, ..])
        if dash.is('-') && !dash.gap && word.is_word() && !word.gap)
}

/// Tracebacks: what they quote is source text, and tells of no progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Traceback {
    left: u32,
}

/// No traceback is longer, in lines that were looked at.
const LONGEST: u32 = 200;

impl Traceback {
    /// Takes in a line; whether it is a part of one.
    pub fn has(&mut self, line: &str) -> bool {
        let text = behind_rank(line);
        if text.starts_with("Traceback (most recent call last)") {
            self.left = LONGEST;
            return true;
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        if text.starts_with("  ") {
            return true;
        }
        self.left = 0;
        is_exception(text)
    }
}

/// The line without `[rank0]:`.
fn behind_rank(line: &str) -> &str {
    let rest = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let rest = rest.map(|(_, rest)| rest.strip_prefix(':').unwrap_or(rest));
    rest.map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest))
}

/// `ValueError: bad step 3/10`
fn is_exception(text: &str) -> bool {
    let Some((name, _)) = text.split_once(':') else {
        return false;
    };
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let ends = [
        "Error",
        "Exception",
        "Interrupt",
        "Exit",
        "Warning",
        "Timeout",
        "Failed",
    ];
    name.chars().all(plain) && (name.contains('.') || ends.iter().any(|end| name.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::token::tokens;

    fn foreign(line: &str) -> bool {
        let tokens = tokens(line);
        let body = crate::read::counters::body(&tokens);
        is_foreign(line, &tokens, body)
    }

    #[test]
    fn code_and_others_are_known() {
        for line in [
            "TASK [Step 3 of 5] ****",
            "Namespace(epochs=10, step=5, lr=0.1, loss='ce')",
            "   12 |   int step = 3, epoch = 2; float loss = 0.5;",
            "Breakpoint 1, step (epoch=3, loss=0.5) at train.c:12",
            "##[group]Run epoch 3",
            "    train(epoch=3, step=10)",
            "Training takes 3 epochs; at step 500/1000 the loss should be near 0.8.",
        ] {
            assert!(foreign(line), "{line}");
        }
        for line in [
            "Epoch(train) [1][50/468] loss: 0.5",
            "Epoch 3/10 step 5/20 loss=0.5",
            "12 | 0.5 | 0.6",
            "Train(3/10) loss=0.5 (best)",
            "Epoch 3 is done, the loss is 0.5",
            "At the end of epoch 3 the average loss is 0.52",
        ] {
            assert!(!foreign(line), "{line}");
        }
    }

    #[test]
    fn a_traceback_ends_with_its_exception() {
        let mut traceback = Traceback::default();
        for (line, wanted) in [
            ("Epoch 9/10", false),
            ("[rank0]: Traceback (most recent call last):", true),
            ("[rank0]:     f(epoch=3, step=10)", true),
            ("[rank0]: ValueError: bad step 3/10", true),
            ("Epoch 9/10", false),
            ("Traceback (most recent call last):", true),
            ("Epoch 10/10", false),
        ] {
            assert_eq!(traceback.has(line), wanted, "{line}");
        }
    }
}
