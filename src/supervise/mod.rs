//! One run from start to end: `state` decides (pure), `wire` joins the rooms.
//!
//! Owns the order of things, the shutdown order above all. The one place that knows every
//! room but `cli`.

mod alarm;
mod beside;
mod clearing;
mod clock;
mod desk;
mod digest;
pub mod evidence;
mod facts;
mod files;
mod follow;
mod frameworks;
mod job_process;
mod last_words;
mod ledger;
mod memory;
mod metrics;
mod milestone;
mod orders;
mod placement;
mod prepare;
mod progress;
mod request;
mod revival;
mod ring;
mod runner;
mod said;
mod sampler;
mod say;
mod scribe;
pub mod state;
mod stopper;
mod threads;
mod watchers;
pub mod wire;

pub use clock::{RunClock, wall_now};
