//! One run from start to end: `state` decides (pure), `wire` joins the rooms.
//!
//! Owns the order of things, the shutdown order above all. The one place that knows every
//! room but `cli`.

pub mod ring;
pub mod state;

mod clock;
mod prepare;
mod request;
mod watchers;
pub mod wire;
