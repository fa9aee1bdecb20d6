//! What the outside tests share: a folder of their own, commands direct and watched, pipes,
//! terminals, and waiting for conditions.
//!
//! Nothing here knows the program from inside: tests start it, look and listen.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test program uses its own part"
)]

pub mod bus;
pub mod certificates;
pub mod fake_driver;
pub mod http_client;
pub mod http_server;
mod job;
mod listener;
mod live;
pub mod mail_server;
pub mod no_answer;
pub mod prompt;
mod record;
pub mod replayed;
mod terminal;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub use fake_driver::FakeDriver;
pub use job::{Job, Sandbox};
pub use listener::Listener;
pub use live::{Ended, Live, descendants};
pub use record::{InTemp, Record, Row};
pub use terminal::{Shell, Terminal};

/// How long a test waits for anything before it calls it broken: far longer than anything
/// takes on a loaded machine, because a wait ends as soon as its condition holds.
pub const PATIENCE: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(5);

/// Waits until the condition holds.
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    wait_longer(PATIENCE, what, condition);
}

/// The same for what takes minutes.
pub fn wait_longer(patience: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < patience, "waited in vain: {what}");
        std::thread::sleep(POLL);
    }
}

/// Runs all checks at once: those that wait for minutes and compute little. Each of them is known
/// by its name, should it fail.
pub fn all_at_once(checks: &[(&str, fn())]) {
    std::thread::scope(|scope| {
        let start = |(name, check): &(&str, fn())| {
            let named = std::thread::Builder::new().name((*name).to_owned());
            named.spawn_scoped(scope, *check).unwrap()
        };
        let started: Vec<_> = checks.iter().map(start).collect();
        let ended = started.into_iter().map(std::thread::ScopedJoinHandle::join);
        let failed: Vec<_> = ended
            .zip(checks)
            .filter(|(ended, _)| ended.is_err())
            .map(|(_, (name, _))| *name)
            .collect();
        assert!(failed.is_empty(), "failed, see above: {failed:?}");
    });
}

/// Runs one check for each case, as many at once as there are processors (at least four:
/// most cases wait more than they compute).
pub fn for_each<T: Sync>(cases: &[T], check: impl Fn(&T) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(4, |n| n.get().max(4));
    std::thread::scope(|scope| {
        for _ in 0..workers.min(cases.len()) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(case) = cases.get(i) else { break };
                    check(case);
                }
            });
        }
    });
}

/// Python itself, not a version manager's wrapper, whose start costs more than many a test.
pub fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let out = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output()
            .expect("these tests need python3");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    })
}

/// What `tests/run` provides and names in this variable; without it there is nothing to try.
pub fn provided(variable: &str) -> Option<String> {
    let found = std::env::var(variable).ok();
    if found.is_none() {
        skipped(&format!("{variable} is not set (tests/run sets it)"));
    }
    found
}

/// Says that something isn't tried because it isn't installed. In CI that is a failure.
pub fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "not in CI: {why}");
    eprintln!("skipped: {why}");
}

/// A helper program of `tests/scripts`.
pub fn script(name: &str) -> String {
    in_package(&format!("tests/scripts/{name}"))
}

/// A file of the package.
pub fn in_package(path: &str) -> String {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    assert!(found.exists(), "{} is missing", found.display());
    found.to_str().unwrap().to_owned()
}

/// A copy of a program, which may be executed at once: one that this process itself had open
/// for writing could not, as long as a child just forked on another thread has it open too.
pub fn copy_program(from: &Path, to: &Path) {
    let mut cp = Command::new("cp");
    cp.arg("--preserve=mode").arg(from).arg(to);
    assert!(cp.status().unwrap().success(), "{cp:?}");
}

/// Sends a signal by its number; a negative id is a process group.
pub fn kill(id: i32, signal: i32) {
    let status = Command::new("sh")
        .args(["-c", "kill -\"$0\" \"$1\""])
        .args([signal.to_string(), id.to_string()])
        .status()
        .unwrap();
    assert!(status.success(), "kill -{signal} {id}");
}

/// The processes of a process group.
pub fn group(id: i32) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc").unwrap();
    pids.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let pid = nix::unistd::Pid::from_raw(*pid);
            nix::unistd::getpgid(Some(pid)).is_ok_and(|group| group.as_raw() == id)
        })
        .collect()
}

/// Whether a process exists and isn't a zombie.
pub fn alive(pid: i32) -> bool {
    // The state follows the last `)`: a command's name may hold anything.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| {
            stat.rsplit_once(") ")
                .map(|(_, rest)| !rest.starts_with(['Z', 'X']))
        })
        .unwrap_or(false)
}

/// The processes whose environment holds this text.
pub fn marked(text: &str) -> Vec<i32> {
    let text = text.as_bytes();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            // A process may end while it is looked at, or belong to somebody else.
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|env| env.windows(text.len()).any(|w| w == text))
        })
        .collect()
}

/// Waits for a file to hold something, and returns it.
pub fn content(path: &Path) -> String {
    wait_until(&format!("{} is written", path.display()), || {
        std::fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n'))
    });
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

/// Every file below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue; // not made: nothing below it
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}
