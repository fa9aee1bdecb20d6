//! A frame: what is drawn from one movement of the cursor upwards to the next.
//!
//! Owns what a frame has drawn over. Must not know where rows are, or what they mean.

use super::row::Row;

/// The frame that is being drawn.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    number: u64,
    /// Hashes of the lines that stood where something else was drawn since it began.
    replaced: Vec<u64>,
    /// A line that was drawn in it is news.
    pub has_news: bool,
}

impl Frame {
    /// The cursor went upwards.
    pub fn begin(&mut self) {
        self.number += 1;
        self.replaced.clear();
        self.has_news = false;
    }

    /// Whether this text stood on the screen when the frame began, where it drew something else.
    pub fn has_replaced(&self, text: u64) -> bool {
        self.replaced.contains(&text)
    }

    /// This text takes the place of what stood in the row.
    pub fn draw(&mut self, row: &mut Row, text: u64) {
        if row.frame != self.number && row.seen != 0 && row.seen != text {
            self.replaced.push(row.seen);
        }
        row.frame = self.number;
    }
}
