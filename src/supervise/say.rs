//! Our own words on stderr. Nobody may be reading it, and a full pipe or a terminal that was
//! told to hold on (Ctrl-S) must hold up neither the byte path nor the end.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::write;

use crate::sys::streams::standard;

/// Says this, waiting so long for whoever reads it. What isn't taken by then is left unsaid.
pub fn say(text: String, patience: Duration) {
    let (said, done) = channel();
    let fallback = text.clone();
    let speaker = thread::Builder::new()
        .name("words".to_owned())
        .spawn(move || {
            put(text.as_bytes());
            // Nobody waits any more if it took too long.
            let _ = said.send(());
        });
    if speaker.is_ok() {
        // Said or not, the run goes on.
        let _ = done.recv_timeout(patience);
    } else if takes_some(patience) {
        put(fallback.as_bytes());
    }
}

/// Writes without the lock of std's stderr, which a speaker that waits for ever would keep.
fn put(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match write(standard(2), bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                // Interrupted or not, it is tried again.
                let _ = poll(
                    &mut [PollFd::new(standard(2), PollFlags::POLLOUT)],
                    PollTimeout::NONE,
                );
            }
            // Our caller may have closed it; there is nobody to tell.
            Err(_) => return,
        }
    }
}

fn takes_some(patience: Duration) -> bool {
    let limit = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
    let mut fds = [PollFd::new(standard(2), PollFlags::POLLOUT)];
    poll(&mut fds, limit).is_ok_and(|ready| ready > 0)
}
