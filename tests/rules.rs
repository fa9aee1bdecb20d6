//! Rules of the user's own from outside: judged as the run goes on and from what it recorded.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::fmt::Write as _;

use std::fs;

use gpuwatch::model::names::NAMES;
use serde_json::{Value, json};
use support::{FakeDriver, Sandbox, fake_driver, python, replayed};

/// Holds memory until a rule has been seen to hold.
const HOLD: &str = "
import fake_gpu, os, time
fake_gpu.hold(0, 4096)
print('held', flush=True)
while '\"holds\"' not in open(os.path.join(os.environ['GPUWATCH_RUN_DIR'], 'events.jsonl')).read():
    time.sleep(0.1)
";

const RULES: &str = "rules:
- name: holds
  when: mean(job.mem, 10s) > 1GiB and rise(job.mem, 10s) < 1MiB
  for: 200ms
  severity: note
  say: '{mean( job.mem, 10s )} are held'
- name: never
  when: max(job.mem, 10s) < 1GiB or p95(gpu.util, 1h) > 1
";

#[test]
fn a_window_is_judged_live_and_again_alike() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("mine.yaml"), RULES).unwrap();
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let options = ["-q", "--profile", "mine.yaml", "--interval", "200ms"];
    sandbox
        .watched(&options, &[python(), "-c", HOLD])
        .with(&driver)
        .env("PYTHONPATH", fake_driver::python_path())
        .run()
        .assert_ok();
    let record = sandbox.record();
    let findings = record.events_of("finding");
    let mut ours = findings.iter().filter(|f| f["name"] == "holds");
    let found = ours.next().unwrap();
    assert_eq!(found["severity"], "note");
    assert_eq!(found["advice"], "4.0 GiB are held");
    assert_eq!(found["evidence"]["mean(job.mem, 10s)"], 4096);
    assert_eq!(found["evidence"]["rise(job.mem, 10s)"], 0);
    let raised = found["elapsed_s"].as_f64().unwrap();
    assert!(raised >= 10.0, "the window was not full at {raised} s");
    assert!(
        !findings.iter().any(|f| f["name"] == "never"),
        "{findings:?}"
    );
    let rules = &record.json()["rules"];
    assert_eq!(rules[0]["say"], "{mean(job.mem, 10s)} are held");
    assert_eq!(replayed::differences(&sandbox.runs()), Ok(()));
}

/// Columns of `samples.csv` besides time and progress, with a value each.
const COLUMNS: &[(&str, &str)] = &[
    ("gpu", "0"),
    ("gpu_util_pct", "95"),
    ("mem_used_mib", "60000"),
    ("mem_total_mib", "80000"),
    ("job_mem_mib", "59000"),
    ("job_sm_pct", "94"),
    ("temp_c", "61"),
    ("power_w", "300"),
    ("power_limit_w", "400"),
    ("sm_clock_mhz", "1980"),
    ("pcie_mb_s", "800"),
    ("procs", "5"),
    ("cpu_cores", "3"),
    ("rss_mib", "4000"),
    ("read_mb_s", "120"),
    ("write_mb_s", "7"),
    ("host_cpu_pct", "44"),
    ("io_pressure_pct", "12"),
    ("out_bytes", "100"),
    ("epoch", "1"),
    ("percent", "50"),
    ("loss", "0.25"),
    ("rate", "3.5"),
    ("overall_pct", "34"),
    ("eta_s", "900"),
];

/// A record of so many seconds.
fn samples(seconds: u32) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let values: Vec<&str> = COLUMNS.iter().map(|(_, value)| *value).collect();
    let row = |t| format!("{t},{t},{}\n", values.join(","));
    let rows: Vec<String> = (1..=seconds).map(row).collect();
    let text = format!("elapsed_s,step,{}\n{}", names.join(","), rows.concat());
    fs::write(dir.path().join("samples.csv"), text).unwrap();
    dir
}

/// The names of what a profile finds in a record.
fn found(sandbox: &Sandbox, profile: &str, record: &tempfile::TempDir) -> Vec<String> {
    let path = sandbox.path("p.yaml");
    fs::write(&path, profile).unwrap();
    let run = record.path().to_str().unwrap();
    let words = ["replay", "--json", run, "--profile", path.to_str().unwrap()];
    let ended = sandbox.gpuwatch(&words).run();
    let said = ended.assert_ok().out();
    let lines = said
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap());
    lines
        .map(|l| l["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_documented_name_is_evaluated_from_a_recorded_row() {
    let sandbox = Sandbox::new();
    let record = samples(30);
    let functions = ["mean", "min", "max", "p95", "rise"];
    let mut profile = "rules:\n".to_owned();
    let mut wanted = Vec::new();
    for (name, ..) in NAMES {
        let plain = format!("v-{}", name.replace(['.', '_'], "-"));
        writeln!(profile, "- {{name: {plain}, when: {name} > -1}}").unwrap();
        wanted.push(plain);
    }
    for function in functions {
        writeln!(
            profile,
            "- {{name: f-{function}, when: '{function}(job.mem, 20s) >= 0'}}"
        )
        .unwrap();
        wanted.push(format!("f-{function}"));
    }
    let found = found(&sandbox, &profile, &record);
    for name in &wanted {
        let times = found.iter().filter(|found| *found == name).count();
        assert_eq!(times, 1, "{name}: {found:?}");
    }
}

#[test]
fn the_workstation_has_the_articles_alarms() {
    let sandbox = Sandbox::new();
    let shown = sandbox.gpuwatch(&["profile", "show", "workstation"]).run();
    let shown = shown.assert_ok().out();
    for name in [
        "util-below-20",
        "silent-30m",
        "memory-above-95",
        "hotter-than-85",
    ] {
        assert!(
            shown.contains(&format!("- {{name: {name}, when: ")),
            "{name}: {shown}"
        );
    }
    let record = samples(1900);
    let path = record.path().join("samples.csv");
    let text = fs::read_to_string(&path).unwrap();
    let findings = |text: &str| {
        fs::write(&path, text).unwrap();
        let run = record.path().to_str().unwrap();
        let words = ["replay", "--json", run, "--profile", "workstation"];
        let said = sandbox.gpuwatch(&words).run().assert_ok().out();
        let lines = said
            .lines()
            .map(|l| serde_json::from_str::<Value>(l).unwrap());
        let raised = lines.filter(|l| l["state"] == "raised");
        raised
            .map(|l| {
                format!(
                    "{} {}",
                    l["name"].as_str().unwrap(),
                    l["severity"].as_str().unwrap()
                )
            })
            .collect::<Vec<_>>()
    };
    // At work, and yet without a word for half an hour; what it prints is read elsewhere.
    assert_eq!(findings(&text), ["silent-30m note"]);
    let sick = text
        .replace(",95,60000,80000,", ",15,78000,80000,")
        .replace(",61,300,", ",88,300,");
    let found = findings(&sick);
    for name in [
        "util-below-20 note",
        "memory-above-95 note",
        "hotter-than-85 warning",
        "silent-30m note",
    ] {
        assert!(found.iter().any(|f| f == name), "{name}: {found:?}");
    }
}
