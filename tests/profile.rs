//! Profiles from outside: layers, what is refused before anything is started, trust.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use support::{Ended, Record, Sandbox, for_each};

const SECRET: &str = "s3cr3t-t0k3n";

/// The user's own configuration file.
fn config(sandbox: &Sandbox) -> PathBuf {
    sandbox.path("../home/.config/gpuwatch/config.yaml")
}

fn write(path: &PathBuf, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Runs a command that would leave a file behind.
fn attempt(sandbox: &Sandbox, options: &[&str]) -> Ended {
    sandbox
        .watched(options, &["sh", "-c", "touch started; exit 7"])
        .run()
}

/// Nothing was started, one error was said, and no secret is in it.
fn assert_refused(sandbox: &Sandbox, ended: &Ended, parts: &[&str]) {
    let said = ended.err();
    assert_eq!(ended.code(), Some(125), "{said}");
    assert!(!sandbox.path("started").exists(), "it was started: {said}");
    assert!(
        Record::all_in(&sandbox.runs()).is_empty(),
        "it was recorded"
    );
    assert_eq!(said.matches("gpuwatch: ").count(), 1, "{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
    let all = format!("{said}{}", ended.out());
    assert!(!all.contains("s3cr3t"), "a secret is told: {all}");
}

fn alias_bomb() -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..10 {
        let before = vec![format!("*a{}", i - 1); 10].join(", ");
        text = format!("{text}a{i}: &a{i} [{before}]\n");
    }
    text
}

const UNDERLINED: &str = "    job.mem > 1GiB and gpu.utl < 20\n                       ^^^^^^^";

/// Wrong profiles, and parts of what is said about each.
const WRONG: &[(&str, &[&str])] = &[
    (
        "judge:\n  stalled: {afer: 5s}\n",
        &["bad.yaml:2:13: judge.stalled.afer", "did you mean 'after'?"],
    ),
    (
        "judge: {stalled: {on: yes}}",
        &["judge.stalled.on", "write true or false"],
    ),
    (
        "judge: {stalled: {after: 5parsecs}}",
        &["judge.stalled.after", "ms, s, m, h, d"],
    ),
    (
        "rules:\n- name: low\n  when: job.mem > 1GiB and gpu.utl < 20\n",
        &[
            "bad.yaml:3:9: rules[0].when",
            "did you mean 'gpu.util'?",
            UNDERLINED,
        ],
    ),
    (
        "rules: [{name: low, when: gpu.util < 20GiB}]",
        &["rules[0].when", "'gpu.util' is in %"],
    ),
    (
        "tell: {repeat: 2x}\ntell: {}\n",
        &["bad.yaml:2:1", "the key 'tell' stands here twice"],
    ),
    (
        "tell: {channels: {team: {type: slack, url: s3cr3t-t0k3n}}}",
        &["tell.channels.team.url", "this is no address"],
    ),
    (
        "tell: {channels: {team: {type: slack, url: 'https://h/s3cr3t', to: [x]}}}",
        &["tell.channels.team.to", "takes url"],
    ),
    (
        "tell: {channels: {team: 'https://h/s3cr3t'}}",
        &["tell.channels.team"],
    ),
    ("a: [1\n", &["bad.yaml:1:4", "not YAML"]),
    ("\u{0}", &["bad.yaml:1:1"]),
    ("extends: ./missing.yaml", &["missing.yaml", "No such file"]),
    ("extends: ./bad.yaml", &["bad.yaml:1:10: extends", "circle"]),
    (
        "extends: horses",
        &["bad.yaml:1:10: extends", "known are default"],
    ),
];

#[test]
fn a_bad_profile_is_one_clear_error_before_the_start() {
    let large = format!("# {}\n", "x".repeat(2 * 1024 * 1024));
    let bomb = alias_bomb();
    let mut cases = WRONG.to_vec();
    cases.push((&large, &["bad.yaml", "larger than 1 MiB"]));
    cases.push((&bomb, &["bad.yaml:", "too much"]));
    for_each(&cases, |(text, parts)| {
        let sandbox = Sandbox::new();
        std::fs::write(sandbox.path("bad.yaml"), text).unwrap();
        let profile = ["--profile", "./bad.yaml"];
        let refused = attempt(&sandbox, &profile);
        assert_refused(&sandbox, &refused, parts);
        let dry = [profile[0], profile[1], "--dry-run"];
        assert_refused(&sandbox, &attempt(&sandbox, &dry), parts);
        let checked = sandbox.gpuwatch(&["profile", "check", "bad.yaml"]).run();
        assert_eq!(checked.code(), Some(1), "{}", checked.err());
        assert_eq!(checked.err(), refused.err());
        // In every other place, too.
        let project = sandbox.path("gpuwatch.yaml");
        std::fs::rename(sandbox.path("bad.yaml"), &project).unwrap();
        assert_refused(&sandbox, &attempt(&sandbox, &[]), &[]);
        std::fs::remove_file(&project).unwrap();
        write(&config(&sandbox), text);
        assert_refused(&sandbox, &attempt(&sandbox, &[]), &[]);
    });
}

#[test]
fn wrong_flags_start_nothing_and_tell_no_secret() {
    let cases: &[(&[&str], &str)] = &[
        (&["--notify", SECRET], "--notify: this is no address"),
        (
            &["--notify", "ftp://example.com/s3cr3t"],
            "--notify: this is no address",
        ),
        (&["--stall-after", "soon"], "--stall-after"),
        (&["--stall-after", "0s"], "above 0"),
        (&["--idle-below", "500"], "--idle-below"),
        (&["--idle-for", "5"], "--idle-for"),
        (&["--profile", "pytorhc"], "there is no profile 'pytorhc'"),
        (
            &["--profile", "./pytorch.yaml"],
            "cannot read the profile ./pytorch.yaml",
        ),
        (&["--profile", "/"], "cannot read the profile /"),
    ];
    for_each(cases, |(options, part)| {
        let sandbox = Sandbox::new();
        assert_refused(&sandbox, &attempt(&sandbox, options), &[part]);
    });
    let sandbox = Sandbox::new();
    let job = sandbox.watched(&[], &["touch", "started"]);
    let ended = job
        .env("GPUWATCH_NOTIFY", format!("https://h/a {SECRET}"))
        .run();
    assert_refused(&sandbox, &ended, &["--notify"]);
}

/// A layer that says how long, and leaves its name in the environment.
fn layer(after: &str, name: &str) -> String {
    format!(
        "judge: {{stalled: {{after: {after}}}, {name}: {{on: false}}}}\nenv: {{set: {{LAYER: {name}}}}}\n"
    )
}

/// The record of a run, how long it says, and the layer whose variable the command saw.
fn resolved(
    sandbox: &Sandbox,
    options: &[&str],
    env: &[(&str, &str)],
) -> (serde_json::Value, String, String) {
    let mut job = sandbox.watched(options, &["sh", "-c", "echo $LAYER"]);
    for (name, value) in env {
        job = job.env(name, value);
    }
    let ended = job.run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let record = sandbox.record().json();
    std::fs::remove_dir_all(sandbox.runs()).unwrap();
    let after = record["judge"]["stalled"]["after"].as_str().unwrap();
    let (after, seen) = (after.to_owned(), ended.out().trim().to_owned());
    (record, after, seen)
}

#[test]
fn layers_lie_on_each_other_in_order() {
    let sandbox = Sandbox::new();
    let run = |options: &[&str], env: &[(&str, &str)], after: &str, seen: &str| {
        let (record, found, layer) = resolved(&sandbox, options, env);
        assert_eq!((found.as_str(), layer.as_str()), (after, seen));
        record
    };
    let record = run(&[], &[], "auto", "");
    assert_eq!(record["profile"], "default");
    write(&config(&sandbox), &layer("1m", "oom"));
    run(&[], &[], "1m", "oom");

    std::fs::write(sandbox.path("gpuwatch.yaml"), layer("2m", "nan")).unwrap();
    let record = run(&[], &[], "2m", "nan");
    assert_eq!(record["judge"]["oom"]["on"], false, "from a weaker layer");
    assert_eq!(record["env"]["LAYER"]["why"], "profile gpuwatch.yaml");

    let mine = "extends: ./base.yaml\njudge: {stalled: {after: 3m}}\n";
    std::fs::write(sandbox.path("mine.yaml"), mine).unwrap();
    let base = format!("extends: ci\n{}", layer("9m", "behind"));
    std::fs::write(sandbox.path("base.yaml"), base).unwrap();
    let profile = ["--profile", "mine.yaml"];
    let record = run(&profile, &[], "3m", "behind");
    assert_eq!(record["judge"]["gpu_unused"]["severity"], "critical", "ci");
    assert_eq!(record["profile"], "mine.yaml");
    let variable = [("GPUWATCH_PROFILE", "mine.yaml")];
    run(&[], &variable, "3m", "behind");

    let variable = [("GPUWATCH_STALL_AFTER", "4m")];
    run(&profile, &variable, "4m", "behind");
    let flags = [
        "--profile",
        "mine.yaml",
        "--stall-after",
        "5s",
        "--env",
        "LAYER=mine",
    ];
    run(&flags, &variable, "5s", "mine");
}

#[test]
fn the_record_holds_what_was_resolved() {
    let sandbox = Sandbox::new();
    let text = "rules: [{name: low-util, when: gpu.util < 20 and job.mem > 1GiB, for: 10m, say: slow}]\nsample: {interval: 200ms}\n";
    std::fs::write(sandbox.path("gpuwatch.yaml"), text).unwrap();
    let options = [
        "--profile",
        "pytorch",
        "--idle-below",
        "15",
        "--desktop",
        "--notify",
        "https://localhost:1/s3cr3t",
    ];
    let ended = sandbox.watched(&options, &["sleep", "1"]).run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let record = sandbox.record();
    let json = record.json();
    assert_eq!(json["profile"], "pytorch");
    let idle = &json["judge"]["idle_holding"];
    assert_eq!(
        (&idle["below"], &idle["for"]),
        (&15.0.into(), &"10m".into())
    );
    assert_eq!(
        json["rules"],
        serde_json::json!([{"name": "low-util", "when": "gpu.util < 20 and job.mem > 1GiB", "for": "10m", "severity": "warning", "say": "slow"}])
    );
    assert_eq!(
        json["env"]["TORCH_NCCL_ASYNC_ERROR_HANDLING"]["why"],
        "profile pytorch"
    );
    assert!(record.samples().len() > 3, "the profile's interval counts");
    for file in support::files_below(&record.folder) {
        let bytes = std::fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("s3cr3t"), "{}", file.display());
    }
}

