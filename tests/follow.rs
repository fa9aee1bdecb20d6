//! Progress that isn't on the output: followed logs, TensorBoard's event files, what a command
//! says itself, and lines of the user's own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use support::no_answer::NoAnswer;
use support::{Sandbox, provided, script, wait_until};

/// A shell that does what it is sent, line by line, and says nothing of its own.
const SHELL: [&str; 3] = [
    "sh",
    "-c",
    "while IFS= read -r line; do eval \"$line\"; done",
];

/// Waits until a sample shows this; what was sent before is done by then.
fn wait_for(sandbox: &Sandbox, column: &str, value: &str) {
    wait_until(&format!("{column} is {value}"), || {
        let rows = sandbox.samples_so_far();
        rows.last().is_some_and(|row| row[column] == value)
    });
}

#[test]
fn a_log_is_followed_through_rotation_truncation_and_replacement() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("train.log"), "Epoch 9/9 of another run\n").unwrap();
    let options = ["--follow", "train.log", "--interval", "100ms"];
    let mut run = sandbox.watched(&options, &SHELL).start();
    for (command, epoch) in [
        ("echo 'Epoch 1/5' >> train.log", "1"),
        (
            "mv train.log train.log.1; echo 'Epoch 2/5' > train.log",
            "2",
        ),
        (": > train.log; echo 'Epoch 3/5' >> train.log", "3"),
        ("echo 'Epoch 4/5 and on' > next; mv next train.log", "4"),
    ] {
        run.send(&format!("{command}\n"));
        wait_for(&sandbox, "epoch", epoch);
    }
    // The last line has no end.
    run.send("printf 'Epoch 5/5 step 7/7' >> train.log\n");
    let ended = run.end();
    assert_eq!((ended.code(), ended.out()), (Some(0), String::new()));
    let record = sandbox.record();
    let summary = &record.json()["summary"];
    assert_eq!(
        (summary["epoch"].as_f64(), summary["step"].as_u64()),
        (Some(5.0), Some(7))
    );
    let changes: Vec<String> = record
        .events_of("progress")
        .iter()
        .map(|event| event["change"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(changes.first().map(String::as_str), Some("first"));
    assert_eq!(
        changes
            .iter()
            .filter(|change| *change == "epoch-end")
            .count(),
        5,
        "{changes:?}"
    );
    assert!(record.output().is_empty(), "it isn't output");
}

#[test]
fn what_stood_in_a_log_before_is_another_runs() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("train.log"), "Epoch 9/9 step 3/3\n").unwrap();
    let options = ["--follow", "train.log", "--interval", "100ms"];
    let mut run = sandbox.watched(&options, &SHELL).start();
    run.send("echo 'Epoch 1/4' >> train.log\n");
    wait_for(&sandbox, "epoch", "1");
    run.end().assert_ok();
    let record = sandbox.record();
    let read = record.events_of("progress");
    assert_eq!((read.len(), &read[0]["epochs"]), (1, &4.into()), "{read:?}");
    assert!(record.json()["summary"]["step"].is_null());
}

#[test]
fn more_than_one_look_takes_is_read_to_its_end() {
    let sandbox = Sandbox::new();
    let lines = "a line that says nothing of how far it is\n".repeat(80_000);
    std::fs::write(sandbox.path("much"), lines).unwrap();
    let options = ["--follow", "train.log", "--interval", "100ms"];
    let mut run = sandbox.watched(&options, &SHELL).start();
    run.send("cat much > train.log; echo 'Epoch 2/4' >> train.log\n");
    wait_for(&sandbox, "epoch", "2");
    run.end().assert_ok();
}

#[test]
fn a_log_beside_a_bar_adds_what_the_bar_lacks() {
    let sandbox = Sandbox::new();
    let options = ["--follow", "train.log", "--interval", "100ms"];
    let mut run = sandbox.watched(&options, &SHELL).start();
    run.send("echo 'Epoch 2/4' >> train.log\n");
    wait_for(&sandbox, "epoch", "2");
    run.send("echo ' 50%|#####     | 5/10 [00:05<00:05, 1.00it/s]' >&2\n");
    wait_for(&sandbox, "step", "5");
    wait_for(&sandbox, "overall_pct", "37.5");
    run.end().assert_ok();
}

