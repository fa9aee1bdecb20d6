//! `gpuwatch follow-files`: hidden; looks at followed files for a run.

use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::observe::serve_files;
use crate::sys::helper_io;

/// The files; standard input is the socket to the run.
#[derive(Debug, clap::Args)]
pub struct FollowFilesArgs {
    #[arg(last = true)]
    paths: Vec<PathBuf>,
}

/// Answers until the run has ended.
pub fn run(args: &FollowFilesArgs) -> ExitCode {
    let number = std::io::stdin().as_raw_fd();
    let socket = helper_io::adopt(number);
    match socket.and_then(|socket| serve_files(&args.paths, socket)) {
        Ok(()) => ExitCode::SUCCESS,
        // The run sees it by the socket's end.
        Err(_) => ExitCode::from(125),
    }
}
