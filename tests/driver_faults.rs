//! Whatever the driver does, the run doesn't notice; the user is told once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::{FakeDriver, Job, Record, Row, Sandbox, for_each, prompt, wait_until};

/// A command that goes on until the file `end` exists.
const STEADY: &str =
    "echo up; while [ ! -e end ]; do sleep 0.05; done; echo over; echo theirs >&2; exit 5";

/// What a fault may never change, and what is said about it.
fn untouched(sandbox: &Sandbox, job: &Job, what: &str) {
    let ended = job.run();
    assert_eq!(ended.code(), Some(5), "{what}: {}", ended.err());
    assert_eq!(
        ended.out(),
        "unset\n",
        "{what}: the output, and no GPU chosen"
    );
    let (ours, theirs): (Vec<_>, Vec<_>) = {
        let text = ended.err();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.into_iter().partition(|l| l.starts_with("gpuwatch: "))
    };
    assert_eq!(theirs, ["theirs"], "{what}");
    let about: Vec<_> = ours.iter().filter(|l| l.contains("GPU")).collect();
    assert_eq!(about.len(), 1, "{what}: said once: {ours:?}");

    let record = sandbox.record();
    let failed = nvml_states(&record);
    assert_eq!(failed.len(), 1, "{what}: {failed:?}");
    assert_ne!(failed[0]["state"], "ok", "{what}");
    assert!(!failed[0]["why"].as_str().unwrap().is_empty(), "{what}");
    for row in record.samples() {
        assert_eq!(row["gpu_util_pct"], "", "{what}");
        assert_eq!(row["mem_used_mib"], "", "{what}");
    }
    assert_eq!(record.json()["exit"]["code"], 5);
}

fn nvml_states(record: &Record) -> Vec<Value> {
    let mut events = record.events_of("source");
    events.retain(|e| e["name"] == "nvml");
    events
}

const SAY: [&str; 3] = [
    "sh",
    "-c",
    "echo ${CUDA_VISIBLE_DEVICES-unset}; echo theirs >&2; sleep 0.3; exit 5",
];

#[test]
fn no_driver_is_said_once() {
    let sandbox = Sandbox::new();
    untouched(&sandbox, &sandbox.watched(&[], &SAY), "no library");
    let sandbox = Sandbox::new();
    let text = sandbox.path("libnvidia-ml.so.1");
    std::fs::write(&text, "this is no library\n").unwrap();
    let job = sandbox
        .watched(&[], &SAY)
        .env("GPUWATCH_NVML_LIBRARY", text);
    untouched(&sandbox, &job, "a text for a library");
}

#[test]
fn a_driver_that_refuses_is_said_once() {
    for_each(&[9, 18, 999, 4, 29], |code| {
        let sandbox = Sandbox::new();
        let driver = FakeDriver::new(
            &json!({"gpus": [{}], "faults": [{"call": "nvmlInit*", "code": code}]}),
        );
        untouched(
            &sandbox,
            &sandbox.watched(&[], &SAY).with(&driver),
            &format!("init returns {code}"),
        );
    });
}

#[test]
fn a_driver_that_hangs_at_init_is_said_once() {
    for_each(&["forever", "uninterruptible"], |how| {
        let sandbox = Sandbox::new();
        let driver =
            FakeDriver::new(&json!({"gpus": [{}], "faults": [{"call": "nvmlInit*", "hang": how}]}));
        untouched(
            &sandbox,
            &sandbox.watched(&[], &SAY).with(&driver),
            &format!("hang {how}"),
        );
    });
}

#[test]
fn a_driver_that_hangs_at_init_delays_no_output_and_no_end() {
    let driver = FakeDriver::new(
        &json!({"gpus": [{}], "faults": [{"call": "nvmlInit*", "hang": "forever"}]}),
    );
    prompt::assert_prompt("hung at init", Duration::from_secs(2), |sandbox| {
        sandbox
            .watched(&["-q"], &prompt::clockwork(4))
            .with(&driver)
    });
}

