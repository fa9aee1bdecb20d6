//! MIG: GPUs that are split.

use serde_json::{Value, json};

use crate::gpus::{gpus_json, gpus_table};
use crate::support::fake_driver::{FakeDriver, python_path};
use crate::support::{Ended, Job, Record, Row, Sandbox, python, wait_until};

const FIRST: &str = "MIG-11111111-aaaa-4000-8000-000000000001";
const SECOND: &str = "MIG-11111111-bbbb-4000-8000-000000000002";
const OTHER: &str = "MIG-22222222-cccc-4000-8000-000000000003";
const GPU: &str = "GPU-5c1e0f7a-0000-4000-8000-000000000001";

/// A whole GPU, and one in two parts with holes between them.
fn split() -> Value {
    json!({"gpus": [{}, {
        "mig": {"enabled": true, "devices": [
            null,
            {"uuid": FIRST, "gi": 3, "ci": 0, "memory_mib": 9728},
            null,
            {"uuid": SECOND, "gi": 5, "ci": 0, "memory_mib": 19968},
        ]},
        "temp_c": 55,
        "power_w": 150,
        "processes": [{"pid": 4_000_001, "mem_mib": 700, "gi": 5, "ci": 0}],
    }]})
}

/// The same without the whole GPU.
fn parts_alone() -> Value {
    let mut scenario = split();
    scenario["gpus"].as_array_mut().unwrap().remove(0);
    scenario
}

#[test]
fn gpus_lists_each_part_with_its_holders() {
    let driver = FakeDriver::new(&split());
    let document = gpus_json(&driver);
    let gpu = &document["gpus"][1];
    assert_eq!(gpu["state"], "mig", "a split GPU isn't free as a whole");
    assert_eq!(gpu["util_pct"], Value::Null);
    assert_eq!(gpu["processes"], json!([]));
    assert_eq!(document["gpus"][0]["mig"], json!([]));
    let part = &gpu["mig"][0];
    assert_eq!(
        (&part["uuid"], &part["gi"], &part["ci"]),
        (&json!(FIRST), &json!(3), &json!(0))
    );
    assert_eq!(part["mem_total_mib"], 9728);
    assert_eq!(part["mem_used_mib"], 0);
    assert_eq!(
        (&part["state"], &part["processes"]),
        (&json!("free"), &json!([]))
    );
    let part = &gpu["mig"][1];
    assert_eq!(
        (&part["uuid"], &part["state"]),
        (&json!(SECOND), &json!("busy"))
    );
    assert_eq!(part["mem_used_mib"], 700);
    assert_eq!(part["processes"][0]["pid"], 4_000_001);
    // CUDA shows a process one MIG device, and no GPU beside it.
    assert_eq!(gpu["mig"][0]["cuda_index"], 0);
    assert_eq!(document["gpus"][0]["cuda_index"], Value::Null);
    let table = gpus_table(&driver);
    let row = table.lines().find(|l| l.contains(SECOND)).unwrap();
    assert!(
        row.contains("busy") && row.contains("pid 4000001"),
        "{table}"
    );
}

/// A program that holds memory until the file `end` is there, and says what it sees.
const HOLDS: &str = "
import fake_gpu, os, sys, time
fake_gpu.hold(0, 2048)
fake_gpu.use(0, 60, 20)
print('sees', os.environ.get('CUDA_VISIBLE_DEVICES'), flush=True)
while not os.path.exists('end'):
    time.sleep(0.05)
";

fn holder(sandbox: &Sandbox, driver: &FakeDriver, options: &[&str]) -> Job {
    let mut all = vec!["--interval", "100ms"];
    all.extend(options);
    sandbox
        .watched(&all, &[python(), "-c", HOLDS])
        .with(driver)
        .env("PYTHONPATH", python_path())
}

/// Runs it until what it holds is seen; what it said, and its record.
fn held(sandbox: &Sandbox, job: &Job) -> (Ended, Record) {
    let live = job.start();
    wait_until("what it holds is seen", || {
        let rows = sandbox.samples_so_far();
        rows.iter().any(|row| row["job_mem_mib"] == "2048")
    });
    std::fs::write(sandbox.path("end"), "").unwrap();
    let ended = live.end();
    ended.assert_ok();
    (ended, sandbox.record())
}

fn of_part(record: &Record, uuid: &str) -> Vec<Row> {
    let rows = record.samples();
    assert!(
        rows.iter().all(|row| row["gpu"] == uuid),
        "rows of one device"
    );
    rows
}

