//! What our caller gave us, read before Rust's runtime changes it.
//!
//! Before `main`, std ignores SIGPIPE and opens `/dev/null` on closed standard
//! descriptors. The child must get what the caller meant, so both are read from
//! `.init_array`, which runs earlier.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

static CLOSED: AtomicU8 = AtomicU8::new(0);
static IGNORED: AtomicU64 = AtomicU64::new(0);
static READ: AtomicBool = AtomicBool::new(false);

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = read;

extern "C" fn read() {
    let mut closed = 0;
    for fd in 0..3 {
        // SAFETY: F_GETFD takes no pointer and touches nothing; a bad descriptor is an error.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            closed |= 1 << fd;
        }
    }
    let mut ignored = 0_u64;
    for signal in 1..=64 {
        // SAFETY: an all-zero sigaction is a valid value of this plain C struct.
        let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: a null new action only reads; `old` is valid for writing.
        let rc = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut old) };
        if rc == 0 && old.sa_sigaction == libc::SIG_IGN {
            ignored |= 1 << (signal - 1);
        }
    }
    CLOSED.store(closed, Ordering::Relaxed);
    IGNORED.store(ignored, Ordering::Relaxed);
    READ.store(true, Ordering::Relaxed);
}

/// The caller closed this standard descriptor (0, 1 or 2).
pub fn was_closed(fd: i32) -> bool {
    CLOSED.load(Ordering::Relaxed) & (1 << fd) != 0
}

/// The caller ignored this signal.
pub fn was_ignored(signal: i32) -> bool {
    (1..=64).contains(&signal) && IGNORED.load(Ordering::Relaxed) & (1 << (signal - 1)) != 0
}

/// Whether the reading before `main` took place (it does in every program that links us).
pub fn was_read() -> bool {
    READ.load(Ordering::Relaxed)
}
