//! Real Keras, watched, on a simulated GPU: the whole way from the command line to the record.
//!
//! Needs an interpreter with TensorFlow, which `tests/run` makes and names in
//! `GPUWATCH_TEST_TF_PYTHON`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use support::{
    Ended, FakeDriver, Job, Record, Row, Sandbox, fake_driver, in_package, provided, script,
};

fn tensorflow() -> Option<String> {
    provided("GPUWATCH_TEST_TF_PYTHON")
}

/// One training at a time: on a small machine several would take longer than anybody waits.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Three GPUs of which somebody else holds the middle one.
fn machine() -> FakeDriver {
    let stranger = json!([{"pid": 1, "mem_mib": 20000, "sm": 50}]);
    FakeDriver::new(&json!({"gpus": [{}, {"processes": stranger}, {}]}))
}

fn training(python: &str) -> Vec<String> {
    let script = script("keras_on_fake_gpu.py");
    let words = [
        python, &script, "saw.json", "--epochs", "2", "--steps", "3000",
    ];
    words.map(str::to_owned).into()
}

fn prepared(job: Job, driver: &FakeDriver) -> Job {
    let job = job
        .with(driver)
        .env("PYTHONPATH", fake_driver::python_path());
    // TensorFlow's own log lines carry times and process ids.
    job.env("TF_CPP_MIN_LOG_LEVEL", "3")
}

/// The lines as they stand on the screen in the end, without what a clock decided.
fn screen(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let mut plain = String::new();
        let mut rest = line.trim_end_matches('\r');
        while let Some((before, after)) = rest.split_once('\x1b') {
            plain.push_str(before);
            rest = after.split_once('m').map_or("", |(_, rest)| rest);
        }
        plain.push_str(rest);
        let last = plain.rsplit(['\r', '\x08']).next().unwrap();
        let timeless = last.split_whitespace().filter(|word| !is_time(word));
        if !is_log(last) {
            lines.push(timeless.collect::<Vec<_>>().join(" "));
        }
    }
    lines
}

/// What TensorFlow tells about itself at its start, with times and process ids.
fn is_log(line: &str) -> bool {
    line.starts_with("WARNING: All log messages before absl::") || line.starts_with("I0000 ")
}

/// `2s`, `1:05`, `12ms/step`
fn is_time(word: &str) -> bool {
    let number = word
        .trim_end_matches("/step")
        .trim_end_matches(['s', 'm', 'u']);
    number.len() < word.len() && number.parse::<f64>().is_ok()
        || word.contains(':') && word.chars().all(|c| c.is_ascii_digit() || c == ':')
}

#[test]
fn keras_through_a_pipe() {
    let Some(python) = tensorflow() else { return };
    let _turn = turn();
    let (sandbox, driver) = (Sandbox::new(), machine());
    let direct = prepared(sandbox.direct(&training(&python)), &driver).run();
    let watched = prepared(sandbox.watched(&[], &training(&python)), &driver).run();
    shows_the_same(&direct.assert_ok().out, &watched.assert_ok().out);
    let own: usize = watched.own_lines().iter().map(|l| l.len() + 1).sum();
    let written = watched.out.len() + watched.err.len() - own;
    assert_eq!(
        sandbox.record().output().len(),
        written,
        "both streams are one log"
    );
    is_recorded(&sandbox);
    is_summed_up(&watched);
}

#[test]
fn keras_in_a_terminal() {
    let Some(python) = tensorflow() else { return };
    let _turn = turn();
    let (sandbox, driver) = (Sandbox::new(), machine());
    let direct = prepared(sandbox.direct(&training(&python)), &driver).run_on_terminal();
    let watched = prepared(sandbox.watched(&["-q"], &training(&python)), &driver).run_on_terminal();
    assert!(
        direct.status.success() && watched.status.success(),
        "{}",
        watched.out()
    );
    shows_the_same(&direct.out, &watched.out);
    is_recorded(&sandbox);
}