#[test]
fn a_run_on_a_part_watches_that_part() {
    let older = format!("MIG-{GPU}/3/0");
    for (name, uuid) in [
        (FIRST, FIRST),
        (older.as_str(), FIRST),
        ("MIG-11111111-a", FIRST),
    ] {
        let sandbox = Sandbox::new();
        let driver = FakeDriver::new(&split());
        driver.hold_part(std::process::id(), (1, 3, 0), 100);
        let job = holder(&sandbox, &driver, &[]).env("CUDA_VISIBLE_DEVICES", name);
        // The stand-in for the program reads the UUID alone.
        let job = job.env("FAKE_GPU_DEVICE", uuid);
        let (ended, record) = held(&sandbox, &job);
        assert_eq!(ended.out(), format!("sees {name}\n"), "it stays as it is");
        let rows = of_part(&record, uuid);
        let row = rows.iter().find(|r| r["job_mem_mib"] == "2048").unwrap();
        assert_eq!(row["mem_total_mib"], "9728", "its own memory");
        assert_eq!(row["mem_used_mib"], "2148", "its own, with the stranger's");
        assert_eq!(row["temp_c"], "55", "as hot as its GPU");
        for missing in ["gpu_util_pct", "mem_util_pct", "power_w", "energy_j"] {
            assert!(rows.iter().all(|r| r[missing].is_empty()), "{missing}");
        }
        // Of this row alone: before the job is on it, its use is a true zero.
        assert_eq!(row["job_sm_pct"], "", "nobody says what is used of a part");
        let gpus = &record.json()["gpus"];
        assert_eq!(gpus.as_array().unwrap().len(), 1);
        assert_eq!(
            (&gpus[0]["uuid"], &gpus[0]["index"]),
            (&json!(uuid), &json!(1))
        );
        assert_eq!(gpus[0]["instance"], json!({"place": 1, "gi": 3, "ci": 0}));
        assert_eq!(record.json()["attribution"], "exact");
        let shown = sandbox.gpuwatch(&["show", "last"]).run();
        assert!(shown.assert_ok().out().contains(uuid), "{}", shown.out());
        let replayed = sandbox.gpuwatch(&["replay", "last"]).run();
        replayed.assert_ok();
    }
}

#[test]
fn what_is_chosen_on_a_split_gpu_is_a_free_part() {
    let chosen = |scenario: &Value, options: &[&str]| {
        let sandbox = Sandbox::new();
        let driver = FakeDriver::new(scenario);
        let (ended, record) = held(&sandbox, &holder(&sandbox, &driver, options));
        let rows = record.samples();
        (ended.out(), rows[0]["gpu"].clone())
    };
    let sees = |name: &str| format!("sees {name}\n");
    for options in [&["--gpus", "1"][..], &["--gpus", "free"], &[]] {
        let (out, row) = chosen(&parts_alone(), options);
        assert_eq!((out, row.as_str()), (sees(FIRST), FIRST), "{options:?}");
        // A whole one is rather taken, where there is one.
        let (out, row) = chosen(&split(), options);
        assert_eq!((out, row.as_str()), (sees("0"), "0"), "{options:?}");
    }
    let mut idle = split();
    idle["gpus"][1]["processes"] = json!([]);
    let by_name = format!("id:{SECOND}");
    let (out, row) = chosen(&idle, &["--gpus", &by_name]);
    assert_eq!((out, row.as_str()), (sees(SECOND), SECOND));
    let (out, _) = chosen(
        &idle,
        &["--gpus", "1", "--gpu-type", "MIG 1g", "--min-free", "12GiB"],
    );
    assert_eq!(out, sees(SECOND));
}

#[test]
fn a_part_is_claimed_by_its_uuid() {
    let sandbox = Sandbox::new();
    let mut idle = parts_alone();
    idle["gpus"][0]["processes"] = json!([]);
    let driver = FakeDriver::new(&idle);
    let until_end = "while [ ! -e end ]; do sleep 0.05; done; echo $CUDA_VISIBLE_DEVICES";
    let run = |options: &[&str]| {
        let job = sandbox.watched(options, &["sh", "-c", &format!("echo up; {until_end}")]);
        let live = job.with(&driver).start();
        live.wait_for_out("up");
        live
    };
    let first = run(&["--gpus", "1"]);
    let second = run(&["--gpus", "1"]);
    let listed = sandbox.gpuwatch(&["gpus", "--json"]).with(&driver).run();
    let listed: Value = serde_json::from_str(&listed.out()).unwrap();
    let states: Vec<_> = (0..2)
        .map(|i| &listed["gpus"][0]["mig"][i]["state"])
        .collect();
    assert_eq!(states, ["claimed", "claimed"], "{listed}");
    let refused = sandbox
        .watched(&["--gpus", "1"], &["true"])
        .with(&driver)
        .run();
    assert_eq!(refused.code(), Some(125));
    assert!(
        refused.err().contains(&format!("{FIRST} is claimed by")),
        "{}",
        refused.err()
    );
    std::fs::write(sandbox.path("end"), "").unwrap();
    let mut got = [first.end().out(), second.end().out()];
    got.sort();
    assert_eq!(got, [format!("up\n{FIRST}\n"), format!("up\n{SECOND}\n")]);
}