#[test]
fn a_driver_that_hangs_later_delays_no_output_and_no_end() {
    for_each(&["forever", "uninterruptible"], |how| {
        let fault = json!({"call": "nvmlDeviceGetPowerUsage", "after_calls": 3, "hang": how});
        let driver = FakeDriver::new(&json!({"gpus": [{}], "faults": [fault]}));
        prompt::assert_prompt("hung at sample 3", Duration::from_secs(2), |sandbox| {
            sandbox
                .watched(&["-q", "--interval", "200ms"], &prompt::clockwork(4))
                .with(&driver)
        });
    });
}

#[test]
fn a_hang_in_the_middle_is_said_once_and_signals_go_on() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{"util": 30}]}));
    let job = sandbox
        .watched(&["--interval", "100ms"], &["sh", "-c", STEADY])
        .with(&driver);
    let live = job.start();
    live.wait_for_out("up");
    wait_until("the GPU is sampled", || rows_with_use(&sandbox, 3));
    driver.set(&json!({"gpus": [{"util": 30}], "faults": [{"call": "nvmlDeviceGetUtilizationRates", "hang": "forever"}]}));
    wait_until("the silence is an event", || {
        nvml_states(&sandbox.record())
            .iter()
            .any(|e| e["state"] != "ok")
    });
    // A short silence is an event; one that lasts is worth a word to the user.
    let elapsed = |row: &Row| row["elapsed_s"].parse::<f64>().unwrap();
    let silent = nvml_states(&sandbox.record());
    let since = silent.last().unwrap()["elapsed_s"].as_f64().unwrap();
    wait_until("it lasts", || {
        let rows = sandbox.samples_so_far();
        rows.last().is_some_and(|row| elapsed(row) > since + 5.0)
    });
    live.signal(libc::SIGTERM);
    let ended = live.end();
    assert_eq!(ended.signal(), Some(libc::SIGTERM), "{}", ended.err());
    let about: Vec<_> = ended
        .own_lines()
        .into_iter()
        .filter(|l| l.contains("NVML") || l.contains("driver"))
        .collect();
    assert_eq!(about.len(), 1, "{}", ended.err());
    let record = sandbox.record();
    let bad = nvml_states(&record)
        .into_iter()
        .filter(|e| e["state"] != "ok")
        .count();
    assert_eq!(bad, 1, "{:?}", nvml_states(&record));
    let samples = record.samples();
    assert!(samples.iter().any(|r| r["gpu_util_pct"] == "30"));
    assert!(
        samples.iter().all(|r| r["gpu_util_pct"] != "0"),
        "missing is never zero"
    );
    let after = samples.last().unwrap();
    assert_eq!(
        after["gpu_util_pct"], "",
        "nothing is made up for the time after"
    );
    assert!(
        !after["procs"].is_empty(),
        "the job itself is still watched"
    );
}

fn rows_with_use(sandbox: &Sandbox, count: usize) -> bool {
    let mut rows = sandbox.samples_so_far();
    rows.retain(|row| !row["gpu_util_pct"].is_empty());
    rows.len() >= count
}

#[test]
fn one_gpu_lost_and_back_leaves_a_gap_in_its_rows_alone() {
    let sandbox = Sandbox::new();
    let gpus = json!([{"util": 30}, {"util": 60}]);
    let driver = FakeDriver::new(&json!({"gpus": gpus}));
    let job = sandbox
        .watched(&["--interval", "100ms"], &["sh", "-c", STEADY])
        .with(&driver);
    let live = job.start();
    live.wait_for_out("up");
    wait_until("both are sampled", || rows_with_use(&sandbox, 6));
    driver.set(&json!({"gpus": gpus, "faults": [{"call": "nvmlDevice*", "gpu": 1, "code": 15}]}));
    let changes = |change: &str| {
        let events = sandbox.record().events_of("gpu");
        events
            .iter()
            .filter(|e| e["gpu"] == 1 && e["change"] == change)
            .count()
    };
    wait_until("the loss is an event", || changes("lost") > 0);
    let lost_at = sandbox.samples_so_far().len();
    wait_until("the other goes on", || {
        sandbox.samples_so_far().len() > lost_at + 6
    });
    driver.set(&json!({"gpus": gpus}));
    wait_until("it is back", || changes("recovered") > 0);
    let back_at = sandbox.samples_so_far().len();
    wait_until("it is sampled again", || {
        sandbox.samples_so_far().len() > back_at + 6
    });
    std::fs::write(sandbox.path("end"), "").unwrap();
    let ended = live.end();
    assert_eq!((ended.code(), ended.out()), (Some(5), "up\nover\n".into()));

    assert_eq!((changes("lost"), changes("recovered")), (1, 1));
    let samples = sandbox.record().samples();
    let of = |gpu: &str| {
        samples
            .iter()
            .filter(|r| r["gpu"] == gpu)
            .map(|r| r["gpu_util_pct"].clone())
            .collect::<Vec<_>>()
    };
    assert!(of("0").iter().all(|util| util == "30"), "{:?}", of("0"));
    let mut phases = of("1");
    phases.dedup();
    assert_eq!(phases, ["60", "", "60"], "{:?}", of("1"));
}

