//! Records judged again: as they were judged, and by other settings.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{FakeDriver, Sandbox, fake_driver, python, replayed};

/// So many copies are judged at once.
const COPIES: usize = 100;

/// Three steps, and then nothing: 1 s after that, with a finding on the record, it ends.
const HANG: &str = "
import fake_gpu, os, sys, time
fake_gpu.hold(0, 4096)
for step in range(1, 4):
    print(f'Epoch 1/2 - step {step}/50 - loss: 0.{9 - step}', flush=True)
    time.sleep(0.3)
while 'stalled' not in open(os.path.join(os.environ['GPUWATCH_RUN_DIR'], 'events.jsonl')).read():
    time.sleep(0.1)
";

/// The record of a run that hangs.
fn hang(sandbox: &Sandbox) -> PathBuf {
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let options = ["-q", "--stall-after", "2s", "--interval", "200ms"];
    sandbox
        .watched(&options, &[python(), "-c", HANG])
        .with(&driver)
        .env("PYTHONPATH", fake_driver::python_path())
        .run()
        .assert_ok();
    let record = sandbox.record();
    let findings = record.events_of("finding");
    assert!(
        findings.iter().any(|f| f["name"] == "stalled"),
        "{findings:?}"
    );
    record.folder
}

/// A copy of a record under another name.
fn copy(from: &Path, to: &Path, id: &str) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
    let run = fs::read_to_string(to.join("run.json")).unwrap();
    let mut run: Value = serde_json::from_str(&run).unwrap();
    run["id"] = id.into();
    fs::write(to.join("run.json"), run.to_string()).unwrap();
}

#[test]
fn a_doctored_record_is_noticed() {
    let sandbox = Sandbox::new();
    let record = hang(&sandbox);
    // Not below the sandbox, which would notice it as well.
    let elsewhere = tempfile::tempdir().unwrap();
    let doctored = elsewhere.path().join("doctored");
    copy(&record, &doctored, "doctored");
    assert_eq!(replayed::differences(elsewhere.path()), Ok(()));

    let events = fs::read_to_string(record.join("events.jsonl")).unwrap();
    let (before, after) = events.split_once("\"name\":\"stalled\"").unwrap();
    for lie in [
        "\"name\":\"idle-holding\"",
        "\"name\":\"stalled\",\"moved\":1",
    ] {
        fs::write(
            doctored.join("events.jsonl"),
            format!("{before}{lie}{after}"),
        )
        .unwrap();
        let said = replayed::differences(elsewhere.path());
        // A part that no finding has isn't compared.
        assert_eq!(said.is_err(), !lie.contains("moved"), "{said:?}");
        if let Err(said) = said {
            assert!(
                said.contains("- elapsed_s") && said.contains("+ elapsed_s"),
                "{said}"
            );
            assert!(said.contains("name \"idle-holding\""), "{said}");
        }
    }
    let silenced: Vec<&str> = events
        .lines()
        .filter(|line| !line.contains("\"kind\":\"finding\""))
        .collect();
    fs::write(doctored.join("events.jsonl"), silenced.join("\n") + "\n").unwrap();
    let said = replayed::differences(elsewhere.path()).unwrap_err();
    assert!(
        said.contains("+ elapsed_s") && !said.contains("- elapsed_s"),
        "{said}"
    );
}

