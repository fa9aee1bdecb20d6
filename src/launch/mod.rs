//! Starting the command and standing aside: streams, relay, terminal, signals, reaping.
//!
//! Owns the byte path and everything that the child could notice. The rest of the program
//! is known here only as `model::Tap`. May use `model` and `sys`.

pub mod child;
mod delivery;
mod keys;
pub mod relay;
pub mod sentinel;
pub mod signals;
pub mod stop;
pub mod streams;
pub mod terminal;
mod waiting;
