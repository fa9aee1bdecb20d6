//! Whose what is on a GPU is, in the words of the record.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::fake_driver::{FakeDriver, python_path};
use crate::support::{Live, Record, Row, Sandbox, copy_program, python, wait_until};

/// Holds 2 GiB at 60 % until the file `end` is there.
const HOLDS: &str = "
import fake_gpu, os, time
fake_gpu.hold(0, 2048)
fake_gpu.use(0, 60, 20)
while not os.path.exists('end'):
    time.sleep(0.05)
";

/// Runs it under these words before gpuwatch until the rows are like this; the record.
fn watched(scenario: &Value, under: &[&str], wanted: impl Fn(&[Row]) -> bool) -> Seen {
    let driver = FakeDriver::new(scenario);
    let sandbox = Sandbox::new();
    let job = sandbox
        .watched(&["--interval", "100ms"], &[python(), "-c", HOLDS])
        .with(&driver)
        .env("CUDA_VISIBLE_DEVICES", "0")
        .env("PYTHONPATH", python_path())
        .under(under);
    let live = job.start();
    wait_until("the rows are so", || wanted(&sandbox.samples_so_far()));
    std::fs::write(sandbox.path("end"), "").unwrap();
    live.end().assert_ok();
    let record = sandbox.record();
    let shown = sandbox.gpuwatch(&["show", "last"]).run();
    let word = record.json()["attribution"].as_str().unwrap().to_owned();
    let said = shown.assert_ok().out().contains(&word);
    assert_eq!(said, word != "exact", "what isn't exact is shown: {word}");
    Seen {
        record,
        _sandbox: sandbox,
    }
}

/// A record, and the folder that it is in.
struct Seen {
    record: Record,
    _sandbox: Sandbox,
}

