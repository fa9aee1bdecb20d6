//! From what was typed to what will be done: environment changes and the run's plan.
//!
//! Owns the decisions made before the start, as pure functions. Must not know how a
//! process is spawned or a GPU is read; may use `model` alone.

pub mod argv;
pub mod deeds;
pub mod env;
pub mod expression;
mod job;
pub mod memory;
mod name;
pub mod nearest;
pub mod profile;
pub mod resolve;
pub mod rules;
mod secrets;

pub use job::{job_ids, seat};
pub use name::run_name;
pub use secrets::mask_line;