#[test]
fn an_older_driver_lacks_functions_and_the_rest_is_read() {
    let sandbox = Sandbox::new();
    let missing = [
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetProcessUtilization",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetCurrentClocksEventReasons",
    ];
    let driver = FakeDriver::without(&missing, &json!({"gpus": [{"power_w": 123, "temp_c": 45}]}));
    let job = sandbox
        .watched(&["--interval", "100ms"], &["sh", "-c", STEADY])
        .with(&driver);
    let live = job.start();
    wait_until("power is sampled", || {
        let rows = sandbox.samples_so_far();
        rows.iter().any(|row| row["power_w"] == "123")
    });
    std::fs::write(sandbox.path("end"), "").unwrap();
    assert_eq!(live.end().code(), Some(5));
    for row in sandbox.record().samples() {
        assert_eq!(
            row["gpu_util_pct"], "",
            "what can't be asked for is missing, not zero"
        );
        assert!(
            row["temp_c"] == "45" || row["temp_c"].is_empty(),
            "{}",
            row["temp_c"]
        );
    }
}

#[test]
fn readings_that_the_device_lacks_are_empty() {
    let sandbox = Sandbox::new();
    // A small board computer: no memory of its own, no power limit, no energy counter.
    let gpu = json!({"util": 7, "memory_mib": null, "power_w": null, "power_limit_w": null, "energy_j": null,
        "temp_c": null, "clock_mhz": null, "throttle": null, "pcie_mb_s": null, "ecc_uncorrected": null});
    let driver = FakeDriver::new(&json!({"gpus": [gpu]}));
    let live = sandbox
        .watched(&["--interval", "100ms"], &["sh", "-c", STEADY])
        .with(&driver)
        .start();
    wait_until("use is sampled", || rows_with_use(&sandbox, 3));
    std::fs::write(sandbox.path("end"), "").unwrap();
    let ended = live.end();
    assert_eq!(ended.code(), Some(5));
    let record = sandbox.record();
    let watched: Vec<_> = record
        .samples()
        .into_iter()
        .filter(|r| r["gpu_util_pct"] == "7")
        .collect();
    assert!(watched.len() >= 3);
    for row in watched {
        for name in [
            "mem_used_mib",
            "mem_total_mib",
            "power_w",
            "power_limit_w",
            "energy_j",
            "temp_c",
            "sm_clock_mhz",
            "throttle",
            "pcie_mb_s",
            "ecc_uncorrected",
        ] {
            assert_eq!(row[name], "", "{name}");
        }
    }
    let summary = &record.json()["summary"];
    for name in ["power_w_mean", "energy_j"] {
        assert!(summary[name].is_null(), "{name}: {summary}");
    }
    assert!(
        !ended.err().contains(" 0 W") && !ended.err().contains(" 0 J"),
        "{}",
        ended.err()
    );
    // A reading that failed says so once, however often it is tried.
    for name in ["nvml/0/power_w", "nvml/0/mem_used_mib"] {
        let said = record
            .events_of("source")
            .iter()
            .filter(|e| e["name"] == name)
            .count();
        assert_eq!(said, 1, "{name}: {:?}", record.events_of("source"));
    }
}

/// What was told of GPUs: which, and how they changed.
fn changes(record: &Record) -> Vec<(Value, Value, Value)> {
    let events = record.events_of("gpu");
    let told = |e: &Value| (e["gpu"].clone(), e["change"].clone(), e["code"].clone());
    events.iter().map(told).collect()
}