#[test]
fn a_project_file_needs_somebodys_word() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("gpuwatch.yaml");
    let text = format!(
        "tell: {{channels: {{team: {{type: slack, url: 'https://localhost:1/{SECRET}'}}}}}}\n"
    );
    std::fs::write(&file, &text).unwrap();
    let cure = "gpuwatch profile trust gpuwatch.yaml";
    assert_refused(
        &sandbox,
        &attempt(&sandbox, &[]),
        &["gpuwatch.yaml:1:19: tell.channels", cure],
    );
    // Who names a file vouches for it.
    let named = attempt(&sandbox, &["--no-record", "--profile", "./gpuwatch.yaml"]);
    assert_eq!(named.code(), Some(7), "{}", named.err());

    let trusted = sandbox
        .gpuwatch(&["profile", "trust", "gpuwatch.yaml"])
        .run();
    assert_eq!(trusted.code(), Some(0), "{}", trusted.err());
    let store = sandbox.path("../state/gpuwatch/trusted");
    let mode = std::fs::metadata(&store).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(attempt(&sandbox, &["--no-record"]).code(), Some(7));

    std::fs::remove_file(sandbox.path("started")).unwrap();
    std::fs::write(&file, format!("{text}# changed\n")).unwrap();
    assert_refused(&sandbox, &attempt(&sandbox, &[]), &[cure]);
    for _ in 0..2 {
        let again = sandbox
            .gpuwatch(&["profile", "trust", "gpuwatch.yaml"])
            .run();
        assert_eq!(again.code(), Some(0), "{}", again.err());
    }
    assert_eq!(attempt(&sandbox, &["--no-record"]).code(), Some(7));
    let lines = std::fs::read_to_string(&store).unwrap();
    assert_eq!(lines.lines().count(), 1, "{lines}");

    // A store that others can write proves nothing.
    std::fs::remove_file(sandbox.path("started")).unwrap();
    std::fs::set_permissions(&store, PermissionsExt::from_mode(0o666)).unwrap();
    assert_refused(&sandbox, &attempt(&sandbox, &[]), &[cure]);
}