#[test]
fn what_cannot_be_followed_is_said_and_costs_nothing() {
    let sandbox = Sandbox::new();
    let options = ["--follow", "nowhere.log", "--follow", "pipe"];
    nix::unistd::mkfifo(&sandbox.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut run = sandbox.watched(&options, &SHELL).start();
    wait_until("it is told", || {
        sandbox.so_far("events.jsonl").contains("follow pipe")
    });
    run.send("exit 7\n");
    let ended = run.end();
    assert_eq!(ended.code(), Some(7));
    let said = ended.err();
    assert!(
        said.contains("nothing was read from 'nowhere.log'"),
        "{said}"
    );
    assert!(
        said.contains("'pipe' can't be followed: it is not a regular file"),
        "{said}"
    );
    let sources = sandbox.record().events_of("source");
    assert!(
        sources.iter().any(|event| event["name"] == "follow pipe"),
        "{sources:?}"
    );
}

#[test]
fn a_file_system_that_never_answers_holds_nothing_up() {
    let Some(silent) = NoAnswer::mount() else {
        return;
    };
    let sandbox = Sandbox::new();
    let file = silent.file();
    let options = ["--follow", &file, "--interval", "100ms"];
    let mut run = sandbox.watched(&options, &SHELL).start();
    run.send("echo 'Epoch 1/2'\n");
    wait_for(&sandbox, "epoch", "1");
    silent.wait_until_asked();
    run.send("echo 'Epoch 2/2'\n");
    wait_for(&sandbox, "epoch", "2");
    run.end().assert_ok();
    let run = sandbox.record().json();
    assert_eq!(
        (&run["state"], &run["summary"]["epoch"]),
        (&"finished".into(), &2.into())
    );
}

#[test]
fn the_variable_and_a_profile_name_files_too() {
    for (variable, profile) in [(Some("train.log"), None), (None, Some("follow.yaml"))] {
        let sandbox = Sandbox::new();
        std::fs::write(
            sandbox.path("follow.yaml"),
            "progress: {follow: [train.log]}\n",
        )
        .unwrap();
        let options: Vec<&str> = profile.into_iter().flat_map(|p| ["--profile", p]).collect();
        let job = sandbox.watched(&options, &SHELL);
        let job = job.env("GPUWATCH_FOLLOW", variable.unwrap_or_default());
        let mut run = job.start();
        run.send("echo 'Epoch 1/3' > train.log\n");
        wait_for(&sandbox, "epochs", "3");
        let ended = run.end();
        let said = ended.assert_ok().err();
        assert!(!said.contains("not acted on"), "{said}");
    }
}

#[test]
fn a_failure_in_a_followed_log_counts_like_one_on_the_output() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("train.log"), "OSError: [Errno 28] of old\n").unwrap();
    let options = ["--follow", "train.log", "--interval", "100ms"];
    let mut run = sandbox.watched(&options, &SHELL).start();
    run.send("echo 'step 1/9' >> train.log\n");
    wait_for(&sandbox, "step", "1");
    let oom = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
    run.send(&format!("echo '{oom}' >> train.log\n"));
    wait_until("it is told at once", || {
        sandbox.so_far("events.jsonl").contains("\"raised\"")
    });
    // The log begins anew, and its last line has no end.
    run.send(
        "echo 'rest' >> train.log; mv train.log old; printf 'Stale file handle' > train.log\n",
    );
    run.send("exit 1\n");
    let ended = run.end();
    assert_eq!(ended.code(), Some(1));
    let record = sandbox.record();
    let lines = record.events_of("line");
    let told: Vec<_> = lines
        .iter()
        .map(|l| (l["text"].as_str().unwrap(), l["stream"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [(oom, "file"), ("Stale file handle", "file")]);
    assert_eq!(lines[0]["file"], "train.log");
    let verdict = &record.json()["verdict"];
    assert_eq!(
        (&verdict["cause"], &verdict["rank"], &verdict["line"]),
        (&"oom".into(), &1.into(), &oom.into())
    );
    let around = serde_json::json!(["step 1/9", oom, "rest"]);
    assert_eq!(verdict["around"], around);
}

#[test]
fn event_files_show_a_training_that_prints_nothing() {
    let Some(python) = provided("GPUWATCH_TEST_TF_PYTHON") else {
        return;
    };
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("logs")).unwrap();
    std::fs::write(
        sandbox.path("logs/events.out.tfevents.1.old"),
        "another run's",
    )
    .unwrap();
    let options = ["--follow", "logs", "--interval", "100ms"];
    let script = script("only_tensorboard.py");
    let mut run = sandbox
        .watched(&options, &[&python, &script, "logs/a"])
        .start();
    run.send("10 0.5\n");
    wait_for(&sandbox, "step", "10");
    wait_for(&sandbox, "loss", "0.5");
    run.send("20 0.25\n");
    wait_for(&sandbox, "step", "20");
    let ended = run.end();
    assert_eq!((ended.code(), ended.out()), (Some(0), String::new()));
    let record = sandbox.record();
    let first = &record.events_of("progress")[0];
    assert_eq!(
        (&first["change"], &first["source"]),
        (&"first".into(), &"tensorboard".into())
    );
    assert_eq!(
        record.json()["summary"]["step"],
        20,
        "the evaluation's step is none"
    );
    let parsed = sandbox.gpuwatch(&["parse", "logs/a", "--json"]).run();
    let last = parsed.assert_ok().out();
    let last: serde_json::Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    assert_eq!((&last["step"], &last["loss"]), (&20.into(), &0.25.into()));
}