#[test]
fn one_lost_then_all_failing_then_all_back_is_one_event_each() {
    let sandbox = Sandbox::new();
    let gpus = json!([{"util": 30}, {"util": 60}]);
    let driver = FakeDriver::new(&json!({"gpus": gpus}));
    let live = sandbox
        .watched(&["--interval", "100ms"], &["sh", "-c", STEADY])
        .with(&driver)
        .start();
    live.wait_for_out("up");
    wait_until("both are sampled", || rows_with_use(&sandbox, 6));
    let one = json!({"call": "nvmlDevice*", "gpu": 1, "code": 15});
    let all = json!({"call": "nvmlDevice*", "code": 999});
    let told = |n: usize| changes(&sandbox.record()).len() >= n;
    let rows = || sandbox.samples_so_far().len();
    let go_on = |what: &str| {
        let before = rows();
        wait_until(what, || rows() > before + 8);
    };
    driver.set(&json!({"gpus": gpus, "faults": [one]}));
    wait_until("the loss is told", || told(1));
    go_on("the healthy one's rows go on");
    driver.set(&json!({"gpus": gpus, "faults": [all]}));
    wait_until("that nothing can be read is told", || told(2));
    go_on("rows go on");
    driver.set(&json!({"gpus": gpus}));
    wait_until("both returns are told", || told(4));
    go_on("both are sampled again");
    std::fs::write(sandbox.path("end"), "").unwrap();
    assert_eq!(live.end().code(), Some(5));
    let record = sandbox.record();
    let mut told: Vec<_> = changes(&record)
        .into_iter()
        .map(|(gpu, change, _)| format!("{gpu} {}", change.as_str().unwrap()))
        .collect();
    told[2..].sort();
    assert_eq!(
        told,
        ["1 lost", "0 unavailable", "0 recovered", "1 recovered"]
    );
    let samples = record.samples();
    for (gpu, util) in [("0", "30"), ("1", "60")] {
        let rows = samples.iter().filter(|r| r["gpu"] == gpu);
        let mut phases: Vec<_> = rows.map(|r| r["gpu_util_pct"].clone()).collect();
        phases.dedup();
        assert_eq!(phases, [util, "", util], "GPU {gpu}");
    }
    let failed = record.events_of("source");
    let failed: Vec<_> = failed
        .iter()
        .filter(|e| e["why"] != "NotSupported")
        .collect();
    assert!(failed.is_empty(), "none a reading: {failed:?}");
}

#[test]
fn xids_and_memory_errors_are_events_as_they_happen() {
    // With events of the driver's, and without, where the counter tells (every ten seconds).
    for_each(&[true, false], |supported| {
        let sandbox = Sandbox::new();
        let mut scenario = json!({"gpus": [{"ecc_uncorrected": 150}]});
        if !supported {
            scenario["gpus"][0]["event_types"] = json!(0);
        }
        let driver = FakeDriver::new(&scenario);
        let live = sandbox
            .watched(&["--interval", "100ms"], &["sh", "-c", STEADY])
            .with(&driver)
            .start();
        live.wait_for_out("up");
        wait_until("errors are counted", || {
            let rows = sandbox.samples_so_far();
            rows.iter().any(|r| r["ecc_uncorrected"] == "0")
        });
        scenario["gpus"][0]["ecc_uncorrected"] = json!(153);
        scenario["events"] = json!([{"gpu": 0}, {"gpu": 0, "xid": 48}]);
        driver.set(&scenario);
        let ecc = (json!(0), json!("ecc"), json!(3));
        let xid = (json!(0), json!("xid"), json!(48));
        wait_until("they are events", || {
            let told = changes(&sandbox.record());
            told.contains(&ecc) && (!supported || told.contains(&xid))
        });
        std::fs::write(sandbox.path("end"), "").unwrap();
        assert_eq!(live.end().code(), Some(5));
        let record = sandbox.record();
        let told = changes(&record);
        assert_eq!(told.iter().filter(|e| **e == ecc).count(), 1, "{told:?}");
        assert_eq!(told.contains(&xid), *supported, "{told:?}");
        let last = record.samples().pop().unwrap();
        assert_eq!(last["ecc_uncorrected"], "3", "since the start");
        let findings = record.events_of("finding");
        assert!(
            findings
                .iter()
                .any(|f| f["name"] == "hardware" && f["cause"] == "ecc")
        );
    });
}
