//! `samples.csv`: the record itself.
//!
//! Owns the columns, their order, how numbers are rounded, writing and reading them. Must not
//! know how a sample is made or what it means.

mod columns;
mod packed;
mod read;
mod round;
#[cfg(test)]
mod tests;
mod write;

pub use columns::COLUMNS;
pub use packed::{Rows, has_samples, open_rows};
pub use read::{LastTick, SampleReader, last_tick};
pub(super) use round::finite;
pub use round::rounded;
pub use write::SampleWriter;

/// The file's name.
pub const SAMPLES: &str = "samples.csv";

/// Its name where it was compressed; nobody appends to it any more.
pub const PACKED: &str = "samples.csv.zst";