impl std::ops::Deref for Seen {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

fn any(column: &'static str, value: &'static str) -> impl Fn(&[Row]) -> bool {
    move |rows| rows.iter().any(|row| row[column] == value)
}

fn attribution(record: &Record) -> String {
    record.json()["attribution"].as_str().unwrap().to_owned()
}

const IN_A_CONTAINER: [&str; 4] = ["unshare", "-fp", "--mount-proc", "--kill-child"];

#[test]
fn a_process_and_its_children_are_told_from_strangers() {
    let stranger = json!({"pid": std::process::id(), "mem_mib": 30_000, "sm": 30});
    let record = watched(
        &json!({"gpus": [{"processes": [stranger]}]}),
        &[],
        any("job_sm_pct", "60"),
    );
    assert_eq!(attribution(&record), "exact");
    let rows = record.samples();
    let row = rows.iter().find(|r| r["job_sm_pct"] == "60").unwrap();
    assert_eq!(
        (row["job_mem_mib"].as_str(), row["mem_used_mib"].as_str()),
        ("2048", "32048")
    );
    assert_eq!(row["gpu_util_pct"], "90");
}

#[test]
fn in_a_container_what_is_translated_is_told() {
    for (version, sm) in [("580.95.05", "60"), ("565.57.01", "")] {
        let record = watched(
            &json!({"driver": version, "gpus": [{}]}),
            &IN_A_CONTAINER,
            |rows| {
                let held = rows.iter().filter(|r| r["job_mem_mib"] == "2048");
                held.clone().count() > 5 && held.clone().any(|r| r["job_sm_pct"] == sm)
            },
        );
        assert_eq!(attribution(&record), "exact", "{version}");
        for row in record.samples() {
            let used = &row["job_sm_pct"];
            let fits = row["job_mem_mib"] != "2048" || used == sm || used.is_empty();
            assert!(fits, "{version}: {used}");
        }
    }
}

#[test]
fn in_a_container_the_hosts_pids_are_nobodys() {
    let nobody = json!({"pid": 3_999_999, "mem_mib": 20_000, "sm": 50});
    // The job's own number in its container, by accident.
    let stranger = json!({"pid": 2, "mem_mib": 10_000, "sm": 40});
    for (version, processes) in [
        ("535.104.05", json!([stranger.clone()])),
        ("535.54.03", json!([])),
        ("580.95.05", json!([nobody, stranger])),
    ] {
        let record = watched(
            &json!({"driver": version, "gpus": [{"processes": processes}]}),
            &IN_A_CONTAINER,
            |rows| rows.len() > 25,
        );
        let told = attribution(&record);
        assert_eq!(
            told, "unknown: who is on GPU 0 isn't told (told by the host's PIDs)",
            "{version}"
        );
        for row in record.samples() {
            assert_eq!(
                (row["job_mem_mib"].as_str(), row["job_sm_pct"].as_str()),
                ("", ""),
                "{version}"
            );
        }
        let rows = record.samples();
        assert!(rows.iter().any(|r| {
            r["mem_used_mib"]
                .parse::<f64>()
                .is_ok_and(|mib| mib >= 2048.0)
        }));
        let findings = record.events_of("finding");
        assert!(
            findings.iter().all(|f| f["name"] != "gpu-unused"),
            "{findings:?}"
        );
    }
}

#[test]
fn memory_that_is_not_told_is_the_devices_or_nobodys() {
    // As WSL2 has it.
    let mute = |pid: u32| json!({"pid": pid, "mem_mib": null});
    let scenario = json!({"gpus": [{"processes": [mute(std::process::id())]}]});
    let record = watched(&scenario, &[], any("job_mem_mib", "2048"));
    assert_eq!(attribution(&record), "exact", "a stranger's doesn't matter");
    let refused = json!({"gpus": [{}], "faults": [{"call": "nvmlDeviceGetComputeRunningProcesses*", "code": 4}]});
    let record = watched(&refused, &[], |rows| rows.len() > 5);
    assert_eq!(
        attribution(&record),
        "unknown: who is on GPU 0 isn't told (no permission)"
    );
    let garbage = json!({"gpus": [{}], "faults": [{"call": "nvmlDeviceGetComputeRunningProcesses*", "garbage": true}]});
    let record = watched(&garbage, &[], |rows| rows.len() > 12);
    let told = attribution(&record);
    assert_eq!(
        told,
        "device-wide: memory per process isn't told on GPU 0 (not supported)"
    );
    assert!(
        record
            .samples()
            .iter()
            .any(|r| r["mem_used_mib"] == "2048" && r["job_mem_mib"].is_empty())
    );
}

#[test]
fn what_an_mps_server_holds_is_not_the_jobs_zero() {
    // A process of that name, in place of the server.
    let sandbox = Sandbox::new();
    let server = sandbox.path("nvidia-cuda-mps-server");
    copy_program(Path::new("/bin/sleep"), &server);
    let server = Live::beside(Command::new(server).arg("600"));
    let id = server.pid();
    let named = || std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap();
    wait_until("it has its name", || named().starts_with("nvidia-cuda-mps"));
    let held = json!({"pid": id, "mem_mib": 9000, "sm": 70});
    let scenario = json!({"gpus": [{"processes": [held.clone()]}]});
    let driver = FakeDriver::new(&scenario);
    let run = sandbox
        .watched(
            &["--interval", "100ms"],
            &["sh", "-c", "while [ ! -e end ]; do sleep 0.05; done"],
        )
        .with(&driver)
        .env("CUDA_VISIBLE_DEVICES", "0");
    let live = run.start();
    wait_until("it is looked at", || sandbox.samples_so_far().len() > 5);
    std::fs::write(sandbox.path("end"), "").unwrap();
    live.end().assert_ok();
    assert_eq!(
        attribution(&sandbox.record()),
        "unknown: an MPS server on GPU 0 holds its clients' memory"
    );
    for row in sandbox.record().samples() {
        assert_eq!(
            (row["job_mem_mib"].as_str(), row["job_sm_pct"].as_str()),
            ("", "")
        );
    }
    // A client that is listed with its own memory has it, though it is never sure to be all.
    let scenario = json!({"gpus": [{"mps": [held]}]});
    let record = watched(&scenario, &[], any("job_mem_mib", "2048"));
    assert!(attribution(&record).starts_with("unknown: an MPS server"));
}

#[test]
fn who_comes_and_goes_between_looks_leaves_no_false_share() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let comes_and_goes = "
import os, subprocess, sys, time
for n in range(40):
    code = 'import fake_gpu; fake_gpu.hold(0, 100); fake_gpu.use(0, 10)'
    subprocess.run([sys.executable, '-c', code], check=True)
print('over', flush=True)
while not os.path.exists('end'):
    time.sleep(0.05)
";
    let job = sandbox
        .watched(&["--interval", "100ms"], &[python(), "-c", comes_and_goes])
        .with(&driver)
        .env("PYTHONPATH", python_path());
    let live = job.start();
    live.wait_for_out("over");
    let done = sandbox.samples_so_far().len();
    wait_until("a list was read since", || {
        sandbox.samples_so_far().len() > done + 15
    });
    std::fs::write(sandbox.path("end"), "").unwrap();
    live.end().assert_ok();
    let record = sandbox.record();
    assert_eq!(attribution(&record), "exact");
    let mut shares: Vec<_> = record
        .samples()
        .iter()
        .map(|r| r["job_mem_mib"].clone())
        .collect();
    assert_eq!(
        shares.last().map(String::as_str),
        Some("0"),
        "they are gone: a true zero"
    );
    shares.retain(|mib| !mib.is_empty());
    assert!(
        shares.iter().all(|mib| mib == "0" || mib == "100"),
        "{shares:?}"
    );
}
