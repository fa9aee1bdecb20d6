//! `gpuwatch show` and `gpuwatch runs`.

use std::fs;
use std::process::{Command, Output, Stdio};

use gpuwatch::model::RunState;
use gpuwatch::record::{IndexEntry, RunDir, index};
use serde_json::{Value, json};

use super::{ID, example, record, root_with_example};

fn document(name: &str) -> Value {
    serde_json::from_slice(&fs::read(example().join(name)).unwrap()).unwrap()
}

fn gpuwatch(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpuwatch"))
        .args(args)
        .env_remove("GPUWATCH_DIR")
        .output()
        .unwrap()
}

fn printed(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error_line(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

/// Same names in the same order, same types, null where null is.
fn assert_same_shape(expected: &Value, actual: &Value, at: &str) {
    match (expected, actual) {
        (Value::Object(e), Value::Object(a)) => {
            if at == "show.env" {
                assert_eq!(e.len(), a.len(), "{at}");
            } else {
                let names = |map: &serde_json::Map<String, Value>| {
                    map.keys().cloned().collect::<Vec<String>>()
                };
                assert_eq!(names(e), names(a), "{at}");
            }
            for (name, value) in e {
                assert_same_shape(value, &a[name], &format!("{at}.{name}"));
            }
        }
        (Value::Array(e), Value::Array(a)) => {
            assert_eq!(e.len(), a.len(), "{at}");
            for (i, (e, a)) in e.iter().zip(a).enumerate() {
                assert_same_shape(e, a, &format!("{at}[{i}]"));
            }
        }
        (Value::Number(e), Value::Number(a)) => {
            let near = (e.as_f64().unwrap() - a.as_f64().unwrap()).abs() < 1e-9;
            assert!(near, "{at}: {e} {a}");
        }
        (Value::String(_), Value::String(_)) if at == "runs.runs[0].dir" => {}
        (e, a) => assert_eq!(e, a, "{at}"),
    }
}

#[test]
fn show_prints_the_documented_object() {
    let by_directory = printed(&gpuwatch(&["show", "tests/example-run", "--json"]));
    assert_same_shape(&document("show.json"), &by_directory, "show");
    let root = root_with_example();
    let dir = root.path().to_str().unwrap();
    for run in ["last", "@-1", "train", "2026", ID] {
        let found = printed(&gpuwatch(&["show", run, "--json", "--dir", dir]));
        assert_eq!(found, by_directory, "{run}");
    }
    assert_eq!(
        printed(&gpuwatch(&["show", "--json", "--dir", dir])),
        by_directory
    );
    let text = gpuwatch(&["show", "--dir", dir]);
    assert!(
        text.stdout
            .starts_with(b"run        20261130-091502-train-7f3a\n")
    );
    assert!(!text.stdout.contains(&b'\x1b') && !text.stdout.contains(&b'\r'));
}

#[test]
fn runs_prints_the_documented_object() {
    let root = root_with_example();
    let dir = root.path().to_str().unwrap();
    let expected = document("runs.json");
    let from_directory = printed(&gpuwatch(&["runs", "--json", "--dir", dir]));
    assert_same_shape(&expected, &from_directory, "runs");
    assert_eq!(
        from_directory["runs"][0]["dir"],
        json!(root.path().join(ID).to_str().unwrap())
    );
    // The same from the index.
    let entry: IndexEntry = serde_json::from_value(from_directory["runs"][0].clone()).unwrap();
    index::append(root.path(), &entry).unwrap();
    let from_index = printed(&gpuwatch(&["runs", "--json", "--dir", dir]));
    assert_eq!(from_index, from_directory);
}

#[test]
fn runs_are_filtered_and_limited() {
    let root = root_with_example();
    let dir = root.path().to_str().unwrap();
    for n in 0..5 {
        let id = format!("20261201-00000{n}-eval-0000");
        let run = RunDir::create(root.path(), &id).unwrap();
        let mut of_run = record(&id, RunState::Finished);
        of_run.name = "eval".into();
        of_run.tags = vec!["a".into(), format!("n{n}")];
        run.write_run(&of_run).unwrap();
    }
    let ids = |args: &[&str]| -> Vec<String> {
        let all = [&["runs", "--json", "--dir", dir][..], args].concat();
        let runs = printed(&gpuwatch(&all));
        let runs = runs["runs"].as_array().unwrap().clone();
        runs.iter()
            .map(|run| run["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(&[]).len(), 6);
    assert_eq!(
        ids(&["-n", "2"]),
        ["20261201-000004-eval-0000", "20261201-000003-eval-0000"]
    );
    assert_eq!(ids(&["--name", "train"]), [ID]);
    assert_eq!(
        ids(&["--tag", "a", "--tag", "n3"]),
        ["20261201-000003-eval-0000"]
    );
    assert_eq!(ids(&["--state", "lost"]), [""; 0]);
    assert_eq!(
        ids(&["--state", "finished", "--state", "lost", "-n", "1"]).len(),
        1
    );
    let table = gpuwatch(&["runs", "--dir", dir, "-n", "1"]);
    assert_eq!(String::from_utf8_lossy(&table.stdout).lines().count(), 2);
    assert!(String::from_utf8_lossy(&table.stderr).contains("older"));
}

#[test]
fn what_is_not_there_is_said_in_one_line() {
    let root = root_with_example();
    let dir = root.path().to_str().unwrap();
    let said = error_line(&gpuwatch(&["show", "tarin", "--dir", dir]));
    assert!(said.contains(&format!("did you mean {ID}?")), "{said}");
    let none = root.path().join("none\n");
    let none = none.to_str().unwrap();
    error_line(&gpuwatch(&["runs", "--dir", none]));
    error_line(&gpuwatch(&["show", "--dir", none, "--json"]));
    error_line(&gpuwatch(&["show", &format!("{dir}/none")]));
    assert_eq!(
        gpuwatch(&["runs", "--state", "dead"]).status.code(),
        Some(2)
    );
    for (args, expected) in [
        (
            &["show", "a", "b\x1b"][..],
            "gpuwatch: one word too many, 'b?': leave it out; see 'gpuwatch show --help'\n",
        ),
        (
            &["runs", "-n", "x"],
            "gpuwatch: --limit: 'x' is no number of runs: write one like 20; see 'gpuwatch runs --help'\n",
        ),
        (
            &["runs", "-n", "0"],
            "gpuwatch: --limit: '0' shows no run: write 1 or more; see 'gpuwatch runs --help'\n",
        ),
    ] {
        let output = gpuwatch(args);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    }
    fs::write(root.path().join(ID).join("run.json"), "{\"schema\":1,").unwrap();
    let said = error_line(&gpuwatch(&["show", ID, "--dir", dir]));
    assert!(said.contains("run.json is not a run record"), "{said}");
    // The others are listed all the same, and this one is named.
    let run = RunDir::create(root.path(), "20261201-000000-eval-0000").unwrap();
    run.write_run(&record(run.id(), RunState::Finished))
        .unwrap();
    let listed = gpuwatch(&["runs", "--json", "--dir", dir]);
    assert_eq!(printed(&listed)["runs"].as_array().unwrap().len(), 1);
    assert!(String::from_utf8_lossy(&listed.stderr).contains(ID));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let root = root_with_example();
    for command in [&["show"][..], &["runs", "--json"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gpuwatch"))
            .args(command)
            .env("GPUWATCH_DIR", root.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}
