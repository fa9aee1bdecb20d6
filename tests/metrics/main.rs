//! Metrics, seen by those who scrape them: Prometheus itself, node_exporter, promtool, parsers
//! that others wrote, and clients that mean no good.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod client;
mod clients;
mod examples;
mod export;
mod formats;
mod prometheus;
mod refused;
mod textfile;
