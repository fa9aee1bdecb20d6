//! `gpuwatch helper`: hidden; what gpuwatch starts beside itself.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::process::ExitCode;

use crate::nvml::helper;
use crate::sys::helper_io;

/// Descriptors that were inherited.
#[derive(Debug, clap::Args)]
pub struct HelperArgs {
    /// The socket to the supervisor.
    #[arg(long)]
    socket: RawFd,
    /// A descriptor to hold open a second longer than the supervisor lives.
    #[arg(long)]
    keep: Vec<RawFd>,
    /// The command that is watched, for `ps` and `pkill -f` alone: what matches the command
    /// matches gpuwatch and this process as well, so that it looks like a signal to all.
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// Becomes the helper; returns only if the descriptors aren't there.
pub fn run(args: &HelperArgs) -> ExitCode {
    let Ok(socket) = helper_io::adopt(args.socket) else {
        return ExitCode::from(125);
    };
    let keep = args.keep.iter().map(|fd| helper_io::adopt(*fd));
    // One that isn't there needs no keeping.
    let keep = keep.filter_map(Result::ok).collect();
    helper::main(socket, keep)
}
