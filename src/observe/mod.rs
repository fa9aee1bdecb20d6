//! Looking at the machine: the job's process tree, the host.
//!
//! Owns reading `/proc` and cgroups, under a root that tests replace. I/O only: it judges
//! nothing. May use `model`, `nvml` and `sys`.