#[test]
fn keras_writes_its_epochs_for_tensorboard() {
    let Some(python) = provided("GPUWATCH_TEST_TF_PYTHON") else {
        return;
    };
    let sandbox = Sandbox::new();
    let script = script("keras_tensorboard.py");
    let job = sandbox.watched(&["--follow", "logs"], &[&python, &script, "logs"]);
    let run = job.env("TF_CPP_MIN_LOG_LEVEL", "3").start();
    // Counted from 0, as it is written.
    wait_for(&sandbox, "epoch", "2");
    run.end().assert_ok();
}

#[test]
fn what_a_command_says_itself_makes_milestones_and_a_share() {
    let sandbox = Sandbox::new();
    let mut run = sandbox.watched(&["--interval", "100ms"], &SHELL).start();
    let say = |text: &str| format!("echo '{text}' >> \"$GPUWATCH_PROGRESS\"\n");
    run.send("echo ' 90%|######### | 9/10 [00:05<00:05, 1.00it/s]'\n");
    run.send(&say(r#"{"epoch": 1, "epochs": 4, "steps": 10}"#));
    run.send(&say(r#"{"step": 5}"#));
    wait_for(&sandbox, "step", "5");
    wait_for(&sandbox, "overall_pct", "12.5");
    run.send(&say(r#"{"epoch": 2, "step": 0}"#));
    wait_for(&sandbox, "overall_pct", "25");
    run.end().assert_ok();
    let events = sandbox.record().events_of("progress");
    let said: Vec<_> = events.iter().filter(|e| e["source"] == "said").collect();
    let changes: Vec<_> = said.iter().map(|e| e["change"].as_str().unwrap()).collect();
    assert_eq!(changes, ["first", "epoch-end"], "{events:?}");
}

#[test]
fn lines_of_the_users_own_are_read_and_mistakes_underlined() {
    let sandbox = Sandbox::new();
    let profile = |regex: &str| {
        let text = format!(
            "progress:\n  patterns:\n    - {{name: mine, regex: '{regex}', phase: train}}\n"
        );
        std::fs::write(sandbox.path("mine.yaml"), text).unwrap();
    };
    profile(r"ronde (?<step>[\d.,]+) von (?<steps>\S+): Fehler (?<loss>\S+)");
    let argv = ["echo", "ronde 1,200 von 9k: Fehler 0,53"];
    let ended = sandbox.watched(&["--profile", "mine.yaml"], &argv).run();
    let said = ended.assert_ok().err();
    assert!(!said.contains("not acted on"), "{said}");
    let events = sandbox.record().events_of("progress");
    let first = &events[0];
    assert_eq!(
        [
            &first["source"],
            &first["step"],
            &first["steps"],
            &first["loss"]
        ],
        [
            &serde_json::json!("mine"),
            &1200.into(),
            &9000.into(),
            &serde_json::json!(0.53)
        ]
    );
    std::fs::write(sandbox.path("out.txt"), argv[1]).unwrap();
    let try_it = || {
        sandbox
            .gpuwatch(&["parse", "out.txt", "--profile", "mine.yaml"])
            .run()
    };
    let tried = try_it();
    assert!(
        tried.assert_ok().out().contains("step 1200/9000"),
        "{}",
        tried.out()
    );
    profile(r"ronde (?<stpe>\d+)");
    let wrong = try_it();
    assert_eq!(wrong.code(), Some(1));
    let marks = "    ronde (?<stpe\n             ^^^^\n";
    assert!(
        wrong.err().contains("did you mean 'step'?"),
        "{}",
        wrong.err()
    );
    assert!(wrong.err().ends_with(marks), "{}", wrong.err());
}

#[test]
fn what_is_no_event_file_or_damaged_is_said_after_what_was_read() {
    let sandbox = Sandbox::new();
    let real = support::in_package(
        "tests/recordings/events/tensorboardx_silent/logs/run1/events.out.tfevents.1796100141.node01",
    );
    let whole = std::fs::read(real).unwrap();
    std::fs::create_dir(sandbox.path("logs")).unwrap();
    let parse = |path: &str| sandbox.gpuwatch(&["parse", path]).run();
    let empty = parse("logs");
    assert_eq!((empty.code(), empty.out()), (Some(1), String::new()));
    assert!(
        empty.err().contains("is a directory; name a file in it"),
        "{}",
        empty.err()
    );
    let damaged = [&whole[..], &[7; 40]].concat();
    std::fs::write(sandbox.path("logs/a.tfevents"), damaged).unwrap();
    for path in ["logs", "logs/a.tfevents"] {
        let ended = parse(path);
        assert_eq!(ended.code(), Some(1));
        assert!(ended.out().contains("step 120"), "{path}: {}", ended.out());
        assert!(
            ended.err().contains("the event file is damaged"),
            "{}",
            ended.err()
        );
    }
}
