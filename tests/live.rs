//! `gpuwatch ps` and `top`: what runs on this machine, read off the records alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use serde_json::{Value, json};
use support::{FakeDriver, Live, Sandbox, Shell, Terminal, alive, wait_until};

const TRAINS: &str = "trap 'exit 0' TERM; echo Epoch 1/4; while :; do sleep 0.05; done";

fn ps(sandbox: &Sandbox) -> Value {
    let ended = sandbox.gpuwatch(&["ps", "--json"]).run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    serde_json::from_str(&ended.out()).unwrap()
}

#[test]
fn nothing_runs() {
    let sandbox = Sandbox::new();
    assert_eq!(ps(&sandbox), json!({"schema": 1, "runs": []}));
    sandbox.watched(&[], &["true"]).run().assert_ok();
    assert_eq!(ps(&sandbox)["runs"], json!([]), "an ended run is none");
    let ended = sandbox.gpuwatch(&["ps"]).run();
    assert_eq!((ended.code(), ended.out()), (Some(0), String::new()));
}

#[test]
fn a_run_in_progress_is_shown_with_what_is_known() {
    let (sandbox, driver) = (Sandbox::new(), FakeDriver::new(&json!({"gpus": [{}]})));
    let options = ["--interval", "100ms", "--name", "tr\x1b[2Jain"];
    let job = sandbox.watched(&options, &["sh", "-c", TRAINS]);
    let live = job.with(&driver).start();
    wait_until("a sample with progress is read", || {
        let runs = &ps(&sandbox)["runs"];
        runs[0]["epoch"] == 1.0 && runs[0]["gpu_util_pct"].is_number()
    });
    let run = &ps(&sandbox)["runs"][0];
    assert_eq!(run["epochs"], 4.0);
    assert_eq!(run["gpus"], json!(["0"]));
    assert!(run["elapsed_s"].as_f64().unwrap() > 0.0);
    assert!(run["output_age_s"].as_f64().unwrap() >= 0.0);
    let table = sandbox.gpuwatch(&["ps"]).run().out();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[0].starts_with("RUN "), "{table}");
    assert!(lines[1].contains("epoch 1/4"), "{table}");
    assert!(!table.contains('\x1b'), "{table}");
    live.signal(15);
    live.end();
    assert_eq!(ps(&sandbox)["runs"], json!([]));
}

#[test]
fn what_is_unknown_is_null_and_a_killed_supervisor_is_no_run() {
    let sandbox = Sandbox::new();
    let live = sandbox
        .watched(&["--gpus", "none"], &["sh", "-c", TRAINS])
        .start();
    wait_until("it is listed", || {
        ps(&sandbox)["runs"][0]["elapsed_s"].is_number()
    });
    let run = &ps(&sandbox)["runs"][0];
    for name in ["gpu_util_pct", "job_sm_pct", "job_mem_mib"] {
        assert_eq!(run[name], Value::Null, "{name}");
    }
    live.signal(9);
    live.end();
    wait_until("its lock is gone", || ps(&sandbox)["runs"] == json!([]));
}

const ENTERED: &str = "\x1b[?1049h";
const LEFT: &str = "\x1b[?1049l";

/// A run that trains on a simulated GPU.
fn trains(sandbox: &Sandbox, driver: &FakeDriver) -> Live {
    let options = ["--interval", "100ms", "--name", "my\x1b[2Jmodel"];
    let job = sandbox.watched(&options, &["sh", "-c", TRAINS]);
    let live = job.with(driver).start();
    wait_until("a sample with progress is read", || {
        ps(sandbox)["runs"][0]["epoch"] == 1.0
    });
    live
}

#[test]
fn top_draws_runs_and_leaves_the_terminal_as_it_was() {
    let (sandbox, driver) = (Sandbox::new(), FakeDriver::new(&json!({"gpus": [{}]})));
    let live = trains(&sandbox, &driver);
    let leaves: [fn(&mut Terminal, &Live); 4] = [
        |terminal, _| terminal.send("q"),
        |terminal, _| terminal.send("\x03"),
        |_, top| top.signal(15),
        |_, top| top.signal(1),
    ];
    for leave in leaves {
        let mut terminal = Terminal::new(24, 80);
        let before = terminal.settings();
        let mut top = sandbox.gpuwatch(&["top"]).start_on(&mut terminal);
        terminal.wait_for(ENTERED);
        terminal.wait_for("my?[2Jmodel");
        terminal.wait_for("epoch 1/4");
        assert_ne!(terminal.settings(), before, "keys are read as they come");
        terminal.resize(24, 40);
        // The bar of progress is a third of the screen.
        terminal.wait_for(&format!("[{}]", ".".repeat(13)));
        leave(&mut terminal, &top);
        assert_eq!(top.wait().code(), Some(0));
        assert_eq!(terminal.settings(), before);
        let drawn = String::from_utf8(terminal.everything()).unwrap();
        assert!(drawn.ends_with(LEFT), "{drawn:?}");
    }
    live.signal(15);
    live.end();
}

#[test]
fn top_is_stopped_and_fetched() {
    let (sandbox, driver) = (Sandbox::new(), FakeDriver::new(&json!({"gpus": [{}]})));
    let live = trains(&sandbox, &driver);
    let mut shell = Shell::start(&sandbox);
    let before = shell.terminal.settings();
    shell.line(&format!("{} top", env!("CARGO_BIN_EXE_gpuwatch")));
    shell.wait_for("epoch 1/4");
    shell.stop();
    assert_eq!(shell.terminal.settings(), before);
    assert!(shell.terminal.so_far().contains(LEFT));
    shell.line("fg");
    shell.wait_for(ENTERED);
    shell.wait_for("epoch 1/4");
    shell.send("q");
    shell.wait_for(LEFT);
    shell.prompt();
    assert_eq!(shell.status(), "0");
    // In the background it waits for the terminal, and can be ended.
    shell.stops_in_background(&format!("{} top", env!("CARGO_BIN_EXE_gpuwatch")));
    shell.line("echo \"=$!=\"");
    shell.wait_for("=");
    shell.prompt();
    let said = shell.terminal.so_far();
    let pid = said.rsplit('=').nth(1).unwrap().parse().unwrap();
    assert!(alive(pid));
    shell.line("kill %1");
    // Whether the shell has noticed is its own affair.
    wait_until("it has ended", || !alive(pid));
    live.signal(15);
    live.end();
}

#[test]
fn top_without_a_terminal_names_ps() {
    let sandbox = Sandbox::new();
    let ended = sandbox.gpuwatch(&["top"]).run();
    assert_eq!((ended.code(), ended.out()), (Some(1), String::new()));
    assert_eq!(ended.own_lines().len(), 1, "{}", ended.err());
    assert!(ended.err().contains("'gpuwatch ps'"), "{}", ended.err());
}