#[test]
fn a_hundred_runs_are_judged_by_another_profile() {
    let sandbox = Sandbox::new();
    let record = hang(&sandbox);
    let copies = sandbox.path("copies");
    let ids: BTreeSet<String> = (0..COPIES).map(|i| format!("copy-{i:03}")).collect();
    for id in &ids {
        copy(&record, &copies.join(id), id);
    }
    let profile = |name: &str, text: &str| {
        let path = sandbox.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let sooner = profile("sooner.yaml", "judge: {stalled: {after: 1s}}\n");
    let later = profile("later.yaml", "judge: {stalled: {after: 1h}}\n");
    let copies = copies.to_str().unwrap();
    let judged = |options: &[&str]| {
        let words = [&["replay", "--json", copies], options].concat();
        let ended = sandbox.gpuwatch(&words).run();
        let said = ended.assert_ok().out();
        let lines = said.lines().map(|l| serde_json::from_str(l).unwrap());
        lines
            .filter(|f: &Value| f["name"] == "stalled" && f["state"] == "raised")
            .collect::<Vec<Value>>()
    };
    let runs = |found: &[Value]| -> BTreeSet<String> {
        let runs = found.iter().map(|f| f["run"].as_str().unwrap().to_owned());
        runs.collect()
    };
    // To the millisecond, as both are written.
    let age = |f: &Value| {
        let age = f["elapsed_s"].as_f64().unwrap() - f["since_s"].as_f64().unwrap();
        (age * 1000.0).round() / 1000.0
    };

    let recorded = judged(&[]);
    assert_eq!((recorded.len(), runs(&recorded)), (COPIES, ids.clone()));
    let sooner = judged(&["--profile", &sooner]);
    assert_eq!((sooner.len(), runs(&sooner)), (COPIES, ids));
    for (then, now) in recorded.iter().zip(&sooner) {
        assert_eq!(then["since_s"], now["since_s"]);
        assert!((2.0..3.0).contains(&age(then)), "{then}");
        assert!((1.0..2.0).contains(&age(now)), "{now}");
    }
    assert_eq!(judged(&["--profile", &later]), [] as [Value; 0]);

    let wrong = profile("wrong.yaml", "judge: {stalled: {afer: 1s}}\n");
    let ended = sandbox
        .gpuwatch(&["replay", copies, "--profile", &wrong])
        .run();
    assert_eq!((ended.code(), ended.out().as_str()), (Some(1), ""));
    assert!(ended.err().contains("afer"), "{}", ended.err());
}

/// One rule, and nothing else that could fire.
const HOT: &str = "judge: {no_visible_progress: {on: false}}\nrules:\n\
    - {name: hot, when: gpu.temp > 80, severity: critical, say: 'at {gpu.temp}'}\n";

/// A run that nobody recorded: a second a row, the GPU at these temperatures. It ended so many
/// hours ago, and was judged by a rule for over 90 C.
fn synthetic(runs: &Path, id: &str, hours_ago: i64, temperatures: &[u32]) -> PathBuf {
    let folder = runs.join(id);
    fs::create_dir_all(&folder).unwrap();
    let ended = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(hours_ago);
    let started = ended - jiff::SignedDuration::from_secs(temperatures.len() as i64);
    let rule = json!({"name": "hot", "when": "gpu.temp > 90", "for": "0s", "severity": "warning", "say": null});
    let run = json!({
        "schema": 1, "id": id, "name": "made", "state": "finished", "profile": "default",
        "started": started.to_string(), "ended": ended.to_string(),
        "exit": {"code": 0, "signal": null}, "rules": [rule],
    });
    fs::write(folder.join("run.json"), run.to_string()).unwrap();
    let row = |(i, c): (usize, &u32)| format!("{},0,{c}\n", i + 1);
    let rows: String = temperatures.iter().enumerate().map(row).collect();
    fs::write(
        folder.join("samples.csv"),
        format!("elapsed_s,gpu,temp_c\n{rows}"),
    )
    .unwrap();
    folder
}

/// What was `samples.csv`, as `zstd --rm` leaves it.
fn pack(run: &Path) -> PathBuf {
    let (plain, packed) = (run.join("samples.csv"), run.join("samples.csv.zst"));
    let rows = fs::read(&plain).unwrap();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    fs::write(&packed, ruzstd::encoding::compress_to_vec(&rows[..], level)).unwrap();
    fs::remove_file(plain).unwrap();
    packed
}

/// 60 C for so many seconds, then so hot for so many, then 60 C again.
fn hot(before: usize, c: u32, seconds: usize) -> Vec<u32> {
    [vec![60; before], vec![c; seconds], vec![60; 20]].concat()
}

fn profile(sandbox: &Sandbox, name: &str, text: &str) -> String {
    let path = sandbox.path(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn json_lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn what_would_have_fired_in_a_week() {
    let sandbox = Sandbox::new();
    let runs = sandbox.runs();
    synthetic(
        &runs,
        "20260101-000000-made-0001",
        24 * 30,
        &hot(10, 85, 10),
    );
    synthetic(&runs, "20260102-000000-made-0002", 30, &hot(10, 85, 10));
    let packed = synthetic(&runs, "20260103-000000-made-0003", 20, &hot(20, 88, 10));
    pack(&packed);
    synthetic(&runs, "20260104-000000-made-0004", 10, &[60; 30]);
    let mine = profile(&sandbox, "mine.yaml", HOT);
    let dir = runs.to_str().unwrap();
    let replay = |options: &[&str]| {
        let words = [&["replay", "--dir", dir, "--since", "7d"], options].concat();
        sandbox.gpuwatch(&words).run()
    };
    let ended = replay(&["--profile", &mine]);
    let said = ended.assert_ok().out();
    let said = said.replace(&mine, "mine.yaml");
    assert_eq!(
        said,
        "20260102-000000-made-0002  11.0 s  raised  hot, critical, since 11.0 s: gpu.temp 85\n\
         20260102-000000-made-0002  21.0 s  cleared  hot, critical, since 11.0 s: gpu.temp 85\n\
         20260103-000000-made-0003  21.0 s  raised  hot, critical, since 21.0 s: gpu.temp 88\n\
         20260103-000000-made-0003  31.0 s  cleared  hot, critical, since 21.0 s: gpu.temp 88\n\
         \n\
         3 runs judged by the settings of mine.yaml (3)\n\
         FINDING  SEVERITY  RUNS  TIMES\n\
         hot      critical     2      2\n\
         nothing  -            1      -\n"
    );
    let lines = json_lines(&replay(&["--profile", &mine, "--json"]).assert_ok().out());
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["profile"], mine.as_str());
    assert_eq!(lines[0]["advice"], "at 85 C");
    // By what is recorded with them none of these is too hot.
    let ended = replay(&[]);
    let said = ended.assert_ok().out();
    assert!(
        said.contains("3 runs judged by the settings of default (3)"),
        "{said}"
    );
    assert!(!said.contains("hot"), "{said}");
    assert_eq!(replay(&["--json"]).assert_ok().out(), "");
}

#[test]
fn a_damaged_run_is_noted_once_and_the_others_go_on() {
    let sandbox = Sandbox::new();
    let runs = sandbox.runs();
    for (i, id) in ["a", "b", "c", "d", "e"].iter().enumerate() {
        synthetic(&runs, id, 10 - i as i64, &hot(10, 95, 10));
    }
    fs::write(runs.join("b/run.json"), "{\"schema\": 1, ").unwrap();
    fs::remove_file(runs.join("c/samples.csv")).unwrap();
    let packed = pack(&runs.join("d"));
    let bytes = fs::read(&packed).unwrap();
    fs::write(&packed, &bytes[..bytes.len() / 2]).unwrap();
    let run = fs::read_to_string(runs.join("e/run.json")).unwrap();
    fs::write(runs.join("e/run.json"), run.replace("gpu.temp", "gpu.tmp")).unwrap();
    synthetic(&runs, "f", 1, &hot(30, 95, 10));
    let dir = runs.to_str().unwrap();
    let mine = profile(&sandbox, "mine.yaml", HOT);
    let week: &[&str] = &["replay", "--dir", dir, "--since", "7d"];
    let folder: &[&str] = &["replay", dir];
    let b = "b/run.json is not a run record";
    let c = "c/samples.csv: No such file";
    let d = "d/samples.csv.zst: it is damaged";
    let e = "e/run.json: rules[0]: there is no value 'gpu.tmp'; did you mean 'gpu.temp'?";
    for (words, notes) in [
        (week, &[b, c, d, e][..]),
        // A directory stands for those in it that hold samples.
        (folder, &[b, d, e]),
    ] {
        let ended = sandbox.gpuwatch(words).run();
        assert_eq!(ended.code(), Some(1), "{}", ended.err());
        let raised = ended.out().matches("raised").count();
        assert_eq!(raised, 2, "{}", ended.out());
        assert!(
            ended.out().contains("\n2 runs judged by"),
            "{}",
            ended.out()
        );
        let err = ended.err();
        assert_eq!(err.matches("gpuwatch: ").count(), notes.len(), "{err}");
        for note in notes {
            assert_eq!(err.matches(note).count(), 1, "{note}: {err}");
        }
        // Their own rules count no more where others are given.
        let diff = [words, &["--diff", &mine, "--profile", &mine]].concat();
        let ended = sandbox.gpuwatch(&diff).run();
        assert!(
            ended.out().ends_with(
                "\n3 runs, no difference\nFINDING  -  +  ~  SAME\nhot      0  0  0     3\n"
            ),
            "{}",
            ended.out()
        );
    }
}

/// Three runs, and a profile: one is twice too hot, of which the record's rule minds the second
/// time alone; one is too hot to the profile alone; one is cool, which the profile says.
fn three(sandbox: &Sandbox) -> String {
    let runs = sandbox.runs();
    let twice = [hot(10, 85, 5), hot(0, 95, 5)].concat();
    synthetic(&runs, "both", 4, &twice[..45]);
    synthetic(&runs, "mine", 3, &hot(10, 85, 10));
    synthetic(&runs, "calm", 1, &[60; 30]);
    let cool = "- {name: cool, when: 'max(gpu.temp, 30s) < 70', severity: note}\n";
    profile(sandbox, "mine.yaml", &format!("{HOT}{cool}"))
}

#[test]
fn a_profile_is_held_against_what_was_recorded() {
    let sandbox = Sandbox::new();
    let mine = three(&sandbox);
    let dir = sandbox.runs();
    let words = ["replay", dir.to_str().unwrap(), "--diff", &mine];
    let ended = sandbox.gpuwatch(&words).run();
    assert_eq!(
        ended.assert_ok().out().replace(&mine, "mine.yaml"),
        "- the recorded settings\n\
         + the profile mine.yaml\n\
         both  +  hot, critical: raised at 11.0 s, since 11.0 s, cleared at 16.0 s\n\
         both  ~  hot, warning: severity warning -> critical\n\
         calm  +  cool, note: raised at 30.0 s, since 30.0 s\n\
         mine  +  hot, critical: raised at 11.0 s, since 11.0 s, cleared at 21.0 s\n\
         \n\
         3 runs, 3 of them with differences\n\
         FINDING  -  +  ~  SAME\n\
         hot      0  2  1     0\n\
         cool     0  1  0     0\n"
    );
}

#[test]
fn two_profiles_are_held_against_each_other() {
    let sandbox = Sandbox::new();
    let mine = three(&sandbox);
    let later = "rules: [{name: hot, when: gpu.temp > 80, for: 3s, severity: critical}]\n";
    let later = profile(&sandbox, "later.yaml", later);
    let dir = sandbox.runs();
    let replay = |run: &str, options: &[&str]| {
        let run = dir.join(run);
        let words = [&["replay", run.to_str().unwrap()], options].concat();
        sandbox.gpuwatch(&words).run().assert_ok().out()
    };
    let lines = json_lines(&replay(
        "",
        &["--profile", &mine, "--diff", &later, "--json"],
    ));
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let found = lines
        .iter()
        .map(|line| ["run", "change", "name"].map(|key| text(line, key)));
    let found: Vec<_> = found.map(|words| words.join(" ")).collect();
    assert_eq!(
        found,
        ["both ~ hot", "both ~ hot", "calm - cool", "mine ~ hot"]
    );
    let (then, now) = (&lines[3]["before"], &lines[3]["after"]);
    assert_eq!(
        (&then["raised_s"], &then["cleared_s"]),
        (&json!(11.0), &json!(21.0))
    );
    assert_eq!(
        (&now["raised_s"], &now["cleared_s"]),
        (&json!(14.0), &json!(21.0))
    );
    assert_eq!(text(&lines[3], "before_profile"), mine);
    assert_eq!(text(&lines[3], "after_profile"), later);
    assert_eq!(lines[2]["after"], Value::Null);

    let same = ["--profile", &later, "--diff", &later];
    assert_eq!(replay("", &[&same[..], &["--json"]].concat()), "");
    let said = replay("calm", &same);
    assert!(said.ends_with("\n\n1 run, no difference\n"), "{said}");
}

#[test]
fn a_compressed_run_is_judged_alike() {
    let sandbox = Sandbox::new();
    let record = hang(&sandbox);
    let elsewhere = tempfile::tempdir().unwrap();
    let packed = elsewhere.path().join("packed");
    copy(&record, &packed, "packed");
    let replay = |words: &[&str]| {
        let words = [&["replay", "--json", packed.to_str().unwrap()], words].concat();
        sandbox.gpuwatch(&words).run().assert_ok().out()
    };
    let plain = replay(&[]);
    assert!(plain.contains("\"name\":\"stalled\""), "{plain}");
    pack(&packed);
    assert_eq!(replay(&[]), plain);
    // By other ways to the samples, too.
    let export = |dir: &Path| {
        let words = ["export", dir.to_str().unwrap()];
        sandbox.gpuwatch(&words).run().assert_ok().out()
    };
    assert_eq!(export(&packed), export(&record));
}

#[test]
fn what_is_asked_for_wrongly_is_refused() {
    let sandbox = Sandbox::new();
    let wrong = profile(
        &sandbox,
        "wrong.yaml",
        "rules: [{name: a, when: 'avg(gpu.util, 1m) < 2'}]\n",
    );
    let run = synthetic(&sandbox.runs(), "a", 1, &[60; 3]);
    let run = run.to_str().unwrap();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["replay"], 2, "gpuwatch: <RUN|DIR>... is missing; see"),
        (&["replay", run, "--since", "7d"], 2, "--since"),
        (&["replay", "--since", "soon"], 2, "--since: 'soon'"),
        (
            &["replay", run, "--diff", "pytorhc"],
            1,
            "there is no profile 'pytorhc'",
        ),
        (
            &["replay", run, "--diff", &wrong],
            1,
            "did you mean 'mean'?\n",
        ),
    ];
    for (words, code, part) in cases {
        let ended = sandbox.gpuwatch(words).run();
        assert_eq!((ended.code(), ended.out().as_str()), (Some(*code), ""));
        assert!(ended.err().contains(part), "{words:?}: {}", ended.err());
    }
    // Nothing was recorded there.
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let words = ["replay", "--since", "7d", "--dir", empty];
    let ended = sandbox.gpuwatch(&words).run();
    assert_eq!((ended.code(), ended.out().as_str()), (Some(0), ""));
    assert_eq!(ended.err(), "gpuwatch: no such run is recorded\n");
}
