//! Which process is meant.

/// A process's identity: PIDs are used again, so a PID alone names nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// Process id.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did (field 22 of proc(5)'s `stat`).
    pub start: u64,
}
