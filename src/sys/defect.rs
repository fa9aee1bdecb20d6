//! Panics of our own: kept quiet, because what Rust prints would stand in the middle of the
//! command's output, and caught where a thread's work begins.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on a panic of this process prints nothing.
pub fn quiet() {
    set_hook(Box::new(|panic| {
        // A thread that is at its end has nobody who would ask.
        let _ = LAST.try_with(|last| last.replace(Some(described(panic))));
    }));
}

/// Runs this to its end, or to a panic: then what it was about, and where. The caller says
/// that what is half done by then harms nobody.
pub fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|_| {
        LAST.take()
            .unwrap_or_else(|| "a panic without a word".to_owned())
    })
}

/// The sentence for the summary: what is lost by a defect, and what to do about it.
pub fn sentence(lost: &str, why: &str) -> String {
    format!("{lost}: a defect in gpuwatch ({why}); please report it")
}

fn described(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let what = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic");
    // One line, whatever it is about.
    let what = what.lines().next().unwrap_or_default();
    match panic.location() {
        Some(at) => format!("{what}, {}:{}", at.file(), at.line()),
        None => what.to_owned(),
    }
}
