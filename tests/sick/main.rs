//! Sick jobs, end to end: real processes on a simulated driver, each of which gets the name of
//! its sickness in time.
//!
//! Those that wait for a minute or for processes of others do it side by side, and first: what is
//! quick is tried meanwhile. Each run is judged again at its end, and finds the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod asked;
mod asks;
mod cgroup;
mod killed;
mod leak;
mod loader;
mod patient;
mod ranks;
mod spin;
mod storage;
mod suspended;

#[test]
fn a_stall_is_told_in_its_time() {
    support::all_at_once(&[
        ("spin", spin::in_its_time),
        ("loader", loader::its_workers_wait_for_a_lock),
        ("rank sleeps", ranks::one_sleeps),
        ("rank is stopped", ranks::one_is_stopped),
        ("rank is gone", ranks::one_is_gone),
        (
            "storage",
            storage::a_persons_limit_holds_and_its_end_clears_it,
        ),
        ("suspended", suspended::a_stopped_job_is_and_nothing_else),
    ]);
}
