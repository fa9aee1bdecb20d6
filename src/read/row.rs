//! One row of the screen.
//!
//! Owns its characters, wide ones included, and what is known of its reading. Must not know
//! the cursor or the rows around it.

/// The right half of a wide character.
pub(super) const FILLER: char = '\0';

/// One row.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub cells: Vec<char>,
    /// The text goes on in the next row.
    pub wrapped: bool,
    pub state: State,
    /// Hash of the text as it was last evaluated.
    pub seen: u64,
    /// The cursor came back to it.
    pub revisited: bool,
    /// The frame in which it was drawn last.
    pub frame: u64,
}

/// Where a row stands between drawing and reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Clean,
    /// Changed since it was evaluated.
    Dirty,
    /// First row of a line whose present text was evaluated (its hash isn't known yet).
    Evaluated,
}

impl Row {
    pub fn is_dirty(&self) -> bool {
        self.state == State::Dirty
    }

    pub fn clear(&mut self) {
        self.cells.clear();
        *self = Self {
            cells: std::mem::take(&mut self.cells),
            ..Self::default()
        };
    }
}

/// A wide character whose halves are torn apart at `col` becomes blanks.
pub(super) fn split_wide(cells: &mut [char], col: usize) {
    if col > 0 && cells.get(col) == Some(&FILLER) {
        cells[col - 1] = ' ';
        cells[col] = ' ';
    }
}
