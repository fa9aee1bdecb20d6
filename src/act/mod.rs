//! What is done when something is found: evidence is collected, a user's command is run.
//!
//! Owns stacks and the running of programs that are no part of the job. Never signals the job
//! (`supervise` does), and never waits without a limit. May use `model` and `sys`; must not know who judges, records
//! or tells.
//!
//! What the caller does:
//!
//! - For `model::Action::Stacks` of a finding that was raised (by default `stalled` alone),
//!   [`stacks::start`] with the job's processes; it answers within [`stacks::WITHIN`] from a thread of its own. The answer's
//!   `files` go to `record::run_dir::write_evidence`, `action{what: "stacks"}` names the first, and `digest`
//!   goes to `tell` as the alert's evidence.
//! - For `model::Action::Command`, [`command::on_finding`] and then
//!   [`command::Commands::run`](crate::model::Programs::run) on a thread of the caller's: it may
//!   take [`command::WITHIN`].
//! - Both enter their processes into the [`OwnProcesses`](crate::model::OwnProcesses) that they
//!   are given, which the sampler and the reaper of orphans must leave out. The list that
//!   `supervise` has already becomes one by `OwnProcesses::from`.

mod bundle;
pub mod command;
mod descriptors;
mod digest;
mod proc_files;
pub mod process;
mod pyspy;
mod recorder;
mod seen;
mod sockets;
pub mod stacks;

pub use command::Commands;
