//! Alerts, from outside: real servers, a real bus, real programs.
//!
//! The teller is used as the supervisor uses it; `gpuwatch alert` as a person does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod alert;
mod alertmanager;
mod bot;
mod command;
mod desktop;
mod dunst;
mod end;
mod harness;
mod left_over;
mod mail;
mod network;
mod outside;
mod redirects;
mod retries;
mod secrets;
mod services;
mod smtp;
mod stacks;
mod texts;
mod webhook;
