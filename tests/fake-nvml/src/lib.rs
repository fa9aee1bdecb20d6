//! A simulated NVML driver: the C functions that `nvml-wrapper` looks up, answered from a
//! JSON scenario. `README.md` beside this crate documents the scenario.
//!
//! Owns the C side only. It has no threads and no TLS destructors of its own, because the
//! library may be closed while the program goes on. Every function reads its pointers from
//! the caller, as `nvml.h` says; none may panic, because a panic may not cross into C.
#![allow(
    non_snake_case,
    reason = "the functions bear the names that nvml.h gives them"
)]

mod abi;
mod api_device;
mod api_events;
mod api_gpm;
mod api_memory;
mod api_mig;
mod api_processes;
mod api_system;
mod fault;
mod live;
mod moment;
mod scenario;
mod state;
