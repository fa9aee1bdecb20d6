//! How the command ended is how gpuwatch ends: every exit code, every death by a signal, and
//! the codes for a command that couldn't start.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::os::unix::fs::PermissionsExt;

use support::{Ended, Job, Sandbox, for_each};

#[test]
fn every_exit_code_comes_through() {
    let sandbox = Sandbox::new();
    let codes: Vec<i32> = (0..=255).collect();
    for_each(&codes, |&code| {
        let exit = format!("exit {code}");
        let ended = sandbox
            .watched(&["-q", "--no-record"], &["sh", "-c", &exit])
            .run();
        assert_eq!(
            ended.code(),
            Some(code),
            "{:?} {}",
            ended.status,
            ended.err()
        );
    });
}

#[test]
fn the_caller_sees_death_by_the_same_signal() {
    let numbers = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGILL,
        libc::SIGABRT,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGKILL,
        libc::SIGUSR1,
        libc::SIGSEGV,
        libc::SIGUSR2,
        libc::SIGPIPE,
        libc::SIGALRM,
        libc::SIGTERM,
        libc::SIGXCPU,
        libc::SIGRTMIN() + 3,
    ];
    for_each(&numbers, |&number| {
        let sandbox = Sandbox::new();
        let die = format!("ulimit -c 0; kill -{number} $$");
        for job in sandbox.both(&["sh", "-c", &die]) {
            let ended = job.run();
            assert_eq!(
                ended.signal(),
                Some(number),
                "{:?} {}",
                ended.status,
                ended.err()
            );
        }
        let exit = &sandbox.record().json()["exit"];
        assert_eq!(
            exit["signal"], number,
            "the record keeps it apart from a code"
        );
        assert!(exit["code"].is_null());
    });
}

#[test]
fn a_death_of_our_own_leaves_no_core() {
    let sandbox = Sandbox::new();
    // The command forbids its own core; a core that lies here would be gpuwatch's.
    let die = "ulimit -c 0; kill -SEGV $$";
    let watched = sandbox.watched(&["-q"], &["sh", "-c", die]);
    let ended = watched
        .under(&["sh", "-c", "ulimit -c unlimited; exec \"$@\"", "sh"])
        .run();
    assert_eq!(ended.signal(), Some(libc::SIGSEGV));
    assert!(!std::os::unix::process::ExitStatusExt::core_dumped(
        &ended.status
    ));
}

#[test]
fn the_record_keeps_code_and_signal_apart() {
    let sandbox = Sandbox::new();
    let ended = sandbox.watched(&["-q"], &["sh", "-c", "exit 143"]).run();
    assert_eq!(ended.code(), Some(143));
    let run = sandbox.record().json();
    assert_eq!(run["exit"]["code"], 143);
    assert!(run["exit"]["signal"].is_null());
    assert_eq!(run["state"], "finished");
    assert_eq!(run["verdict"]["outcome"], "failed");
}

/// One line of our own that names the thing, the code, nothing on stdout, no record.
fn refused(sandbox: &Sandbox, ended: &Ended, code: i32, names: &str) {
    let said = ended.err();
    assert_eq!(ended.code(), Some(code), "{:?} {said}", ended.status);
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    assert!(
        said.starts_with("gpuwatch: ") && said.ends_with('\n'),
        "{said}"
    );
    assert!(said.contains(names), "{said:?} should name {names:?}");
    assert!(ended.out.is_empty(), "{}", ended.out());
    let left = support::files_below(&sandbox.runs());
    let records: Vec<_> = left.iter().filter(|f| f.ends_with("run.json")).collect();
    assert!(records.is_empty(), "no record: {records:?}");
}

