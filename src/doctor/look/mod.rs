//! Looking: I/O alone, nothing is judged here and nothing is written.
//!
//! What is read of the system lies under a root that tests replace. Whatever may wait for ever (a
//! dead network file system, an interpreter) has a limit.

pub mod command;
pub mod kernel;
pub mod libraries;
pub mod machine;
pub mod python;
mod words;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a file system may take to answer.
const FILES_WITHIN: Duration = Duration::from_secs(2);

/// What came of a program that was run to its end: its exit code (none: killed when its time was
/// up, or by a signal), whether its time was up, stdout, stderr.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// It exited with 0.
    pub success: bool,
    /// Its time was up, and its whole group was killed.
    pub hung: bool,
    /// What it printed.
    pub stdout: String,
    /// What it complained.
    pub stderr: String,
}

/// Runs a program within a time, its stdin empty, its group killed afterwards.
pub type Run<'r> = dyn Fn(std::process::Command, Duration) -> Result<Ended, String> + Sync + 'r;

/// The result of looking at files, unless they don't answer in time: then the thread is left
/// where it hangs.
fn within<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::channel();
    let look = move || {
        // Nobody waits any more.
        let _ = tell.send(look());
    };
    thread::Builder::new().spawn(look).ok()?;
    told.recv_timeout(FILES_WITHIN).ok()
}
