//! The first alarms, end to end: real processes on a simulated driver, judged while they run,
//! and told to real servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod desktop;
mod idle;
mod leftovers;
mod no_alarm;
mod servers;
mod stalls;
mod training;
