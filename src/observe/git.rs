//! Whether a working tree differs from its commit, asked of git itself.
//!
//! Owns running `git status` so that it can't be felt: its streams aren't the user's, it takes
//! no lock, starts no daemon, asks no network, and is killed when its time is up.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

use crate::model::GitState;

use super::identity;

/// How long a killed git may take to be reaped. One that hangs in the kernel is left behind.
const REAP_WITHIN: Duration = Duration::from_millis(200);

/// Commit and dirtiness of the work tree at `root`.
///
/// `dirty` is `None` where git is missing, refuses the directory or takes longer than `within`.
/// `started` is told the PID of the git process, which is no part of the job.
pub fn git_state(root: &Path, within: Duration, started: &mut dyn FnMut(u32)) -> GitState {
    GitState {
        commit: identity::commit(root),
        dirty: dirty(Command::new("git"), root, within, started),
    }
}

fn dirty(
    git: Command,
    root: &Path,
    within: Duration,
    started: &mut dyn FnMut(u32),
) -> Option<bool> {
    let deadline = Instant::now() + within;
    let mut child = spawn(git, root).ok()?;
    started(child.id());
    let answer = answer(&mut child, deadline);
    if answer.is_none() {
        // It may have ended by itself meanwhile, which is as good.
        let _ = child.kill();
        let _ = wait(&mut child, Instant::now() + REAP_WITHIN);
    }
    answer
}

fn spawn(mut git: Command, root: &Path) -> io::Result<Child> {
    git.arg("-C")
        .arg(root)
        // Neither the user's hook nor a daemon that would outlive us.
        .args(["-c", "core.fsmonitor=false"])
        .args(["status", "--porcelain", "--untracked-files=no"])
        .arg("--ignore-submodules=dirty")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// The first byte that git prints says "dirty"; success without one says "clean".
fn answer(child: &mut Child, deadline: Instant) -> Option<bool> {
    let stdout = OwnedFd::from(child.stdout.take()?);
    if !readable(stdout.as_fd(), deadline) {
        return None;
    }
    let mut byte = [0_u8; 1];
    if rustix::io::read(&stdout, &mut byte).ok()? > 0 {
        // Closed at once, git may die of the rest that it has to say.
        drop(stdout);
        let _ = child.kill();
        let _ = wait(child, Instant::now() + REAP_WITHIN);
        return Some(true);
    }
    wait(child, deadline)?.success().then_some(false)
}

/// Reaps the child; `None` if it hasn't ended by then.
fn wait(child: &mut Child, deadline: Instant) -> Option<std::process::ExitStatus> {
    let pid = Pid::from_child(child);
    if let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        readable(pidfd.as_fd(), deadline);
    }
    child.try_wait().ok().flatten()
}

/// Waits until there is something to read, or the deadline.
fn readable(fd: BorrowedFd<'_>, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) if !left.is_zero() => {}
            ready => return ready.is_ok_and(|n| n > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn git(root: &Path, args: &[&str]) -> bool {
        Command::new("git")
            .arg("-C")
            .arg(root)
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(args)
            .output()
            .is_ok_and(|out| out.status.success())
    }

    #[test]
    fn a_tracked_file_that_changed_makes_it_dirty() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let mut pids = Vec::new();
        let mut state = || git_state(root, LONG, &mut |pid| pids.push(pid));
        assert_eq!(state(), GitState::default(), "no repository");
        if !git(root, &["init", "-q"]) {
            return; // no git here
        }
        std::fs::write(root.join("a"), "1").unwrap();
        assert!(git(root, &["add", "a"]));
        assert!(git(root, &["commit", "-qm", "one"]));
        std::fs::write(root.join("untracked"), "1").unwrap();
        let clean = state();
        assert_eq!(clean.dirty, Some(false));
        assert_eq!(clean.commit.unwrap().len(), 7);
        std::fs::write(root.join("a"), "22").unwrap();
        assert_eq!(state().dirty, Some(true));
        assert_eq!(pids.len(), 3);
    }

    #[test]
    fn a_git_that_is_missing_or_slow_answers_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let missing = Command::new(dir.path().join("git"));
        let mut ignored = |_| ();
        assert_eq!(dirty(missing, dir.path(), LONG, &mut ignored), None);
        // `sh -c script -C root ...`: a git that never says anything.
        let mut slow = Command::new("sh");
        slow.args(["-c", "exec sleep 1000"]);
        let mut pid = 0;
        let answer = dirty(slow, dir.path(), Duration::from_millis(50), &mut |p| {
            pid = p;
        });
        assert_eq!(answer, None);
        // Reaped, or on a very busy machine killed at least.
        let mut fs = super::super::ProcFs::default();
        let end = Instant::now() + LONG;
        while fs.stat(pid).is_ok_and(|(stat, _)| stat.state != b'Z') {
            assert!(Instant::now() < end, "it was left running");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
