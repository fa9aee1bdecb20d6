//! `gpuwatch gpus`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::harness::{at_work, fault, gpuwatch};
use crate::support::fake_driver::FakeDriver;

fn gpus(driver: &FakeDriver, arguments: &[&str]) -> Output {
    gpuwatch(driver)
        .arg("gpus")
        .args(arguments)
        .output()
        .unwrap()
}

pub fn gpus_json(driver: &FakeDriver) -> Value {
    let output = gpus(driver, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn gpus_table(driver: &FakeDriver) -> String {
    String::from_utf8(gpus(driver, &[]).stdout).unwrap()
}

fn keys(object: &Value) -> Vec<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn gpus_json_keeps_its_contract() {
    let driver = FakeDriver::new(&json!({"gpus": [
        {"base_mib": 480, "temp_c": 31, "power_w": 51.84},
        {"util": null, "power_w": null},
    ]}));
    let me = std::process::id();
    driver.hold(me, 0, 18_432, 95);
    let document = gpus_json(&driver);
    assert_eq!(keys(&document), ["schema", "driver", "cuda", "gpus"]);
    assert_eq!(document["schema"], 1);
    assert_eq!(document["driver"], "580.95.05");
    assert_eq!(document["cuda"], "13.0");
    let gpu = &document["gpus"][0];
    assert_eq!(
        keys(gpu),
        [
            "index",
            "cuda_index",
            "uuid",
            "name",
            "util_pct",
            "mem_used_mib",
            "mem_total_mib",
            "temp_c",
            "power_w",
            "state",
            "claim",
            "processes",
            "pci_bus",
            "host_index",
            "mig"
        ]
    );
    assert_eq!(gpu["util_pct"], 95);
    assert_eq!(gpu["mem_used_mib"], 18_912);
    assert_eq!(gpu["power_w"], 51.8);
    assert_eq!(gpu["state"], "busy");
    let process = &gpu["processes"][0];
    assert_eq!(
        keys(process),
        [
            "pid", "user", "command", "mem_mib", "sm_pct", "since", "run"
        ]
    );
    assert_eq!(process["pid"], me);
    assert_eq!(process["mem_mib"], 18_432);
    assert!(process["command"].as_str().unwrap().contains("nvml"));
    assert!(process["since"].as_str().unwrap().len() == "2026-11-30T09:15:02.000+08:00".len());
    let idle = &document["gpus"][1];
    assert_eq!(
        (&idle["util_pct"], &idle["power_w"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(idle["state"], "free");
}

#[test]
fn cuda_indexes_are_those_of_a_program_started_here() {
    let driver = FakeDriver::new(&json!({"gpus": [{}, {}, {}]}));
    let output = gpuwatch(&driver)
        .args(["gpus", "--json"])
        .env("CUDA_VISIBLE_DEVICES", "2,0")
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let indexes: Vec<_> = (0..3).map(|i| &document["gpus"][i]["cuda_index"]).collect();
    assert_eq!(indexes, [&json!(1), &json!(null), &json!(0)]);
}

#[test]
fn the_table_shows_dashes_for_what_is_missing() {
    let driver = FakeDriver::new(&json!({"gpus": [{"util": null, "base_mib": 100}]}));
    let output = gpus(&driver, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let row: Vec<_> = text.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(row[..1], ["0"]);
    assert_eq!(row[3], "-", "{text}");
    assert_eq!(row.last(), Some(&"free"));
}

#[test]
fn the_table_shows_foreign_text_as_text() {
    let driver = FakeDriver::new(&json!({"gpus": [{"name": "A\u{1b}[2J\u{202e}B\nC"}]}));
    let table = gpus_table(&driver);
    assert!(table.contains("A?[2J?B?C"), "{table:?}");
    assert_eq!(table.lines().count(), 3, "{table:?}");
    assert!(!table.contains('\u{1b}'), "{table:?}");
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for arguments in [&[][..], &["--json"], &["--watch"]] {
        let mut command = gpuwatch(&driver);
        let output = command.arg("gpus").args(arguments).stdout(full()).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.starts_with("gpuwatch: cannot write the answer: "),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn without_a_driver_there_is_one_line_and_exit_code_1() {
    let driver = FakeDriver::new(&json!({}));
    for (fault_, said) in [
        (json!({"call": "nvmlInit_v2", "code": 9}), "not loaded"),
        (
            json!({"call": "nvmlInit_v2", "code": 18}),
            "different versions",
        ),
        (json!({"call": "nvmlInit_v2", "code": 4}), "no permission"),
        (
            json!({"call": "nvmlInit_v2", "code": 999}),
            "could not be initialised",
        ),
        (
            json!({"call": "nvmlInit_v2", "code": 27}),
            "could not be initialised",
        ),
        (
            json!({"call": "nvmlDeviceGetCount_v2", "code": 999}),
            "how many GPUs",
        ),
    ] {
        driver.set(&fault(&json!({}), &fault_));
        let output = gpus(&driver, &["--json"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        let line = String::from_utf8(output.stderr).unwrap();
        assert!(
            line.starts_with("gpuwatch: ") && line.lines().count() == 1,
            "{line}"
        );
        assert!(line.contains(said), "{line}");
    }
    let output = gpuwatch(&driver)
        .args(["gpus"])
        .env("GPUWATCH_NVML_LIBRARY", "/nonexistent/lib.so")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(
        line.contains("GPUWATCH_NVML_LIBRARY names a library"),
        "{line}"
    );
}

#[test]
fn a_driver_that_hangs_is_given_up() {
    let driver = FakeDriver::new(&fault(
        &at_work(),
        &json!({"call": "nvmlInit_v2", "hang": "forever"}),
    ));
    let output = gpus(&driver, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("doesn't answer: no GPUs after 3 s"));
    driver.set(&fault(
        &at_work(),
        &json!({"call": "nvmlDeviceGetTemperature", "hang": "forever"}),
    ));
    let output = gpus(&driver, &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["gpus"][0]["state"], "unknown");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no readings after 3 s"));
}

#[test]
fn watching_prints_a_document_a_line_until_nobody_reads() {
    let driver = FakeDriver::new(&json!({"gpus": [{"util": 5}]}));
    let mut child = gpuwatch(&driver)
        .args(["gpus", "--watch", "--json", "--interval", "100ms"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let line = lines.next().unwrap().unwrap();
        let document: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(document["gpus"][0]["util_pct"], 5);
    }
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_log_has_a_row_a_gpu_and_empty_fields_for_missing_readings() {
    let driver = FakeDriver::new(&json!({"gpus": [
        {"util": 5, "processes": [{"pid": 7, "mem_mib": 1}, {"pid": 8, "mem_mib": 1}]},
        {"util": null, "power_w": null},
    ]}));
    let file = driver.scenario().with_file_name("gpus.csv");
    let arguments = ["--csv", file.to_str().unwrap()];
    for _ in 0..2 {
        let output = gpus(&driver, &arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    }
    let output = gpus(&driver, &["--csv", "/no-such-place/\x1b/x"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        said,
        "gpuwatch: cannot write /no-such-place/?/x: No such file or directory; \
         make its directory, or give another file with --csv\n"
    );
    let mut reader = csv::Reader::from_path(&file).unwrap();
    let names = reader.headers().unwrap().clone();
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 4);
    let field = |row: usize, name| {
        let place = names.iter().position(|n| n == name).unwrap();
        rows[row][place].to_owned()
    };
    assert_eq!(field(0, "gpu_util_pct"), "5");
    assert_eq!(field(0, "pids"), "7+8");
    assert_eq!(field(3, "gpu"), "1");
    assert_eq!(field(3, "gpu_util_pct"), "");
    assert_eq!(field(3, "power_w"), "");
    assert_eq!(field(3, "pids"), "none");
    assert_eq!(field(3, "temp_c"), "30");
}
