//! From bytes to marks: a small terminal, and the grammar of progress.
//!
//! Owns the screen model and everything that reads progress off it; pure, and independent
//! of how the bytes were cut into chunks. Must not know clocks, files or threads; may use
//! `model` alone.
//!
//! ```text
//! bytes ─> terminal ─> screen ─> (hint) ─> grammar ─> tracker ─> marks ─> milestones
//! ```
//!
//! **What doesn't depend on the cutting.** A line is read when the cursor leaves it: at `\r`,
//! `\n` or a vertical movement. What such lines say and [`ProgressReader::state`], after the
//! last byte and after [`ProgressReader::finish`], are functions of the bytes (and of the
//! instants at which they came) alone. The line under the cursor is read ahead at the end of
//! each `feed`, without its last word, which may be cut in two: such a mark is missing when the
//! bytes come in larger pieces, and may say what the whole line doesn't, but it is never taken
//! into account later. Of one phase and rank larger pieces give some of the marks that smaller
//! ones give, in their order.

mod about;
mod counters;
pub mod fingerprint;
mod grammar;
mod hint;
mod milestones;
mod pace;
mod reading;
mod row;
mod screen;
mod shown;
mod table;
mod terminal;
mod token;
mod tracker;
mod values;
mod words;

use std::collections::BTreeMap;

use crate::model::{Mark, Phase, ProgressState, Stream};

pub use milestones::Milestones;

use grammar::Grammar;
use reading::Reading;
use screen::Line;
use terminal::Terminal;
use tracker::Tracker;

/// What stands at the other end of an output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A terminal of this size: long lines wrap.
    Terminal {
        /// Characters in a row.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// A pipe or a file: lines never wrap, and are read up to 4096 characters.
    Plain,
}

/// Longest piece that is taken at once, so that a huge `feed` needs no huge memory.
const PIECE: usize = 64 * 1024;
/// Ranks beyond this many are not told apart from each other.
const MOST_RANKS: usize = 256;

/// Reads progress off the output of a program. Memory is bounded, whatever is fed.
pub struct ProgressReader {
    out: Channel,
    err: Channel,
    ranks: Ranks,
    /// The state with the lines under the cursors read ahead.
    ahead: Option<Ranks>,
    told: Told,
}

/// One stream: its screen and its grammar.
struct Channel {
    terminal: Terminal,
    grammar: Grammar,
    /// What the line under the cursor says so far.
    ahead: Option<Reading>,
}

/// The progress of each rank; rank 0 and output without a rank are the main one.
#[derive(Clone, Default)]
struct Ranks {
    main: Tracker,
    others: BTreeMap<u32, Tracker>,
}

/// The last mark of each phase and rank that was handed out.
#[derive(Default)]
struct Told(BTreeMap<(u8, Option<u32>), Mark>);

impl ProgressReader {
    /// A reader for a program whose standard output and error look like this. Where one
    /// terminal stands for both, everything is fed as [`Stream::Out`].
    pub fn new(out: Layout, err: Layout) -> Self {
        Self {
            out: Channel::new(out),
            err: Channel::new(err),
            ranks: Ranks::default(),
            ahead: None,
            told: Told::default(),
        }
    }

    /// Takes bytes as they came at `t` (seconds since the start; None where there is no
    /// clock) and returns the changes of progress that they showed, oldest first. A mark
    /// holds the whole state of its phase, not only what changed.
    pub fn feed(&mut self, stream: Stream, t: Option<f64>, bytes: &[u8]) -> Vec<Mark> {
        let mut marks = Vec::new();
        for piece in bytes.chunks(PIECE) {
            let lines = self.channel(stream).terminal.feed(piece);
            self.take(stream, t, lines, &mut marks);
        }
        self.look_ahead(stream, t, &mut marks);
        marks
    }

    /// The terminal behind this stream has a new size; nothing happens where there is none.
    pub fn resize(&mut self, stream: Stream, cols: u16, rows: u16) {
        self.channel(stream).terminal.resize(cols, rows);
    }

    /// Where training stands.
    pub fn state(&self) -> ProgressState {
        self.ahead.as_ref().unwrap_or(&self.ranks).state()
    }

    /// The output has ended: the last lines are complete as they are.
    pub fn finish(&mut self, t: Option<f64>) -> Vec<Mark> {
        let mut marks = Vec::new();
        for stream in [Stream::Out, Stream::Err] {
            let lines = self.channel(stream).terminal.finish();
            self.channel(stream).ahead = None;
            self.take(stream, t, lines, &mut marks);
        }
        self.ahead = None;
        marks
    }

