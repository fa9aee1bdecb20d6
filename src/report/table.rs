//! Columns that line up, for every table on a terminal.
//!
//! Owns widths and alignment. Pure; cells are cleaned and cut here.

use unicode_width::UnicodeWidthStr;

use super::text::{clean, clip, pad};

/// The most columns of the screen that a cell takes.
const WIDEST: usize = 60;

/// Rows of which the first is the header. Numbers stand right: every column from the `numbers`th.
pub fn lined_up<const N: usize>(rows: Vec<[String; N]>, numbers: usize) -> String {
    let rows: Vec<[String; N]> = rows
        .into_iter()
        .map(|row| row.map(|cell| clip(&clean(&cell), WIDEST)))
        .collect();
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.max().unwrap_or(0)
    });
    let mut out = String::new();
    for row in &rows {
        let cell = |column: usize| {
            let text = &row[column];
            if column < numbers {
                pad(text, widths[column])
            } else {
                " ".repeat(widths[column] - text.width()) + text
            }
        };
        let cells: Vec<String> = (0..N).map(cell).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}
