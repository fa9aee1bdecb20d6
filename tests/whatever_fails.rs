//! How the command ended comes through while everything beside it fails: the disk is full and
//! nobody answers at the place where alerts go.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::BTreeMap;

use support::http_server::closed_url;
use support::{Job, Sandbox, wait_until};

/// A disk of one page, which is taken; else files that may not grow.
const FULL_DISK: &str = r"
if mount -t tmpfs -o size=4k tmpfs disk 2> /dev/null; then
    head -c 8k /dev/zero > disk/filler 2> /dev/null
    ! echo x 2> /dev/null > disk/probe || exit 90
    full=:
else
    full='ulimit -f 0'
fi
export full
";

/// Many at once, because each waits a moment for the dead place.
const ALL_ENDINGS: &str = r#"
{ seq 0 255 | sed 's/^/exit /'; echo 'kill -SEGV $$'; echo 'kill -ABRT $$'; echo 'kill -TERM $$'; echo 'kill -KILL $$'; } |
    tr '\n' '\0' |
    xargs -0 -P 24 -I ENDING sh -c '
        (eval "$full"; ulimit -c 0; exec "$0" run -q --gpus none --dir disk/runs --notify "$1" -- sh -c "$2")
        echo "$2: $?" >> endings' "$@" ENDING
exit 0
"#;

/// In a mount namespace of its own where that is allowed.
fn with_own_mounts(sandbox: &Sandbox, job: Job) -> Job {
    let ways: [&[&str]; 2] = [
        &["unshare", "--mount"],
        &["unshare", "--mount", "--user", "--map-root-user"],
    ];
    for way in ways {
        let argv = [way, &["true"]].concat();
        if sandbox.direct(&argv).run().code() == Some(0) {
            return job.under(way);
        }
    }
    job
}

fn wanted() -> BTreeMap<String, i32> {
    let codes = (0..=255).map(|code| (format!("exit {code}"), code));
    let deaths = [("SEGV", 139), ("ABRT", 134), ("TERM", 143), ("KILL", 137)];
    let deaths = deaths.map(|(name, status)| (format!("kill -{name} $$"), status));
    codes.chain(deaths).collect()
}

fn every_ending_comes_through(on_terminal: bool) {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("disk")).unwrap();
    let script = format!("{FULL_DISK}{ALL_ENDINGS}");
    let url = closed_url();
    let argv = [
        "sh",
        "-c",
        &script,
        "sh",
        env!("CARGO_BIN_EXE_gpuwatch"),
        &url,
    ];
    let job = with_own_mounts(&sandbox, sandbox.direct(&argv));
    let ended = job.run_either_way(on_terminal);
    assert_eq!(ended.code(), Some(0), "{} {}", ended.out(), ended.err());
    let noted = || std::fs::read_to_string(sandbox.path("endings")).unwrap_or_default();
    wait_until("all have ended", || {
        noted().lines().count() >= wanted().len()
    });
    let seen: BTreeMap<String, i32> = noted()
        .lines()
        .map(|line| {
            let (ending, status) = line.rsplit_once(": ").unwrap();
            (ending.to_owned(), status.parse().unwrap())
        })
        .collect();
    assert_eq!(seen, wanted());
}

#[test]
fn every_ending_comes_through_pipes() {
    every_ending_comes_through(false);
}

#[test]
fn every_ending_comes_through_on_a_terminal() {
    every_ending_comes_through(true);
}

/// A disk on which not even the record's directory can be made.
#[test]
fn a_directory_for_records_that_is_full_costs_the_record_alone() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("disk")).unwrap();
    let script = "mount -t tmpfs -o nr_inodes=1 tmpfs disk || exit 99; \
                  exec \"$0\" run --gpus none --dir disk -- sh -c 'echo ran; exit 6'";
    let argv = ["sh", "-c", script, env!("CARGO_BIN_EXE_gpuwatch")];
    let ended = with_own_mounts(&sandbox, sandbox.direct(&argv)).run();
    if ended.code() == Some(99) {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    assert_eq!(ended.code(), Some(6), "{}", ended.err());
    assert_eq!(ended.out(), "ran\n");
    assert!(
        ended.err().contains("No space left on device"),
        "{}",
        ended.err()
    );
}
