//! `gpuwatch patrol`, from outside: real processes of real users on the simulated driver.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod driver;
mod found;
mod machine;
mod metrics;
mod once;
mod records;
mod told;
mod unit;
