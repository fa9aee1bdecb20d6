//! What a run leaves behind, and how it is shown.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use support::{Ended, Sandbox, files_below, in_package, python, wait_until};

fn json(ended: &Ended) -> Value {
    serde_json::from_slice(&ended.assert_ok().out)
        .unwrap_or_else(|e| panic!("{e}: {}", ended.out()))
}

#[test]
fn a_run_leaves_its_files() {
    let sandbox = Sandbox::new();
    let options = [
        "--name",
        "first",
        "--tag",
        "a",
        "--tag",
        "b c",
        "--interval",
        "200ms",
    ];
    let train = [
        "python3",
        &in_package("examples/train.py"),
        "--epochs",
        "2",
        "--steps",
        "120",
    ];
    let ended = sandbox.watched(&options, &train).run();
    ended.assert_ok();
    let direct = sandbox.direct(&train).run();
    assert_eq!(
        ended.out(),
        direct.out(),
        "the script's output byte for byte"
    );

    let record = sandbox.record();
    let folder_name = record
        .folder
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let run = record.json();
    assert_eq!(run["schema"], 1);
    assert_eq!(run["id"], folder_name);
    assert!(folder_name.contains("-first-"), "{folder_name}");
    assert_eq!(run["name"], "first");
    assert_eq!(run["tags"], serde_json::json!(["a", "b c"]));
    assert_eq!(run["argv"], serde_json::json!(train));
    assert_eq!(run["state"], "finished");
    assert_eq!(run["exit"], serde_json::json!({"code": 0, "signal": null}));
    assert_eq!(run["verdict"]["outcome"], "ok");
    assert_eq!(run["gpus"], serde_json::json!([]));
    assert_eq!(record.output(), direct.out);
    let about = std::fs::metadata(&record.folder).unwrap();
    assert_eq!(
        about.permissions().mode() & 0o777,
        0o700,
        "records are private"
    );
    sums_up(&run["summary"]);
}

fn sums_up(summary: &Value) {
    assert_eq!(summary["epoch"], 2.0, "{summary}");
    assert_eq!(summary["epochs"], 2.0);
    assert!(summary["duration_s"].as_f64().unwrap() > 0.0);
    for missing in [
        "gpu_util_pct_mean",
        "gpu_util_pct_p95",
        "job_mem_mib_max",
        "power_w_mean",
        "energy_j",
    ] {
        assert!(
            summary[missing].is_null(),
            "{missing} without a GPU: {summary}"
        );
    }
}

#[test]
fn rates_are_those_of_the_last_tick() {
    let sandbox = Sandbox::new();
    let burn = "import time\nwhile time.process_time() < 1.5: pass";
    sandbox
        .watched(&["-q", "--interval", "100ms"], &[python(), "-c", burn])
        .run()
        .assert_ok();
    let samples = sandbox.record().samples();
    let number = |row: &support::Row, name: &str| row[name].parse::<f64>().unwrap_or_default();
    let burnt: f64 = samples
        .windows(2)
        .map(|rows| {
            let lasted = number(&rows[1], "elapsed_s") - number(&rows[0], "elapsed_s");
            lasted * number(&rows[1], "cpu_cores")
        })
        .sum();
    // The last tick finds the process gone.
    assert!(
        (1.0..1.8).contains(&burnt),
        "{burnt} CPU seconds: {samples:?}"
    );
}