#[test]
fn what_a_project_file_extends_needs_it_too() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("gpuwatch.yaml"), "extends: ./more.yaml\n").unwrap();
    let command = "act: {stalled: [{command: [touch, started]}]}\n";
    std::fs::write(sandbox.path("more.yaml"), command).unwrap();
    let trusted = sandbox
        .gpuwatch(&["profile", "trust", "gpuwatch.yaml"])
        .run();
    assert_eq!(trusted.code(), Some(0), "{}", trusted.err());
    let parts = ["more.yaml:1:7: act", "gpuwatch profile trust ./more.yaml"];
    assert_refused(&sandbox, &attempt(&sandbox, &[]), &parts);
}

#[test]
fn a_home_that_is_not_there_holds_no_profile() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("file"), "").unwrap();
    for home in ["/nonexistent", "", "relative", &sandbox.arg("file")] {
        let job = sandbox.watched(&["--no-record"], &["sh", "-c", "exit 7"]);
        let job = job.env("XDG_CONFIG_HOME", home).env("HOME", home);
        let ended = job.run();
        assert_eq!(ended.code(), Some(7), "{home}: {}", ended.err());
    }
    std::fs::create_dir(sandbox.path("gpuwatch.yaml")).unwrap();
    assert_refused(
        &sandbox,
        &attempt(&sandbox, &[]),
        &["gpuwatch.yaml is no file"],
    );
}