#[test]
fn what_a_split_gpu_can_not_give_is_refused_in_one_line() {
    let driver = FakeDriver::new(&split());
    let two = format!("id:{FIRST},{SECOND}");
    for (options, said) in [
        (
            &["--gpus", "id:1"][..],
            "GPU 1 is in MIG mode: name a MIG device of it: MIG-1111",
        ),
        (&["--gpus", "2"], "there is 1 GPU"),
        (&["--gpus", &two], "a process sees one MIG device at most"),
        (&["--gpus", "id:MIG-1111"], "write more of it"),
        (
            &["--gpus", &format!("id:{OTHER}")],
            "there is no device MIG-2222",
        ),
    ] {
        let sandbox = Sandbox::new();
        let ended = sandbox
            .watched(options, &["echo", "up"])
            .with(&driver)
            .run();
        assert_eq!(
            (ended.code(), ended.out()),
            (Some(125), String::new()),
            "{options:?}"
        );
        let lines = ended.own_lines();
        assert!(
            lines.len() == 1 && lines[0].contains(said),
            "{options:?}: {lines:?}"
        );
    }
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&parts_alone());
    let ended = sandbox
        .watched(&["--gpus", "2"], &["true"])
        .with(&driver)
        .run();
    assert!(
        ended.err().contains("there is no whole GPU"),
        "{}",
        ended.err()
    );
}

#[test]
fn xids_of_another_part_are_not_this_runs() {
    let sandbox = Sandbox::new();
    let mut scenario = split();
    scenario["events"] = json!([
        {"gpu": 1, "xid": 31, "gi": 5},
        {"gpu": 1, "xid": 13, "gi": 3},
        {"gpu": 1, "xid": 79},
    ]);
    let driver = FakeDriver::new(&scenario);
    let job = holder(&sandbox, &driver, &[]).env("CUDA_VISIBLE_DEVICES", FIRST);
    let (_, record) = held(&sandbox, &job);
    let told: Vec<_> = record
        .events_of("gpu")
        .iter()
        .map(|e| (e["gpu"].clone(), e["code"].clone()))
        .collect();
    assert_eq!(told, [(json!(FIRST), json!(13)), (json!(FIRST), json!(79))]);
}

#[test]
fn a_part_that_is_taken_away_is_lost_and_its_successor_is_another() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&parts_alone());
    let job = sandbox
        .watched(
            &["--interval", "100ms"],
            &["sh", "-c", "while [ ! -e end ]; do sleep 0.05; done"],
        )
        .with(&driver)
        .env("CUDA_VISIBLE_DEVICES", FIRST);
    let live = job.start();
    let rows = || sandbox.samples_so_far().len();
    wait_until("it is sampled", || rows() > 3);
    let mut changed = parts_alone();
    changed["gpus"][0]["mig"]["devices"][1] =
        json!({"uuid": OTHER, "gi": 3, "ci": 0, "memory_mib": 9728});
    // The handle of what is gone answers so, as do new ones.
    changed["faults"] = json!([{"call": "nvmlDeviceGetMemoryInfo_v2", "code": 15, "times": 1}]);
    driver.set(&changed);
    wait_until("its loss is an event", || {
        sandbox
            .record()
            .events_of("gpu")
            .iter()
            .any(|e| e["change"] == "lost" && e["gpu"] == FIRST)
    });
    let before = rows();
    wait_until("the run goes on", || rows() > before + 3);
    std::fs::write(sandbox.path("end"), "").unwrap();
    live.end().assert_ok();
    let record = sandbox.record();
    let last = record.samples().pop().unwrap();
    assert_eq!(
        (last["gpu"].as_str(), last["mem_used_mib"].as_str()),
        (FIRST, "")
    );
    assert_eq!(
        record.events_of("gpu").len(),
        1,
        "{:?}",
        record.events_of("gpu")
    );
}
