//! The one thing that the byte path knows of the rest of the program.

use super::Stream;

/// Takes a copy of bytes that have already been delivered to the user.
///
/// Called on the byte path: an implementation never blocks, never does I/O, and would
/// rather lose bytes (and count them) than wait.
pub trait Tap: Send + Sync {
    /// These bytes were written to the user's stream.
    fn relayed(&self, stream: Stream, bytes: &[u8]);
    /// This stream will give no more.
    fn closed(&self, stream: Stream);
}
