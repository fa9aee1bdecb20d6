//! The helper process: its main thread.
//!
//! Two duties. It is the sentinel: a process of the job's group that keeps every signal
//! blocked, so that a signal sent to the whole group shows in its pending set, where one sent
//! to gpuwatch alone doesn't. And it stands between the run and NVML, which `watcher` speaks
//! on a second thread. It prints nothing, opens nothing else and ends by itself.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;

use super::desk::{Desk, Watch};
use super::protocol::{FromHelper, ToHelper};
use super::watcher;
use super::wire::{Closed, Inbox};
use crate::sys::fault;
use crate::sys::helper_io;
use crate::sys::process::{HELPER_NAME, continue_with};
use crate::sys::signals::consume;

/// How long what we keep open outlives a supervisor that was killed: its child is sent
/// SIGTERM then, and one that prints must not meet a closed pipe first.
const KEEP_FOR: Duration = Duration::from_secs(1);

/// How often a stopped child is looked at.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);

/// Runs until the supervisor says so or is gone. Never returns: the process ends here, at
/// once and without handlers, because those of an NVIDIA library can hang.
///
/// `socket` is connected to the supervisor. `keep` are descriptors that are never read, only
/// held open a second longer than the supervisor lives.
pub fn main(socket: OwnedFd, keep: Vec<OwnedFd>) -> ! {
    // Inherited already where the launcher starts us; a second time costs nothing.
    let _ = SigSet::all().thread_block();
    // Started as /proc/self/exe it would be called "exe" by `ps` and `top`.
    crate::sys::process::call_us(HELPER_NAME);
    // The default hook would print to a descriptor that isn't ours to write on.
    std::panic::set_hook(Box::new(|_| {}));
    let socket = Arc::new(socket);
    let desk = Arc::new(Desk::new(Arc::clone(&socket)));
    watch(&desk);
    let mut inbox = Inbox::new(Arc::clone(&socket));
    let mut duties = Duties {
        keep,
        followed: None,
    };
    if serve(&desk, &mut inbox, &mut duties) == End::Orphaned && !duties.keep.is_empty() {
        thread::sleep(KEEP_FOR);
    }
    // A thread in state D would keep the whole process, and so the descriptors, for longer.
    drop(duties);
    let _ = nix::sys::socket::shutdown(socket.as_raw_fd(), nix::sys::socket::Shutdown::Both);
    helper_io::exit_now(0)
}

/// Starts the thread that speaks NVML.
fn watch(desk: &Arc<Desk>) {
    let its = Arc::clone(desk);
    // Inherits the blocked signals, and so do threads of the library.
    let started = thread::Builder::new()
        .name("nvml".to_owned())
        .spawn(move || watcher::run(&its));
    if let Err(error) = started {
        desk.say(&FromHelper::Failed {
            why: format!("no thread to be had that would read the GPUs: {error}"),
        });
    }
}

/// Why the helper ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Dismissed,
    Orphaned,
}

/// What the main thread does for the supervisor besides standing guard.
struct Duties {
    /// Descriptors that are held open.
    keep: Vec<OwnedFd>,
    /// While the supervisor is stopped: the child with which it shall go on.
    followed: Option<u32>,
}

fn serve(desk: &Desk, inbox: &mut Inbox, duties: &mut Duties) -> End {
    loop {
        let mut look_again = desk.look(Instant::now());
        if let Some(child) = duties.followed {
            continue_with(child);
            look_again = look_again.min(Instant::now() + FOLLOW_EVERY);
        }
        wait(inbox, desk.flush(), look_again);
        fault::at("helper");
        match inbox.receive() {
            Err(Closed) => return End::Orphaned,
            Ok(messages) => {
                for message in messages {
                    if obey(desk, duties, message) == Some(End::Dismissed) {
                        return End::Dismissed;
                    }
                }
            }
        }
    }
}

/// Sleeps until the supervisor says something, the socket takes what waits, or it is time.
fn wait(inbox: &Inbox, wants_write: bool, until: Instant) {
    let mut events = PollFlags::POLLIN;
    events.set(PollFlags::POLLOUT, wants_write);
    let left = until.saturating_duration_since(Instant::now());
    // Rounded up, or the last millisecond would be spent spinning.
    let timeout =
        PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX);
    let _ = poll(&mut [PollFd::new(inbox.as_fd(), events)], timeout);
}

fn obey(desk: &Desk, duties: &mut Duties, message: ToHelper) -> Option<End> {
    match message {
        ToHelper::Watch { gpus, interval_ms } => desk.order(Some(Watch {
            gpus,
            interval: Duration::from_millis(interval_ms),
        })),
        ToHelper::Stop => desk.order(None),
        ToHelper::Consume { signal } => {
            consume(signal);
        }
        ToHelper::Release { fd } => duties.keep.retain(|kept| kept.as_raw_fd() != fd),
        ToHelper::Follow { child } => duties.followed = child,
        ToHelper::Bye => return Some(End::Dismissed),
    }
    None
}
