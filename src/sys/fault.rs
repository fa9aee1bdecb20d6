//! Faults on demand, for tests: `GPUWATCH_FAULT=panic:digest,panic:main` makes the first that
//! passes each of these points panic. Without the feature `fault-injection` there is no such
//! thing in the program.

#[cfg(feature = "fault-injection")]
use std::sync::{LazyLock, Mutex, PoisonError};

/// What is still to happen.
#[cfg(feature = "fault-injection")]
static WANTED: LazyLock<Mutex<Vec<String>>> = LazyLock::new(|| {
    let wanted = std::env::var("GPUWATCH_FAULT").unwrap_or_default();
    Mutex::new(wanted.split(',').map(str::to_owned).collect())
});

/// A point at which a test may want a fault.
///
/// # Panics
/// Where one is wanted.
#[cfg(feature = "fault-injection")]
pub fn at(point: &str) {
    let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    let this = |fault: &String| fault.strip_prefix("panic:") == Some(point);
    if let Some(at) = wanted.iter().position(this) {
        wanted.swap_remove(at);
        drop(wanted);
        panic!("a fault was wanted at {point}");
    }
}

/// A point at which a test may want a fault: not in this build.
#[cfg(not(feature = "fault-injection"))]
#[inline]
pub fn at(_point: &str) {}