#[test]
fn show_tells_where_values_come_from_and_no_secret() {
    let sandbox = Sandbox::new();
    let text = format!(
        "tell: {{channels: {{team: {{type: slack, url: 'https://h/{SECRET}'}}, b: {{type: command, argv: [x, --token, {SECRET}]}}}}}}\n\
         env: {{set: {{MY_API_KEY: {SECRET}}}}}\n"
    );
    write(&config(&sandbox), &text);
    let shown = sandbox.gpuwatch(&["profile", "show", "ci"]).run();
    assert_eq!(shown.code(), Some(0), "{}", shown.err());
    let out = shown.out();
    for part in [
        "url: \"***\"",
        "desktop: false  # ci:",
        "interval: \"1s\"  # default:",
        "MY_API_KEY: \"***\"",
    ] {
        assert!(out.contains(part), "{part} is missing: {out}");
    }
    assert!(!out.contains("s3cr3t"), "{out}");
}

#[test]
fn list_check_and_schema_answer() {
    let sandbox = Sandbox::new();
    let list = sandbox.gpuwatch(&["profile", "list"]).run();
    for name in [
        "default",
        "tensorflow",
        "pytorch",
        "jax",
        "ci",
        "workstation",
    ] {
        assert!(
            list.out().lines().any(|l| l.starts_with(name)),
            "{}",
            list.out()
        );
        let file = support::in_package(&format!("profiles/{name}.yaml"));
        let checked = sandbox.gpuwatch(&["profile", "check", &file]).run();
        assert_eq!(checked.code(), Some(0), "{}", checked.err());
        assert_eq!(checked.err(), "");
    }
    let list = sandbox.gpuwatch(&["profile", "list", "--json"]).run();
    let list: serde_json::Value = serde_json::from_str(&list.out()).unwrap();
    assert_eq!(list["schema"], 1);
    let schema = sandbox.gpuwatch(&["profile", "schema"]).run();
    let schema: serde_json::Value = serde_json::from_str(&schema.out()).unwrap();
    assert_eq!(schema["type"], "object");
    let missing = sandbox
        .gpuwatch(&["profile", "check", "missing.yaml"])
        .run();
    assert_eq!(missing.code(), Some(1));
    std::fs::write(sandbox.path("later.yaml"), "record: {output: false}").unwrap();
    let later = sandbox.gpuwatch(&["profile", "check", "later.yaml"]).run();
    assert_eq!(later.code(), Some(0));
    assert!(later.err().contains("record"), "{}", later.err());
    let ended = attempt(&sandbox, &["--profile", "later.yaml"]);
    assert_eq!(ended.code(), Some(7));
    assert!(
        ended
            .err()
            .contains("record of the profile is not acted on"),
        "{}",
        ended.err()
    );
}

#[test]
fn no_env_leaves_the_profiles_variables_out() {
    let sandbox = Sandbox::new();
    let job = sandbox.watched(
        &["-q", "--no-record", "--no-env", "--profile", "jax"],
        &["env"],
    );
    let out = job.run().out();
    assert!(!out.contains("XLA_PYTHON_CLIENT"), "{out}");
    let job = sandbox.watched(&["-q", "--no-record", "--profile", "jax"], &["env"]);
    let out = job.env("XLA_PYTHON_CLIENT_PREALLOCATE", "mine").run().out();
    assert!(out.contains("XLA_PYTHON_CLIENT_PREALLOCATE=mine"), "{out}");
}
