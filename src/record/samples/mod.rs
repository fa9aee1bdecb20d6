//! `samples.csv`: the record itself.
//!
//! Owns the columns, their order, how numbers are rounded, writing and reading them. Must not
//! know how a sample is made or what it means.

mod columns;
mod read;
mod round;
#[cfg(test)]
mod tests;
mod write;

pub use columns::COLUMNS;
pub use read::{LastTick, SampleReader, last_tick};
pub(super) use round::finite;
pub use round::rounded;
pub use write::SampleWriter;

/// The file's name.
pub const SAMPLES: &str = "samples.csv";
