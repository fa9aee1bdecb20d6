//! Missing is never zero: every reading taken away, one at a time and all at once, looked at
//! wherever readings are shown.

use serde_json::{Value, json};

use crate::support::fake_driver::{FakeDriver, python_path};
use crate::support::{Record, Sandbox, for_each, python, wait_until};

/// What each call gives: columns of samples.csv, keys of `gpus --json`, keys of the summary.
type Given = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

const CALLS: &[Given] = &[
    (
        "nvmlDeviceGetUtilizationRates",
        &["gpu_util_pct", "mem_util_pct"],
        &["util_pct"],
        &["gpu_util_pct_mean", "gpu_util_pct_p95"],
    ),
    (
        "nvmlDeviceGetMemoryInfo*",
        &["mem_used_mib", "mem_total_mib"],
        &["mem_used_mib", "mem_total_mib"],
        &[],
    ),
    ("nvmlDeviceGetTemperature", &["temp_c"], &["temp_c"], &[]),
    (
        "nvmlDeviceGetPowerUsage",
        &["power_w"],
        &["power_w"],
        &["power_w_mean"],
    ),
    (
        "nvmlDeviceGetEnforcedPowerLimit",
        &["power_limit_w"],
        &[],
        &[],
    ),
    (
        "nvmlDeviceGetTotalEnergyConsumption",
        &["energy_j"],
        &[],
        &["energy_j"],
    ),
    ("nvmlDeviceGetClockInfo", &["sm_clock_mhz"], &[], &[]),
    ("nvmlDeviceGetCurrentClocks*", &["throttle"], &[], &[]),
    ("nvmlDeviceGetFieldValues", &["pcie_mb_s"], &[], &[]),
    (
        "nvmlDeviceGetTotalEccErrors",
        &["ecc_uncorrected"],
        &[],
        &[],
    ),
    (
        "nvmlGpm*",
        &["sm_active_pct", "tensor_active_pct", "dram_active_pct"],
        &[],
        &[],
    ),
    (
        "nvmlDeviceGetComputeRunningProcesses*",
        &["job_mem_mib", "job_sm_pct"],
        &[],
        &["job_mem_mib_max"],
    ),
    ("nvmlDeviceGetProcessUtilization", &["job_sm_pct"], &[], &[]),
];

const HOLDS: &str = "
import fake_gpu, os, time
fake_gpu.hold(0, 2048)
fake_gpu.use(0, 60, 20)
print('up', flush=True)
while not os.path.exists('end'):
    time.sleep(0.05)
";

/// A GPU of which everything can be read, and nothing of it is zero.
fn scenario(calls: &[&str], code: u32) -> Value {
    let faults: Vec<_> = calls
        .iter()
        .map(|call| json!({"call": call, "code": code}))
        .collect();
    let gpm = json!({"sm_active": 50, "tensor_active": 30, "dram_active": 20});
    json!({"gpus": [{"gpm": gpm, "temp_c": 50, "throttle": 4, "power_w": 200}], "faults": faults})
}

/// A run on such a machine, until `enough` rows are there.
fn run(scenario: &Value, enough: usize) -> (Sandbox, Record, Value, String) {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(scenario);
    let job = sandbox
        .watched(&["--interval", "100ms"], &[python(), "-c", HOLDS])
        .with(&driver)
        .env("CUDA_VISIBLE_DEVICES", "0")
        .env("PYTHONPATH", python_path());
    let live = job.start();
    live.wait_for_out("up");
    wait_until("there are rows", || sandbox.samples_so_far().len() > enough);
    let listed = sandbox.gpuwatch(&["gpus", "--json"]).with(&driver).run();
    let listed: Value = serde_json::from_str(&listed.assert_ok().out()).unwrap();
    std::fs::write(sandbox.path("end"), "").unwrap();
    live.end().assert_ok();
    let shown = sandbox.gpuwatch(&["show", "last"]).run();
    let shown = shown.assert_ok().out();
    let record = sandbox.record();
    (sandbox, record, listed, shown)
}

/// Nothing of these calls shows anywhere, and nothing stands there as a zero.
fn nothing_of(calls: &[&Given], code: u32) {
    let names: Vec<&str> = calls.iter().map(|c| c.0).collect();
    let what = format!("{names:?} answer {code}");
    let (_sandbox, record, listed, shown) = run(&scenario(&names, code), 12);
    let summary = &record.json()["summary"];
    for (_, columns, keys, sums) in calls {
        for row in record.samples() {
            for column in *columns {
                // Where the list of processes is read and nobody of the job is on it yet, its
                // share is a true zero.
                let yet = *column == "job_sm_pct" && row["job_mem_mib"] == "0";
                assert!(
                    row[*column].is_empty() || yet,
                    "{what}: {column} is {}",
                    row[*column]
                );
            }
        }
        for key in *keys {
            // What is known since the driver was asked for its GPUs stays known.
            let fact = *key == "mem_total_mib" && listed["gpus"][0][*key] == 81_920;
            assert!(
                listed["gpus"][0][*key].is_null() || fact,
                "{what}: {key} in {listed}"
            );
        }
        for key in *sums {
            assert!(summary[*key].is_null(), "{what}: {key} in {summary}");
        }
    }
    let words: Vec<&str> = shown.split_whitespace().collect();
    let zero = |word: &str| {
        word.trim_matches(|c: char| !c.is_ascii_digit() && c != '.')
            .parse()
            == Ok(0.0)
    };
    for pair in words.windows(2) {
        let unit = pair[1].trim_matches(|c: char| !c.is_alphabetic() && c != '%');
        let of_a_gpu = ["%", "W", "J", "kJ", "MiB", "GiB"].contains(&unit);
        assert!(!(of_a_gpu && zero(pair[0])), "{what}: {pair:?} in {shown}");
    }
}

#[test]
fn a_reading_that_is_there_shows_everywhere() {
    // Else the other tests could not fail.
    let (_sandbox, record, listed, _) = run(&scenario(&[], 0), 60);
    for (call, columns, keys, sums) in CALLS {
        for column in *columns {
            let there = |row: &crate::support::Row| !row[*column].is_empty();
            assert!(record.samples().iter().any(there), "{call}: {column}");
        }
        for key in *keys {
            assert!(!listed["gpus"][0][*key].is_null(), "{call}: {key}");
        }
        for key in *sums {
            assert!(!record.json()["summary"][*key].is_null(), "{call}: {key}");
        }
    }
}

#[test]
fn each_reading_alone_is_missing_and_not_zero() {
    for code in [3, 999] {
        for_each(CALLS, |given| nothing_of(&[given], code));
    }
}

#[test]
fn all_of_them_are_missing_and_not_zero() {
    let all: Vec<&Given> = CALLS.iter().collect();
    for_each(&[3, 999], |code| nothing_of(&all, *code));
}
