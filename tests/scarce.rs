//! Where there is too little of something, the command runs as it would without gpuwatch, or
//! nothing is started at all; a command without a supervisor there is never.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use support::{Ended, Live, Sandbox, copy_program, files_below, for_each};

/// Either it ran and its code came back, or nothing ran and we say that it is our failure.
fn ran_or_did_not_start(ended: &Ended, what: &str) -> bool {
    let all = format!(
        "{what}: {:?} {:?} {}",
        ended.code(),
        ended.out(),
        ended.err()
    );
    match ended.code() {
        Some(7) => assert_eq!(ended.out(), "hi\n", "{all}"),
        Some(125) => assert_eq!(ended.out(), "", "{all}"),
        _ => panic!("{all}"),
    }
    ended.code() == Some(7)
}

#[test]
fn few_descriptors_cost_the_record_and_not_the_run() {
    let limits: Vec<u32> = (6..=28).collect();
    for_each(&limits, |limit| {
        let sandbox = Sandbox::new();
        let limited = format!("ulimit -n {limit}; exec \"$@\"");
        let job = sandbox.watched(&[], &["sh", "-c", "echo hi; exit 7"]);
        let ended = job.under(&["sh", "-c", &limited, "sh"]).run();
        let ran = ran_or_did_not_start(&ended, &format!("{limit} descriptors"));
        assert!(ran || *limit < 16, "{limit} descriptors: {}", ended.err());
        if !ran {
            assert_eq!(files_below(&sandbox.runs()), [] as [std::path::PathBuf; 0]);
        }
    });
}

#[test]
fn few_processes_cost_the_record_and_not_the_run() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can be a user that has no other processes");
        return;
    }
    let limits: Vec<u32> = (1..=12).collect();
    for_each(&limits, |limit| {
        let folder = tempfile::Builder::new()
            .permissions(PermissionsExt::from_mode(0o755))
            .tempdir()
            .unwrap();
        let program = folder.path().join("gpuwatch");
        copy_program(env!("CARGO_BIN_EXE_gpuwatch").as_ref(), &program);
        // Each case as another user: the limit counts a user's processes.
        let user = (470_000 + std::process::id() * 20 + limit).to_string();
        let limited = format!("--nproc={limit}");
        let as_user = [
            "setpriv",
            "--clear-groups",
            "--reuid",
            &user,
            "--regid",
            &user,
        ];
        let program = program.to_str().unwrap();
        let words = ["run", "--no-record", "--", "sh", "-c", "echo hi; exit 7"];
        let argv = [&["prlimit", &limited, program][..], &words].concat();
        let sandbox = Sandbox::new();
        let job = sandbox.direct(&argv).cwd(folder.path());
        let ended = job.under(&as_user).run();
        let ran = ran_or_did_not_start(&ended, &format!("{limit} processes"));
        assert!(ran || *limit < 8, "{limit} processes: {}", ended.err());
    });
}

#[test]
fn a_stderr_that_nobody_reads_holds_up_nothing() {
    let sandbox = Sandbox::new();
    let mut command = sandbox
        .watched(&[], &["sh", "-c", "echo hi; exit 7"])
        .command();
    let (held, full) = std::io::pipe().unwrap();
    let size = nix::fcntl::fcntl(&full, nix::fcntl::FcntlArg::F_GETPIPE_SZ).unwrap();
    std::io::Write::write_all(&mut &full, &vec![b'x'; size.try_into().unwrap()]).unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.stdin(Stdio::null()).stdout(writer).stderr(full);
    let mut live = Live::apart(&mut command);
    drop(command);
    let mut out = String::new();
    reader.read_to_string(&mut out).unwrap();
    assert_eq!((out.as_str(), live.wait().code()), ("hi\n", Some(7)));
    drop(held);
}
