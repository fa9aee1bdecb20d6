//! The driver as an unreliable peer: the helper process, its protocol and its health.
//!
//! Owns every NVML call, all of which are made in the helper process, because a call can
//! hang for ever. Must not know runs, records or judgement; may use `model` and `sys`.
//!
//! `protocol` and `wire` are what both sides speak. `client`, `health` and `attribute` are the
//! supervisor's side and never touch NVML. The rest runs in the helper: `helper` is its
//! main thread, `watcher` the thread that may hang, `desk` what the two share.

mod alarms;
pub mod attribute;
pub mod client;
mod desk;
mod gauge;
mod gpm;
mod handles;
pub mod health;
pub mod helper;
mod inventory;
mod known;
mod pci;
mod plausible;
mod processes;
pub mod protocol;
mod quirks;
pub mod refusal;
mod watcher;
mod wire;
