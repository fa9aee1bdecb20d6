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
mod company;
mod counters;
mod csv;
pub mod fingerprint;
mod foreign;
mod frame;
mod grammar;
mod hint;
mod keyed;
mod milestones;
mod pace;
mod pairs;
mod pattern;
mod percent;
mod reading;
mod row;
mod said;
mod scalars;
mod screen;
mod shown;
mod table;
mod terminal;
mod times;
mod token;
mod tracker;
mod values;
mod words;

use std::collections::BTreeMap;

use crate::model::{Mark, Phase, ProgressState, Stream};

pub use milestones::Milestones;
pub use pattern::Patterns;
pub use said::{Said, is_sound};
pub use scalars::{EventFile, Scalar, Scalars};

use grammar::Grammar;
use hint::Wanted;
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
/// Standard output and standard error.
const STREAMS: usize = 2;
/// Files beyond this many are not told apart from each other.
const MOST_FILES: usize = 64;

/// Reads progress off the output of a program, and off files that it writes. Memory is bounded,
/// whatever is fed.
pub struct ProgressReader {
    /// Standard output, standard error, and then the files.
    channels: Vec<Channel>,
    patterns: Patterns,
    ranks: Ranks,
    /// The state with the lines under the cursors read ahead.
    ahead: Option<Ranks>,
    told: Told,
}

/// One stream or file: its screen and its grammar.
struct Channel {
    /// None for a file.
    stream: Option<Stream>,
    terminal: Terminal,
    grammar: Grammar,
    patterns: Patterns,
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
        Self::with_patterns(out, err, Patterns::default())
    }

    /// The same, and a line that fits one of these patterns says what the pattern says.
    pub fn with_patterns(out: Layout, err: Layout, patterns: Patterns) -> Self {
        let channels = [(Stream::Out, out), (Stream::Err, err)];
        let channel = |(stream, layout)| Channel::new(Some(stream), layout, patterns.clone());
        Self {
            channels: channels.map(channel).into(),
            patterns,
            ranks: Ranks::default(),
            ahead: None,
            told: Told::default(),
        }
    }

    /// Takes bytes as they came at `t` (seconds since the start; None where there is no
    /// clock) and returns the changes of progress that they showed, oldest first. A mark
    /// holds the whole state of its phase, not only what changed.
    pub fn feed(&mut self, stream: Stream, t: Option<f64>, bytes: &[u8]) -> Vec<Mark> {
        self.feed_channel(stream as usize, t, bytes)
    }

    /// Takes what was added to a file; files are numbered from 0.
    pub fn feed_file(&mut self, file: usize, t: Option<f64>, bytes: &[u8]) -> Vec<Mark> {
        self.feed_channel(channel_of(file), t, bytes)
    }

    /// The file was begun anew: its last line is complete as it is.
    pub fn turn_file(&mut self, file: usize, t: Option<f64>) -> Vec<Mark> {
        let mut marks = Vec::new();
        self.finish_channel(channel_of(file), t, &mut marks);
        marks
    }

    fn feed_channel(&mut self, at: usize, t: Option<f64>, bytes: &[u8]) -> Vec<Mark> {
        let mut marks = Vec::new();
        while self.channels.len() <= at {
            let channel = Channel::new(None, Layout::Plain, self.patterns.clone());
            self.channels.push(channel);
        }
        for piece in bytes.chunks(PIECE) {
            let lines = self.channels[at].terminal.feed(piece);
            self.take(at, t, lines, &mut marks);
        }
        self.look_ahead(at, t, &mut marks);
        marks
    }

    /// The terminal behind this stream has a new size; nothing happens where there is none.
    pub fn resize(&mut self, stream: Stream, cols: u16, rows: u16) {
        self.channels[stream as usize].terminal.resize(cols, rows);
    }

    /// Where training stands.
    pub fn state(&self) -> ProgressState {
        self.ahead.as_ref().unwrap_or(&self.ranks).state()
    }

    /// The output has ended: the last lines are complete as they are.
    pub fn finish(&mut self, t: Option<f64>) -> Vec<Mark> {
        let mut marks = Vec::new();
        for at in 0..self.channels.len() {
            self.finish_channel(at, t, &mut marks);
        }
        self.ahead = None;
        marks
    }

    /// What stands on a stream's screen, and the cursor (row, column): for `fuzz/`.
    #[cfg(fuzzing)]
    pub fn drawn(&mut self, stream: Stream) -> (Vec<String>, (usize, usize)) {
        let screen = self.channels[stream as usize].terminal.screen();
        (screen.lines(), screen.cursor())
    }

    fn finish_channel(&mut self, at: usize, t: Option<f64>, marks: &mut Vec<Mark>) {
        let Some(channel) = self.channels.get_mut(at) else {
            return;
        };
        let lines = channel.terminal.finish();
        channel.ahead = None;
        self.take(at, t, lines, marks);
    }

    fn take(&mut self, at: usize, t: Option<f64>, lines: Vec<Line>, marks: &mut Vec<Mark>) {
        if lines.is_empty() {
            return;
        }
        // What others have under their cursors was told already: it stays in the mark.
        let beside = self.beside(at);
        let stream = self.channels[at].stream;
        for line in lines {
            let Some(reading) = self.channels[at].read(&line) else {
                continue;
            };
            let mark = if beside.is_empty() {
                self.ranks.apply(reading, t, stream)
            } else {
                let mut shown = self.ranks.clone();
                self.ranks.apply(reading.clone(), t, stream);
                for (stream, beside) in &beside {
                    shown.apply(beside.clone(), t, *stream);
                }
                shown.apply(reading, t, stream)
            };
            self.told.tell(mark, marks);
        }
    }

    /// What stands under the cursors of all channels but this one.
    fn beside(&self, at: usize) -> Vec<(Option<Stream>, Reading)> {
        let others = self.channels.iter().enumerate().filter(|(i, _)| *i != at);
        others
            .filter_map(|(_, channel)| Some((channel.stream, channel.ahead.clone()?)))
            .collect()
    }

    /// Reads the lines under the cursors ahead, on a copy of the state.
    fn look_ahead(&mut self, at: usize, t: Option<f64>, marks: &mut Vec<Mark>) {
        self.channels[at].look_ahead();
        self.ahead = None;
        let mut readings = self.beside(at);
        let own = self.channels[at].ahead.clone();
        let is_new = own.is_some();
        readings.extend(own.map(|own| (self.channels[at].stream, own)));
        let Some(((stream, last), others)) = readings.split_last() else {
            return;
        };
        let mut ranks = self.ranks.clone();
        for (stream, reading) in others {
            ranks.apply(reading.clone(), t, *stream);
        }
        let mark = ranks.apply(last.clone(), t, *stream);
        self.ahead = Some(ranks);
        if is_new {
            self.told.tell(mark, marks);
        }
    }
}

