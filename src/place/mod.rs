//! Which GPUs: what `CUDA_VISIBLE_DEVICES` means, which are free, which to take.
//!
//! Owns the reading of the variable exactly as CUDA reads it and the choice among GPUs,
//! both pure, and who it is that holds one. Must not know how readings are made; may use
//! `model` and `sys`.

pub mod choose;
pub mod claims;
pub mod holder;
mod locks;
pub mod select;
pub mod visible;