/// The CPU build says no word of a GPU, where one with GPU support would.
#[test]
fn a_gpu_that_tensorflow_does_not_use_is_noticed() {
    let Some(python) = tensorflow() else { return };
    let _turn = turn();
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let sandbox = Sandbox::new();
    let example = in_package("examples/keras_synthetic.py");
    let words = [&python, &example, "--epochs", "3", "--steps", "2000"];
    let watched = sandbox.watched(&[], &words).with(&driver).run();
    let record = sandbox.record();
    let seconds = &record.json()["summary"]["duration_s"];
    assert!(seconds.as_f64() >= Some(10.0), "too short: {seconds} s");
    let found = alarms(&record);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["name"], "gpu-unused");
    assert_eq!(found[0]["state"], "raised");
    assert_eq!(found[0]["cause"], "cpu-build");
    let line = found[0]["evidence"]["line"].as_str().unwrap();
    assert!(line.contains("This TensorFlow binary"), "{line}");
    let advice = found[0]["advice"].as_str().unwrap();
    assert!(advice.contains("tensorflow[and-cuda]"), "{advice}");
    let said = watched.assert_ok().own_lines().join("\n");
    assert!(said.contains("gpu-unused"), "{said}");
}

fn alarms(record: &Record) -> Vec<Value> {
    let mut found = record.events_of("finding");
    found.retain(|f| f["severity"] != "note");
    found
}

fn shows_the_same(direct: &[u8], watched: &[u8]) {
    let direct = screen(direct);
    assert!(direct.iter().any(|l| l == "Epoch 2/2"), "{direct:?}");
    assert!(
        direct
            .iter()
            .any(|l| l.starts_with("3000/3000") && l.contains("loss: ")),
        "{direct:?}"
    );
    assert_eq!(screen(watched), direct);
}

fn is_recorded(sandbox: &Sandbox) {
    let saw: Value = serde_json::from_str(&support::content(&sandbox.path("saw.json"))).unwrap();
    assert_eq!(saw["TF_FORCE_GPU_ALLOW_GROWTH"], "true");
    assert_eq!(saw["CUDA_VISIBLE_DEVICES"], "0,2", "those that nobody uses");
    let record = sandbox.record();
    let run = record.json();
    let watched: Vec<_> = run["gpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| &g["index"])
        .collect();
    assert_eq!(watched, [0, 2]);
    assert_eq!(run["attribution"], "exact");

    let alarms = alarms(&record);
    assert!(alarms.is_empty(), "{alarms:?}");

    let moment = |row: &Row| {
        let time: jiff::Timestamp = row["time"].parse().unwrap();
        time.as_millisecond() as f64 / 1e3
    };
    let fitting = saw["began"].as_f64().unwrap()..saw["ended"].as_f64().unwrap();
    let mut rows: Vec<Row> = record
        .samples()
        .into_iter()
        .filter(|r| r["gpu"] == "0" && fitting.contains(&moment(r)))
        .collect();
    assert!(rows.len() >= 8, "{} rows while it fits", rows.len());
    // On a busy machine Keras is silent for seconds, after an epoch's first line for one: a row
    // can't say more than was printed.
    rows.dedup_by_key(|row| row["out_bytes"].clone());
    let watched = |row: &Row| {
        row["gpu_util_pct"] == "85" && row["job_mem_mib"] == "6144" && !row["power_w"].is_empty()
    };
    assert!(rows.iter().all(watched), "{}", columns(&rows));
    // The step is unknown between an epoch's line and its first bar, and never again.
    let shown = |row: &Row| !row["step"].is_empty() && !row["loss"].is_empty();
    for epoch in ["1", "2"] {
        let of_it = rows.iter().filter(|row| row["epoch"] == epoch);
        let mut since = of_it.skip_while(|row| row["step"].is_empty()).peekable();
        assert!(
            since.peek().is_some(),
            "no step of epoch {epoch}: {}",
            columns(&rows)
        );
        assert!(since.all(shown), "epoch {epoch}: {}", columns(&rows));
    }

    let summary = &run["summary"];
    assert_eq!(summary["epoch"], 2.0, "{summary}");
    assert_eq!(summary["epochs"], 2.0);
    assert_eq!(summary["step"], 3000);
    assert_eq!(summary["job_mem_mib_max"], 6144.0);
    assert_eq!(summary["gpu_util_pct_p95"], 85.0);
}

/// The rows, as far as a failure can be understood from them.
fn columns(rows: &[Row]) -> String {
    let names = [
        "elapsed_s",
        "epoch",
        "step",
        "loss",
        "gpu_util_pct",
        "job_mem_mib",
        "power_w",
        "out_bytes",
    ];
    let line = |row: &Row| names.map(|name| row[name].clone()).join(" ");
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn is_summed_up(watched: &Ended) {
    let said = watched.own_lines().join("\n");
    for part in ["epoch 2/2", "p95 85 %", "memory peak 6.0 GiB"] {
        assert!(said.contains(part), "{part} in {said}");
    }
}
