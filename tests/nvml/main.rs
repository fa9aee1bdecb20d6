//! The helper process and `gpuwatch gpus` against the simulated driver, through the code path of
//! the real one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail where it stands"
)]

mod asleep;
mod faults;
mod gpus;
mod harness;
mod mig;
mod missing;
mod readings;
mod real;
mod sentinel;
mod successor;
#[path = "../support/mod.rs"]
mod support;
mod who;
