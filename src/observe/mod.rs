//! Looking at the machine: the job's process tree, the host.
//!
//! Owns reading `/proc` and cgroups, under a root that tests replace. I/O only: it judges
//! nothing. May use `model`, `nvml` and `sys`.

mod asking;
mod cgroup;
#[cfg(test)]
mod fake;
mod followed;
mod framework;
mod git;
mod host;
pub mod identity;
mod mounts;
pub mod parse;
mod proc_fs;
mod process;
mod ranks;
pub mod rates;
mod reader;
mod tail;
mod totals;
mod tree;
mod walk;

pub use asking::asks;
pub use followed::{Before, Followed, Found};
pub use framework::{Loaded, loaded};
pub use git::git_state;
pub use host::{HostReader, HostTick, cgroup_root};
pub use mounts::is_network;
pub use proc_fs::{ProcFs, ProcessId};
pub use process::{ProcessChangeFact, ProcessState};
pub use reader::{
    OfPath as FoundAt, Reply as FilesReply, Request as FilesRequest, serve as serve_files,
};
pub use tail::{Tail, file_id};
pub use tree::{JobTick, JobTree, Leftover};