#[test]
fn samples_are_the_tree_over_time() {
    let sandbox = Sandbox::new();
    // One busy worker besides the main process, for as long as it takes to be seen.
    let busy = "(while :; do :; done) & worker=$!; printf 0123456789; while [ ! -e end ]; do sleep 0.05; done; kill $worker";
    let mut live = sandbox
        .watched(&["-q", "--interval", "100ms"], &["sh", "-c", busy])
        .start();
    wait_until("ten samples are on disk, and a busy one", || {
        let files = files_below(&sandbox.runs());
        let Some(file) = files.iter().find(|f| f.ends_with("samples.csv")) else {
            return false;
        };
        let text = std::fs::read_to_string(file).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut reader = csv::Reader::from_reader(whole.as_bytes());
        let rows: Vec<support::Row> = reader.deserialize().map(|row| row.unwrap()).collect();
        let busy = |row: &support::Row| row["cpu_cores"].parse::<f64>().is_ok_and(|c| c > 0.1);
        rows.len() > 10 && rows.iter().any(busy)
    });
    assert!(live.running());
    std::fs::write(sandbox.path("end"), "").unwrap();
    assert_eq!(live.end().code(), Some(0));

    let samples = sandbox.record().samples();
    let number = |row: &support::Row, name: &str| row[name].parse::<f64>().ok();
    let times: Vec<f64> = samples
        .iter()
        .map(|r| number(r, "elapsed_s").unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(
        samples.iter().any(|r| number(r, "procs") >= Some(2.0)),
        "the worker is seen"
    );
    assert!(
        samples.iter().any(|r| number(r, "cpu_cores") > Some(0.1)),
        "it is busy"
    );
    assert!(samples.iter().any(|r| number(r, "rss_mib") > Some(0.0)));
    assert_eq!(samples.last().unwrap()["out_bytes"], "10");
    for row in &samples {
        for (name, value) in row {
            let about_gpus =
                name.starts_with("gpu") || name.contains("_w") || name.contains("mem_used");
            assert!(
                !about_gpus || value.is_empty(),
                "{name} is {value:?} without a GPU"
            );
        }
    }
}

#[test]
fn events_tell_the_story() {
    let sandbox = Sandbox::new();
    sandbox
        .watched(&["-q"], &["sh", "-c", "echo 'Epoch 1/2'; exit 3"])
        .run();
    let record = sandbox.record();
    let events = record.events();
    let kinds: Vec<_> = events.iter().map(|e| e["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"started"), "{kinds:?}");
    assert_eq!(events[0]["pid"], record.json()["pid"]);
    let exited = record.events_of("exited");
    assert_eq!(exited.len(), 1);
    assert_eq!(
        (&exited[0]["code"], &exited[0]["signal"]),
        (&Value::from(3), &Value::Null)
    );
    let progress = record.events_of("progress");
    assert_eq!(progress[0]["change"], "first");
    assert_eq!(progress[0]["epoch"], 1.0);
    let nvml: Vec<_> = record
        .events_of("source")
        .into_iter()
        .filter(|e| e["name"] == "nvml")
        .collect();
    assert_eq!(nvml.len(), 1, "said once: {nvml:?}");
    assert_eq!(nvml[0]["state"], "failed");
    for event in &events {
        assert!(event["time"].as_str().unwrap().contains('T'));
        assert!(event["elapsed_s"].as_f64().unwrap() >= 0.0);
    }
}

#[test]
fn a_run_can_be_looked_at_while_it_lasts() {
    let sandbox = Sandbox::new();
    let live = sandbox
        .watched(
            &["-q", "--name", "going"],
            &[
                "sh",
                "-c",
                "echo up; while [ ! -e end ]; do sleep 0.05; done",
            ],
        )
        .start();
    live.wait_for_out("up");
    // The record is written beside the command, not before it.
    let show = sandbox.gpuwatch(&["show", "going", "--json"]);
    wait_until("it can be found", || show.run().code() == Some(0));
    let shown = json(&show.run());
    assert_eq!(shown["state"], "running");
    assert!(shown["exit"]["code"].is_null() && shown["exit"]["signal"].is_null());
    std::fs::write(sandbox.path("end"), "").unwrap();
    assert_eq!(live.end().code(), Some(0));
    assert_eq!(
        json(&sandbox.gpuwatch(&["show", "going", "--json"]).run())["state"],
        "finished"
    );
}

#[test]
fn runs_are_found_by_every_name_they_have() {
    let sandbox = Sandbox::new();
    for (name, code) in [("one", 0), ("two", 3)] {
        let exit = format!("exit {code}");
        sandbox
            .watched(&["-q", "--name", name], &["sh", "-c", &exit])
            .run();
    }
    let list = json(&sandbox.gpuwatch(&["runs", "--json"]).run());
    assert_eq!(list["schema"], 1);
    let runs = list["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    let named = |name: &str| runs.iter().find(|r| r["name"] == name).unwrap();
    let id = named("one")["id"].as_str().unwrap();
    let folder = sandbox.runs().join(id);
    for name in [id, "one", "@-2", folder.to_str().unwrap()] {
        let shown = json(&sandbox.gpuwatch(&["show", name, "--json"]).run());
        assert_eq!(shown["id"], id, "show {name}");
        assert_eq!(shown["findings"], serde_json::json!([]));
    }
    assert_eq!(
        json(&sandbox.gpuwatch(&["show", "last", "--json"]).run())["name"],
        "two"
    );

    let text = sandbox.gpuwatch(&["show", "last"]).run();
    assert!(text.assert_ok().out().contains("two"), "{}", text.out());
    let text = sandbox.gpuwatch(&["runs"]).run();
    assert!(
        text.assert_ok().out().contains("one") && text.out().contains("two"),
        "{}",
        text.out()
    );

    let missing = sandbox.gpuwatch(&["show", "no-such-run"]).run();
    assert_eq!(missing.code(), Some(1));
    assert_eq!(missing.err().lines().count(), 1, "{}", missing.err());
    assert!(missing.err().contains("no-such-run"));
    assert_eq!(
        sandbox.gpuwatch(&["show", "--no-such-option"]).run().code(),
        Some(2)
    );
}

#[test]
fn the_index_can_be_lost() {
    let sandbox = Sandbox::new();
    for name in ["one", "two"] {
        sandbox
            .watched(&["-q", "--name", name], &["true"])
            .run()
            .assert_ok();
    }
    let index = sandbox.runs().join("index.jsonl");
    assert_eq!(std::fs::read_to_string(&index).unwrap().lines().count(), 2);
    let before = json(&sandbox.gpuwatch(&["runs", "--json"]).run());
    for broken in [
        None,
        Some("{\"id\": \"torn"),
        Some("\0\u{fffd}not json at all\n"),
    ] {
        match broken {
            None => std::fs::remove_file(&index).unwrap(),
            Some(text) => std::fs::write(&index, text).unwrap(),
        }
        assert_eq!(
            json(&sandbox.gpuwatch(&["runs", "--json"]).run()),
            before,
            "with {broken:?}"
        );
    }
}

#[test]
fn dir_takes_the_records_elsewhere() {
    let sandbox = Sandbox::new();
    let place = sandbox.arg("my runs");
    sandbox
        .watched(&["-q", "--dir", &place], &["true"])
        .run()
        .assert_ok();
    assert!(files_below(&sandbox.runs()).is_empty());
    let record = support::Record::only_one_in(&sandbox.path("my runs"));
    assert_eq!(record.json()["state"], "finished");
    let shown = json(
        &sandbox
            .gpuwatch(&["show", "last", "--json", "--dir", &place])
            .run(),
    );
    assert_eq!(shown["id"], record.json()["id"]);
    let list = json(&sandbox.gpuwatch(&["runs", "--json", "--dir", &place]).run());
    assert_eq!(list["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn no_record_leaves_nothing() {
    let sandbox = Sandbox::new();
    let look = "echo ${GPUWATCH_RUN_DIR-none}";
    let ended = sandbox.watched(&["--no-record"], &["sh", "-c", look]).run();
    assert_eq!(ended.assert_ok().out(), "none\n");
    assert!(
        files_below(&sandbox.runs()).is_empty(),
        "{:?}",
        files_below(&sandbox.runs())
    );
}

#[test]
fn quiet_is_silent() {
    let sandbox = Sandbox::new();
    let ended = sandbox
        .watched(&["-q"], &["sh", "-c", "echo out; echo err >&2; exit 9"])
        .run();
    assert_eq!((ended.out(), ended.err()), ("out\n".into(), "err\n".into()));
    let shown = sandbox
        .watched(&["-q"], &["sh", "-c", "echo out"])
        .run_on_terminal();
    assert_eq!(shown.out(), "out\r\n");
}

#[test]
fn our_own_words_are_a_line_before_and_the_summary_after() {
    let sandbox = Sandbox::new();
    let ended = sandbox
        .watched(&[], &["sh", "-c", "echo theirs >&2; exit 3"])
        .run();
    let said = ended.err();
    let (before, after) = said.split_once("theirs\n").unwrap();
    assert!(before.lines().count() <= 1, "{said}");
    assert!(after.lines().count() >= 1, "{said}");
    assert_eq!(
        ended.own_lines().len() + 1,
        said.lines().count(),
        "each is marked as ours: {said}"
    );
    let id = sandbox.record().json()["id"].as_str().unwrap().to_owned();
    assert!(after.contains(&id), "it tells where the record is: {said}");
    assert!(
        after.contains('3'),
        "it tells how the command ended: {said}"
    );
    assert!(
        !said.contains('\x1b') && !said.contains('\r'),
        "plain text: {said:?}"
    );
}

#[test]
fn a_record_that_cannot_be_written_never_stops_the_run() {
    let sandbox = Sandbox::new();
    // No place at all: a home and a state folder that are files.
    let file = sandbox.path("file");
    std::fs::write(&file, "").unwrap();
    let name = format!("no-home-{}", std::process::id());
    let job = sandbox.watched(&["--name", &name], &["sh", "-c", "echo ran; exit 3"]);
    let _removed = support::InTemp(name);
    let job = job
        .env("HOME", &file)
        .env("XDG_STATE_HOME", file.join("state"));
    let ended = job.run();
    assert_eq!(
        (ended.code(), ended.out()),
        (Some(3), "ran\n".into()),
        "{}",
        ended.err()
    );
    // A working directory that is gone.
    let gone = sandbox.path("gone");
    std::fs::create_dir(&gone).unwrap();
    let line = "cd gone && rmdir ../gone && exec \"$@\"";
    let job = sandbox.watched(&[], &["sh", "-c", "echo ran; exit 4"]);
    let ended = job.under(&["sh", "-c", line, "sh"]).run();
    assert_eq!(
        (ended.code(), ended.out()),
        (Some(4), "ran\n".into()),
        "{}",
        ended.err()
    );
}

#[test]
fn a_full_disk_is_said_and_the_run_goes_on() {
    let sandbox = Sandbox::new();
    // Files of ours may not grow: what a full disk does, without one.
    let pour = "import sys; sys.stdout.write('x' * 3000000)";
    let job = sandbox.watched(&[], &[python(), "-c", pour]);
    let ended = job
        .under(&["sh", "-c", "ulimit -f 100; exec \"$@\"", "sh"])
        .run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    assert_eq!(ended.out.len(), 3_000_000);
    assert!(
        ended.err().contains("output.log"),
        "the summary names what is incomplete: {}",
        ended.err()
    );
}

#[test]
fn many_runs_at_once_are_all_recorded() {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (0..24).map(|i| format!("run{i}")).collect();
    support::for_each(&names, |name| {
        sandbox
            .watched(&["-q", "--name", name], &["true"])
            .run()
            .assert_ok();
    });
    let list = json(&sandbox.gpuwatch(&["runs", "--json"]).run());
    let mut found: Vec<_> = list["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    found.sort_unstable();
    let mut wanted: Vec<_> = names.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}