/// Where a file's channel is.
fn channel_of(file: usize) -> usize {
    STREAMS + file.min(MOST_FILES - 1)
}

impl Channel {
    fn new(stream: Option<Stream>, layout: Layout, patterns: Patterns) -> Self {
        Self {
            stream,
            terminal: Terminal::new(layout, Wanted::Known(patterns.clone())),
            grammar: Grammar::default(),
            patterns,
            ahead: None,
        }
    }

    /// A whole line.
    fn read(&mut self, line: &Line) -> Option<Reading> {
        self.grammar.notice(&line.text);
        let reading = self.reading(line);
        self.grammar.remember(reading.as_ref());
        reading
    }

    /// A line that fits a pattern of the user's says what the pattern says.
    fn reading(&self, line: &Line) -> Option<Reading> {
        let told = self.patterns.read(&line.text);
        told.or_else(|| self.grammar.read(line))
    }

    fn look_ahead(&mut self) {
        self.ahead = self.terminal.pending().and_then(|mut line| {
            line.text.truncate(without_last_word(&line.text).len());
            let bytes = line.text.as_bytes();
            // What a bar counts often stands at the end of its box: `30/100 [00:01<00:02, 9frames/s`.
            if is_in_clock_box(bytes) {
                return None;
            }
            let matters = hint::may_matter(bytes) || self.patterns.fit(bytes);
            matters.then(|| self.reading(&line)).flatten()
        });
    }
}

impl Ranks {
    fn apply(&mut self, reading: Reading, t: Option<f64>, stream: Option<Stream>) -> Option<Mark> {
        let rank = reading.rank.filter(|r| *r > 0);
        let room = self.others.len() < MOST_RANKS;
        let tracker = match rank {
            Some(rank) if room || self.others.contains_key(&rank) => {
                self.others.entry(rank).or_default()
            }
            Some(_) => return None,
            None => &mut self.main,
        };
        match stream {
            Some(_) => tracker.tell_by_output(&reading),
            // A log that says again what was printed a moment ago.
            None if tracker.is_behind(&reading) => return None,
            None => {}
        }
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

/// Whether a bracket is open behind which a clock stands.
fn is_in_clock_box(line: &[u8]) -> bool {
    let open =
        memchr::memrchr(b'[', line).filter(|at| memchr::memchr(b']', &line[*at..]).is_none());
    open.is_some_and(|at| memchr::memchr(b':', &line[at..]).is_some())
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
