//! A small screen: rows of characters, a cursor, scrolling.
//!
//! Owns where printed text ends up, and which lines are complete and new. Must not know
//! bytes, escape sequences, or what a line means.
//!
//! A line is *evaluated* when the cursor leaves it: at a carriage return, a line feed or a
//! vertical movement. That depends on the text alone, never on how it was cut into reads.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use unicode_width::UnicodeWidthChar;

use super::Layout;
use super::frame::Frame;
use super::hint::Wanted;
use super::row::{FILLER, Row, State, split_wide};

/// Plain output never wraps, but a line is remembered only up to here.
const PLAIN_COLS: usize = 4096;
/// How far up plain output may move the cursor.
const PLAIN_ROWS: usize = 64;
/// Larger terminals than this don't exist; the bound keeps memory small.
const MOST_COLS: usize = 4096;
const MOST_ROWS: usize = 1024;
/// Columns from one tab stop to the next.
pub(super) const TAB: usize = 8;

/// A line that was completed on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its text, soft-wrapped rows joined, without trailing blanks.
    pub text: String,
    /// It stands where something else stood before: part of a block that is drawn again.
    pub redrawn: bool,
    /// It stood on the screen before, and is drawn again below a line that has changed.
    pub repeated: bool,
}

/// Rows, cursor and scroll region of one stream.
#[derive(Clone, Debug)]
pub(super) struct Screen {
    rows: VecDeque<Row>,
    row: usize,
    col: usize,
    cols: usize,
    height: usize,
    wraps: bool,
    /// First and last row of the scroll region, where one is set.
    region: Option<(usize, usize)>,
    saved: (usize, usize),
    frame: Frame,
    ready: Vec<Line>,
    /// Cheap test of whether a line can matter.
    wanted: Wanted,
}

impl Screen {
    pub fn new(layout: Layout, wanted: Wanted) -> Self {
        let (cols, height, wraps) = match layout {
            Layout::Terminal { cols, rows } => (bounded_cols(cols), bounded_rows(rows), true),
            Layout::Plain => (PLAIN_COLS, PLAIN_ROWS, false),
        };
        Self {
            rows: VecDeque::from([Row::default()]),
            row: 0,
            col: 0,
            cols,
            height,
            wraps,
            region: None,
            saved: (0, 0),
            frame: Frame::default(),
            ready: Vec::new(),
            wanted,
        }
    }

