//! What is asked for and can't be had.

use std::net::TcpListener;

use crate::client::{address, metrics};
use crate::support::{Sandbox, wait_until};

/// M03: several runs share a profile or a variable, and the second one must not fail for it. The
/// same for a run inside another one, which has its variables.
#[test]
fn an_address_that_is_taken_is_a_note() {
    let sandbox = Sandbox::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let profile = sandbox.arg("profile.yaml");
    std::fs::write(&profile, format!("metrics: {{listen: {port}}}\n")).unwrap();
    let by_profile = sandbox.watched(&["--profile", &profile], &["echo", "ran"]);
    let within = sandbox
        .watched(&[], &["echo", "ran"])
        .env("GPUWATCH_RUN_ID", "20261130-091502-outer-7f3a")
        .env("GPUWATCH_METRICS", port.to_string());
    let by_flag = sandbox.watched(&["--metrics", &port.to_string()], &["echo", "ran"]);
    for job in [by_flag, by_profile, within] {
        let ended = job.run();
        assert_eq!(ended.assert_ok().out(), "ran\n");
        let said: Vec<_> = ended.own_lines();
        let about = said
            .iter()
            .filter(|line| line.contains("metrics can't be served"));
        // Before the start, and among the notes of the summary.
        assert_eq!(about.count(), 2, "{said:?}");
    }
}

#[test]
fn what_is_no_address_is_refused() {
    let sandbox = Sandbox::new();
    for text in ["nine", "127.0.0.1", "host:1", "70000"] {
        let ended = sandbox
            .watched(&["--metrics", text], &["echo", "ran"])
            .run();
        assert_eq!(
            (ended.code(), ended.out().as_str()),
            (Some(125), ""),
            "{text}"
        );
        assert_eq!(ended.own_lines().len(), 1, "{}", ended.err());
        let profile = sandbox.arg("profile.yaml");
        std::fs::write(&profile, format!("metrics: {{listen: '{text}'}}\n")).unwrap();
        let checked = sandbox.gpuwatch(&["profile", "check", &profile]).run();
        assert_eq!(checked.code(), Some(1), "{text}: {}", checked.err());
        assert!(
            checked.err().contains("profile.yaml:1:"),
            "{}",
            checked.err()
        );
    }
    let ended = sandbox
        .watched(&[], &["echo", "ran"])
        .env("GPUWATCH_METRICS", "")
        .env("GPUWATCH_METRICS_TEXTFILE", "")
        .run();
    assert_eq!(ended.assert_ok().out(), "ran\n");
}

#[test]
fn a_projects_file_opens_nothing_until_somebody_vouches_for_it() {
    for key in ["listen: 0", "textfile: ."] {
        let sandbox = Sandbox::new();
        std::fs::write(
            sandbox.path("gpuwatch.yaml"),
            format!("metrics: {{{key}}}\n"),
        )
        .unwrap();
        let refused = sandbox.watched(&[], &["echo", "ran"]).run();
        assert_eq!(
            (refused.code(), refused.out().as_str()),
            (Some(125), ""),
            "{key}"
        );
        assert!(refused.err().contains("profile trust"), "{}", refused.err());
        let trusted = sandbox
            .gpuwatch(&["profile", "trust", "gpuwatch.yaml"])
            .run();
        trusted.assert_ok();
        sandbox.watched(&[], &["echo", "ran"]).run().assert_ok();
    }
}

#[test]
fn a_dry_run_says_what_would_be_opened_and_opens_nothing() {
    let sandbox = Sandbox::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = sandbox.arg("missing");
    let options = [
        "--dry-run",
        "--metrics",
        &address,
        "--metrics-textfile",
        &folder,
    ];
    let ended = sandbox.watched(&options, &["true"]).run();
    let said = ended.assert_ok().out();
    let about: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("metrics: "))
        .collect();
    let expected = [
        format!("metrics: a file in {folder}"),
        format!("metrics: served at {address}"),
    ];
    assert_eq!(about, expected);
}

/// The command inherits no socket, and one that is killed leaves none open.
#[test]
fn the_socket_is_gpuwatchs_alone() {
    let sandbox = Sandbox::new();
    let argv = ["sh", "-c", "ls /proc/self/fd; echo listed; exec cat"];
    // Ours may have been given more than three.
    let direct = sandbox.direct(&argv).run().out();
    let live = sandbox.watched(&["--metrics", "0"], &argv).start();
    let address = address(&live);
    live.wait_for_out("listed");
    metrics(&address);
    assert_eq!(live.out_so_far(), direct);
    live.signal(9);
    drop(live);
    wait_until("the address is free", || {
        TcpListener::bind(&address).is_ok()
    });
}