    /// What stands on a stream's screen, and the cursor (row, column): for `fuzz/`.
    #[cfg(fuzzing)]
    pub fn drawn(&mut self, stream: Stream) -> (Vec<String>, (usize, usize)) {
        let screen = self.channel(stream).terminal.screen();
        (screen.lines(), screen.cursor())
    }

    fn channel(&mut self, stream: Stream) -> &mut Channel {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }

    fn take(&mut self, stream: Stream, t: Option<f64>, lines: Vec<Line>, marks: &mut Vec<Mark>) {
        // What the other stream has under its cursor was told already: it stays in the mark.
        let beside = self.channel(other(stream)).ahead.clone();
        for line in lines {
            let grammar = &mut self.channel(stream).grammar;
            grammar.notice(&line.text);
            let Some(reading) = grammar.read(&line) else {
                continue;
            };
            let mark = match &beside {
                Some(beside) => {
                    let mut shown = self.ranks.clone();
                    self.ranks.apply(reading.clone(), t, stream);
                    shown.apply(beside.clone(), t, other(stream));
                    shown.apply(reading, t, stream)
                }
                None => self.ranks.apply(reading, t, stream),
            };
            self.told.tell(mark, marks);
        }
    }

    /// Reads the lines under the cursors ahead, on a copy of the state.
    fn look_ahead(&mut self, stream: Stream, t: Option<f64>, marks: &mut Vec<Mark>) {
        self.channel(stream).look_ahead();
        self.ahead = None;
        for at in [other(stream), stream] {
            let Some(reading) = self.channel(at).ahead.clone() else {
                continue;
            };
            let ranks = self.ahead.get_or_insert_with(|| self.ranks.clone());
            let mark = ranks.apply(reading, t, at);
            if at == stream {
                self.told.tell(mark, marks);
            }
        }
    }
}

fn other(stream: Stream) -> Stream {
    match stream {
        Stream::Out => Stream::Err,
        Stream::Err => Stream::Out,
    }
}

impl Channel {
    fn new(layout: Layout) -> Self {
        Self {
            terminal: Terminal::new(layout, hint::may_matter),
            grammar: Grammar::default(),
            ahead: None,
        }
    }

    fn look_ahead(&mut self) {
        self.ahead = self.terminal.pending().and_then(|mut line| {
            line.text.truncate(without_last_word(&line.text).len());
            let matters = hint::may_matter(line.text.as_bytes());
            matters.then(|| self.grammar.read(&line)).flatten()
        });
    }
}

impl Ranks {
    fn apply(&mut self, reading: Reading, t: Option<f64>, stream: Stream) -> Option<Mark> {
        let rank = reading.rank.filter(|r| *r > 0);
        let room = self.others.len() < MOST_RANKS;
        let tracker = match rank {
            Some(rank) if room || self.others.contains_key(&rank) => {
                self.others.entry(rank).or_default()
            }
            Some(_) => return None,
            None => &mut self.main,
        };
        let phase = tracker.apply(reading, t)?;
        Some(tracker.mark(phase, t, stream))
    }

    fn state(&self) -> ProgressState {
        let lowest = self.others.values().find(|t| t.any());
        match lowest {
            Some(tracker) if !self.main.any() => tracker.state(),
            _ => self.main.state(),
        }
    }
}

impl Told {
    fn tell(&mut self, mark: Option<Mark>, marks: &mut Vec<Mark>) {
        let Some(mark) = mark else { return };
        let key = (mark.phase as u8, mark.rank.filter(|r| *r > 0));
        if self
            .0
            .get(&key)
            .is_some_and(|last| shows_the_same(last, &mark))
        {
            return;
        }
        self.0.insert(key, mark.clone());
        marks.push(mark);
    }
}

/// Whether two marks show the same numbers; rates and remaining time change by themselves.
fn shows_the_same(a: &Mark, b: &Mark) -> bool {
    let bits = |m: &Mark| m.loss.map(|l| l.0.to_bits());
    let metrics = a.metrics.len() == b.metrics.len()
        && a.metrics
            .iter()
            .zip(&b.metrics)
            .all(|(x, y)| x.0 == y.0 && x.1.0.to_bits() == y.1.0.to_bits());
    (a.epoch, a.epochs, a.step, a.steps, a.percent)
        == (b.epoch, b.epochs, b.step, b.steps, b.percent)
        && bits(a) == bits(b)
        && metrics
        && (a.phase == Phase::Train) == (b.phase == Phase::Train)
}

/// A line under the cursor may stop in the middle of a word or a number.
fn without_last_word(text: &str) -> &str {
    let cut = |c: char| c.is_alphanumeric() || matches!(c, '.' | ',' | '%' | '+' | '-' | '/' | ':');
    let kept = text.trim_end_matches(cut);
    if kept.len() == text.len() {
        text
    } else {
        kept.trim_end_matches(['/', ' '])
    }
}
