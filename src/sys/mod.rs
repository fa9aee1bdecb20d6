//! The only `unsafe` and raw libc: spawning, descriptors, signals.
//!
//! Owns thin wrappers, each with its SAFETY line. Must not know what they are used for.
#![allow(unsafe_code, reason = "this room exists so that no other needs it")]

pub mod defect;
pub mod fault;
pub mod helper_io;
pub mod hook;
pub mod inherited;
pub mod nvml_raw;
pub mod process;
pub mod signals;
pub mod spawn;
pub mod streams;
pub mod title;