#[test]
fn a_command_that_cannot_start_says_so_in_one_line() {
    let sandbox = Sandbox::new();
    let file = |name: &str, text: &str, mode: u32| {
        let path = sandbox.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let plain = file("plain.txt", "echo hello\n", 0o644);
    let orphan = file("orphan", "#!/nowhere/interpreter\n", 0o755);
    let folder = sandbox.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    let cases: [(&str, &[i32]); 6] = [
        ("no-such-command-anywhere", &[127]),
        ("/nowhere/command", &[127]),
        ("./missing", &[127]),
        (&plain, &[126]),
        (folder, &[126]),
        (&orphan, &[126, 127]),
    ];
    for (command, codes) in cases {
        let ended = sandbox.watched(&[], &[command]).run();
        let code = ended.code().filter(|code| codes.contains(code));
        refused(&sandbox, &ended, code.unwrap_or(codes[0]), command);
        let quiet = sandbox.watched(&["-q"], &[command]).run();
        assert_eq!(quiet.code(), ended.code());
        assert!(
            quiet.err().contains(command),
            "why nothing ran is said even with -q"
        );
    }
}

#[test]
fn a_script_without_a_first_line_runs_as_in_a_shell() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("script");
    std::fs::write(&path, "echo \"ran $1\"; exit 5\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let ended = sandbox
        .watched(&["-q"], &[path.to_str().unwrap(), "well"])
        .run();
    // execvp's rule, which shells, env and nohup follow: a file without `#!` is for sh.
    let direct = sandbox
        .direct(&["env", path.to_str().unwrap(), "well"])
        .run();
    assert_eq!(
        (direct.code(), direct.out()),
        (Some(5), "ran well\n".into())
    );
    assert_eq!(
        (ended.code(), ended.out()),
        (Some(5), "ran well\n".into()),
        "{}",
        ended.err()
    );
}

#[test]
fn wrong_usage_starts_nothing() {
    let sandbox = Sandbox::new();
    let blocked = sandbox.path("file");
    std::fs::write(&blocked, "not a folder").unwrap();
    let inside = format!("{}/runs", blocked.display());
    let touched = sandbox.arg("touched");
    let cases: [(&[&str], &str); 10] = [
        (&["run"], "command"),
        (&["run", "--"], "command"),
        (
            &["run", "--no-such-option", "--", "touch", &touched],
            "--no-such-option",
        ),
        (
            &["run", "--interval", "5 parsecs", "--", "touch", &touched],
            "parsecs",
        ),
        (&["run", "--interval", "7", "--", "touch", &touched], "7"),
        (
            &["run", "--env", "NOVALUE", "--", "touch", &touched],
            "NOVALUE",
        ),
        (&["run", "--gpus", "many", "--", "touch", &touched], "many"),
        (&["run", "--dir", &inside, "--", "touch", &touched], &inside),
        // A directory in which nothing can be made, though it is there; a file in its place.
        (
            &["run", "--dir", "/proc/runs", "--", "touch", &touched],
            "/proc/runs",
        ),
        (
            &["run", "--dir", "/dev/null", "--", "touch", &touched],
            "/dev/null",
        ),
    ];
    for (args, names) in cases {
        let ended = sandbox.gpuwatch(args).run();
        refused(&sandbox, &ended, 125, names);
        assert!(
            !sandbox.path("touched").exists(),
            "{args:?} started the command"
        );
    }
}

#[test]
fn a_refusal_is_one_line_and_safe_for_a_terminal() {
    let sandbox = Sandbox::new();
    for argv in ["./no\x1b[31m", "./no\ngpuwatch: ok"] {
        let ended = sandbox.watched(&["-q"], &[argv]).run();
        let said = ended.err();
        assert_eq!(ended.code(), Some(127), "{said:?}");
        assert!(!said.contains('\x1b'), "{said:?}");
        assert_eq!(said.lines().count(), 1, "{said:?}");
    }
}

#[test]
fn a_switch_is_read_from_the_environment_as_people_write_it() {
    let sandbox = Sandbox::new();
    for (value, on) in [
        ("1", true),
        ("0", false),
        ("", false),
        ("true", true),
        ("no", false),
    ] {
        let with = |job: Job| {
            job.env("GPUWATCH_DESKTOP", value)
                .env("GPUWATCH_NO_RECORD", value)
        };
        let plan = with(sandbox.watched(&["--dry-run"], &["true"])).run();
        let recorded = plan.assert_ok().out().contains("GPUWATCH_RUN_DIR");
        assert_eq!(recorded, !on, "{value:?}: {}", plan.out());
        let channels = with(sandbox.gpuwatch(&["alert", "list"])).run();
        let told = channels.assert_ok().out().contains("desktop");
        assert_eq!(told, on, "{value:?}: {}", channels.out());
    }
}
