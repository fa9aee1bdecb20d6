//! One gpuwatch a rank, from outside: real launchers, labels, one alert a job.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod harness;
mod plain;
mod slurm;
mod torchrun;