    /// The terminal has a new size: what no longer fits is cut off.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        let new = (bounded_cols(cols), bounded_rows(rows));
        if !self.wraps || new == (self.cols, self.height) {
            return;
        }
        self.leave_line();
        (self.cols, self.height) = new;
        while self.rows.len() > self.height {
            self.rows.pop_front();
            self.row = self.row.saturating_sub(1);
        }
        for row in &mut self.rows {
            row.cells.truncate(self.cols);
        }
        self.region = None;
        self.row = self.row.min(self.height - 1);
        self.col = self.col.min(self.cols - 1);
    }

    /// The lines that were completed since the last call, oldest first.
    pub fn take_ready(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.ready)
    }

    /// The line under the cursor, if it holds something that wasn't evaluated and the
    /// cursor stands behind its last character (else the rest of it is old text).
    pub fn pending(&self) -> Option<Line> {
        let (first, last) = self.line_at(self.row);
        if last != self.row || !self.rows.range(first..=last).any(Row::is_dirty) {
            return None;
        }
        let text = self.text(first, last);
        let end = self.rows[last].cells.iter().rposition(|c| *c != ' ');
        if text.is_empty() || end.is_some_and(|end| end >= self.col && self.col < self.cols) {
            return None;
        }
        let redrawn = self.rows[first].revisited;
        (!self.stood(first, hash(&text))).then_some(Line {
            text,
            redrawn,
            repeated: false,
        })
    }

    /// Whether a whole line of `len` plain characters may be taken at once.
    pub fn takes_line(&self, len: usize) -> bool {
        let row = &self.rows[self.row];
        self.col == 0
            && len < self.cols
            && row.cells.is_empty()
            && !row.is_dirty()
            && row.seen == 0
            && !row.revisited
            && self.region.is_none()
            && self.row + 1 == self.rows.len()
            && (self.row == 0 || !self.rows[self.row - 1].wrapped)
    }

    /// A whole line of printable ASCII and its line feed: the same as printing it character
    /// by character.
    pub fn line(&mut self, ascii: &[u8]) {
        let row = &mut self.rows[self.row];
        row.cells.extend(ascii.iter().map(|b| char::from(*b)));
        // A blank line isn't evaluated, and a known text is never offered again.
        let end = ascii.iter().rposition(|b| *b != b' ').map_or(0, |i| i + 1);
        if end > 0 {
            row.state = State::Evaluated;
        }
        if end > 0 && self.wanted.has(&ascii[..end]) {
            self.ready.push(Line {
                text: ascii[..end].iter().map(|b| char::from(*b)).collect(),
                redrawn: false,
                repeated: false,
            });
        }
        self.line_feed();
    }

    /// Printable ASCII: the same as printing each character.
    pub fn print_run(&mut self, ascii: &[u8]) {
        let end = self.col + ascii.len();
        if end > self.cols {
            for byte in ascii {
                self.print(char::from(*byte));
            }
            return;
        }
        self.touch();
        let cells = &mut self.rows[self.row].cells;
        if cells.len() < end {
            cells.resize(end, ' ');
        }
        split_wide(cells, self.col);
        split_wide(cells, end);
        for (cell, byte) in cells[self.col..end].iter_mut().zip(ascii) {
            *cell = char::from(*byte);
        }
        self.col = end;
    }

    pub fn print(&mut self, c: char) {
        let width = match c.width() {
            Some(0) | None => return,
            Some(w) => w,
        };
        if self.col + width > self.cols {
            if !self.wraps {
                return;
            }
            self.touch();
            self.rows[self.row].wrapped = true;
            self.col = 0;
            self.advance_row();
            self.rows[self.row].wrapped = false;
        }
        self.touch();
        let col = self.col;
        let row = &mut self.rows[self.row];
        if row.cells.len() < col + width {
            row.cells.resize(col + width, ' ');
        }
        split_wide(&mut row.cells, col);
        split_wide(&mut row.cells, col + width);
        row.cells[col] = c;
        if width == 2 {
            row.cells[col + 1] = FILLER;
        }
        self.col += width;
    }

    pub fn carriage_return(&mut self) {
        self.leave_line();
        self.col = 0;
        // On the second row of a line too long for the terminal this doesn't lead back to the
        // first: what is drawn from here on is a line of its own.
        if let Some(above) = self.row.checked_sub(1) {
            self.rows[above].wrapped = false;
        }
    }

    /// A new line: output as programs mean it, so the cursor goes to the first column too
    /// (a terminal's own driver does that to every line feed).
    pub fn new_line(&mut self) {
        self.leave_line();
        self.line_feed();
    }

    fn line_feed(&mut self) {
        self.col = 0;
        self.rows[self.row].wrapped = false;
        self.advance_row();
    }

    pub fn backspace(&mut self) {
        self.col = self.col.min(self.cols - 1).saturating_sub(1);
    }

    pub fn tab(&mut self) {
        let target = (self.col / TAB + 1) * TAB;
        if self.wraps {
            self.col = target.min(self.cols - 1);
        } else {
            self.col = target.min(self.cols);
        }
    }

    pub fn up(&mut self, n: usize) {
        self.leave_line();
        self.frame.begin();
        self.row = self.row.saturating_sub(n);
        self.rows[self.row].revisited = true;
    }

    pub fn down(&mut self, n: usize) {
        self.go_to_row(self.row.saturating_add(n));
    }

    pub fn right(&mut self, n: usize) {
        self.col = self.col.saturating_add(n).min(self.cols - 1);
    }

    pub fn left(&mut self, n: usize) {
        self.col = self.col.min(self.cols - 1).saturating_sub(n);
    }

    pub fn go_to_col(&mut self, col: usize) {
        self.col = col.min(self.cols - 1);
    }

    pub fn go_to_row(&mut self, row: usize) {
        self.leave_line();
        let row = row.min(self.height - 1);
        if row < self.row {
            self.frame.begin();
        }
        let new = row >= self.rows.len();
        while self.rows.len() <= row {
            self.rows.push_back(Row::default());
        }
        self.row = row;
        self.rows[row].revisited |= !new;
    }

    pub fn save_cursor(&mut self) {
        self.saved = (self.row, self.col);
    }

    pub fn restore_cursor(&mut self) {
        let (row, col) = self.saved;
        self.go_to_row(row);
        self.go_to_col(col);
    }

    /// Sets the scroll region (rows counted from 0) or removes it.
    pub fn set_region(&mut self, region: Option<(usize, usize)>) {
        self.region = region
            .map(|(top, bottom)| (top, bottom.min(self.height - 1)))
            .filter(|(top, bottom)| top < bottom && (*top, *bottom) != (0, self.height - 1));
        self.go_to_row(0);
        self.col = 0;
    }

    /// One row up, scrolling down at the top.
    pub fn reverse_index(&mut self) {
        self.leave_line();
        let (top, bottom) = self.region.unwrap_or((0, self.height - 1));
        if self.row == top {
            if self.rows.len() > bottom {
                self.rows.remove(bottom);
            }
            self.rows.insert(top, Row::default());
            self.rows[top].revisited = true;
        } else {
            self.up(1);
        }
    }

    /// Erases part of the row: 0 from the cursor on, 1 up to it, 2 all of it.
    pub fn erase_line(&mut self, mode: u16) {
        self.touch();
        let col = self.col;
        let row = &mut self.rows[self.row];
        match mode {
            0 => row.cells.truncate(col),
            1 => {
                let end = (col + 1).min(row.cells.len());
                row.cells[..end].fill(' ');
            }
            _ => row.cells.clear(),
        }
        if mode != 1 {
            row.wrapped = false;
        }
    }

    /// Erases part of the screen: 0 from the cursor on, 1 up to it, 2 and 3 all of it.
    pub fn erase_display(&mut self, mode: u16) {
        let at = self.row;
        self.erase_line(mode.min(2));
        let blank = match mode {
            0 => at + 1..self.rows.len(),
            1 => 0..at,
            _ => 0..self.rows.len(),
        };
        for row in self.rows.range_mut(blank) {
            let (seen, frame) = (row.seen, row.frame);
            row.clear();
            row.revisited = true;
            (row.seen, row.frame) = (seen, frame);
        }
    }

    /// The cursor leaves its line: what is new on it becomes ready.
    pub fn leave_line(&mut self) {
        let (first, last) = self.line_at(self.row);
        if !self.rows.range(first..=last).any(Row::is_dirty) {
            return;
        }
        let text = self.text(first, last);
        for row in self.rows.range_mut(first..=last) {
            row.state = State::Clean;
        }
        if text.is_empty() {
            return;
        }
        let row = &mut self.rows[first];
        let (known, redrawn) = (row.seen, row.revisited);
        row.state = State::Evaluated;
        if known == 0 && !redrawn {
            return self.offer(text, false, false);
        }
        let now = hash(&text);
        let stood = self.stood(first, now);
        if redrawn {
            self.frame.draw(&mut self.rows[first], now);
        }
        if !stood {
            self.offer(text, redrawn, false);
        } else if redrawn && self.frame.has_news {
            self.offer(text, redrawn, true);
        }
    }

    /// Whether this text stood on the screen when the frame began: where it is drawn now, above,
    /// so that the block it belongs to has moved down, or below, and it has moved up.
    fn stood(&self, row: usize, text: u64) -> bool {
        let here = &self.rows[row];
        here.seen == text
            || here.revisited
                && (self.frame.has_replaced(text)
                    || self.rows.range(row + 1..).any(|r| r.seen == text))
    }

    fn offer(&mut self, text: String, redrawn: bool, repeated: bool) {
        if self.wanted.has(text.as_bytes()) {
            self.frame.has_news |= !repeated;
            self.ready.push(Line {
                text,
                redrawn,
                repeated,
            });
        }
    }

    /// The current row is about to change.
    fn touch(&mut self) {
        let (first, last) = self.line_at(self.row);
        if self.rows[first].state == State::Evaluated {
            let text = self.text(first, last);
            self.rows[first].seen = hash(&text);
            self.rows[first].state = State::Clean;
        }
        self.rows[self.row].state = State::Dirty;
    }

    /// One row down, scrolling at the bottom.
    fn advance_row(&mut self) {
        if let Some((top, bottom)) = self.region
            && self.row == bottom
        {
            self.rows.remove(top);
            self.rows.insert(bottom, Row::default());
            return;
        }
        if self.row + 1 < self.rows.len() {
            self.row += 1;
            self.rows[self.row].revisited = true;
        } else if self.rows.len() < self.height {
            self.rows.push_back(Row::default());
            self.row += 1;
        } else if let Some(mut row) = self.rows.pop_front() {
            row.clear();
            self.rows.push_back(row);
        }
    }

    /// First and last row of the soft-wrapped line that holds `row`.
    fn line_at(&self, row: usize) -> (usize, usize) {
        let mut first = row;
        while first > 0 && self.rows[first - 1].wrapped {
            first -= 1;
        }
        let mut last = row;
        while last + 1 < self.rows.len() && self.rows[last].wrapped {
            last += 1;
        }
        (first, last)
    }

    fn text(&self, first: usize, last: usize) -> String {
        let mut text: String = self
            .rows
            .range(first..=last)
            .flat_map(|row| row.cells.iter().filter(|c| **c != FILLER))
            .collect();
        text.truncate(text.trim_end_matches(' ').len());
        text
    }

    /// What stands on the screen, for tests.
    #[cfg(any(test, fuzzing))]
    pub fn lines(&self) -> Vec<String> {
        (0..self.rows.len()).map(|r| self.text(r, r)).collect()
    }

    /// The cursor, for tests.
    #[cfg(any(test, fuzzing))]
    pub fn cursor(&self) -> (usize, usize) {
        (self.row, self.col)
    }
}

fn bounded_cols(cols: u16) -> usize {
    usize::from(cols).clamp(2, MOST_COLS)
}

fn bounded_rows(rows: u16) -> usize {
    usize::from(rows).clamp(1, MOST_ROWS)
}

/// Never 0, which stands for "nothing was evaluated here".
fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish() | 1
}
