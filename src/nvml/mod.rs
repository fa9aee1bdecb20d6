//! The driver as an unreliable peer: the helper process, its protocol and its health.
//!
//! Owns every NVML call, all of which are made in the helper process, because a call can
//! hang for ever. Must not know runs, records or judgement; may use `model` and `sys`.
