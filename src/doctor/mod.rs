//! Why a job doesn't use the GPU: what stands between a command and the GPUs, looked at before it runs.
//!
//! Owns the facts that are asked for (`facts`), looking at them under a root that tests replace
//! (`look`, I/O alone), and what they mean (`checks`, pure, one file a family). It writes nothing
//! and imports no framework unless asked. Must not know runs or records; may use `model`, `nvml`,
//! `place`, `plan` and `sys`. Programs are run and the driver is asked by whoever calls.

pub mod checks;
pub mod facts;
pub mod look;

pub use checks::{Check, INTERPRETER, State, judge};
