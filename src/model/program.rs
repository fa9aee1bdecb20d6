//! Programs of gpuwatch's own: hooks and helpers that are started while a run lasts and are no
//! part of the job.
//!
//! Owns what such a program is given, and the list that tells it from the job's processes.
//! Starting one is done elsewhere.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A program to run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments; not empty.
    pub argv: Vec<String>,
    /// Environment variables besides the inherited ones.
    pub env: Vec<(String, String)>,
    /// What it reads on stdin.
    pub stdin: Vec<u8>,
    /// It is killed when it takes longer.
    pub within: Duration,
}

/// Whoever can run programs.
pub trait Programs: Send + Sync {
    /// Runs it to its end; takes no longer than `within` and a little.
    ///
    /// # Errors
    /// Why it failed, in words that hold nothing of its arguments, input or output.
    fn run(&self, program: &Program) -> Result<(), String>;
}

/// Processes that are our children and no part of the job: whoever looks for the job's processes
/// or reaps orphans leaves them out.
#[derive(Clone, Debug, Default)]
pub struct OwnProcesses(Arc<Mutex<Vec<u32>>>);

impl OwnProcesses {
    /// Starts one. The list is held meanwhile, so that nobody who reads it meets a process that
    /// isn't entered yet.
    ///
    /// # Errors
    /// What `start` said.
    pub fn start<T, E>(&self, start: impl FnOnce() -> Result<(u32, T), E>) -> Result<T, E> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (pid, started) = start()?;
        list.push(pid);
        Ok(started)
    }

    /// It was waited for: its PID is free to be another's.
    pub fn ended(&self, pid: u32) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = list.iter().position(|p| *p == pid) {
            list.swap_remove(at);
        }
    }

    /// The PIDs of those that have been started and not been waited for.
    pub fn list(&self) -> Vec<u32> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// A list that somebody else reads, too.
impl From<Arc<Mutex<Vec<u32>>>> for OwnProcesses {
    fn from(list: Arc<Mutex<Vec<u32>>>) -> Self {
        Self(list)
    }
}
