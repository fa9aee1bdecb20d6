//! Records for people: the summary at the end, `show`, `runs`, `waste`, `compare` as text, and a
//! run as an HTML page.
//!
//! Owns wording and layout, pure: records in, text out. May use `model` and the types of
//! `record`.

pub mod compare;
pub mod count;
pub mod gates;
pub mod github;
pub mod gpus;
pub mod html;
pub mod ps;
pub mod replay;
pub mod runs;
pub mod show;
pub mod summary;
mod table;
pub mod text;
pub mod top;
pub mod waste;

pub use runs::table;
pub use show::show;
pub use summary::{Fate, Kept, Leftover, Notes, summary};
