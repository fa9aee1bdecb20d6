//! Threads of ours, and bells that they wait for.

use std::os::fd::AsFd;
use std::thread;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;

/// Starts a thread of this name.
///
/// # Errors
/// There is none to be had.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map(drop)
}

/// Waits until this bell has rung.
pub fn wait_for(bell: &EventFd) {
    let rung = || PollFd::new(bell.as_fd(), PollFlags::POLLIN);
    // Interrupted, it hasn't.
    while poll(&mut [rung()], PollTimeout::NONE).is_err() {}
}
