//! Records as text for people: the summary at the end, `show`, `runs`, `gpus`.
//!
//! Owns wording and layout, pure: records in, text out. May use `model` and the types of
//! `record`.

pub mod gates;
pub mod github;
pub mod ps;
pub mod runs;
pub mod show;
pub mod summary;
pub mod text;

pub use runs::table;
pub use show::show;
pub use summary::{Fate, Kept, Leftover, Notes, summary};
