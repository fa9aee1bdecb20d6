//! The helper process and `gpuwatch gpus` against the simulated driver, through the code path of
//! the real one.

mod support;

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use gpuwatch::model::{GpuSample, Inventory, Reading, Why};
use gpuwatch::nvml::client::{Closed, HelperLink};
use gpuwatch::nvml::health::Health;
use gpuwatch::nvml::protocol::{FromHelper, ToHelper, Watched};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use support::fake_driver::{FakeDriver, python_path};

/// Nothing here takes long; a machine that is busy with other things may.
const CEILING: Duration = Duration::from_secs(60);

/// A helper as a supervisor has it.
struct Helper {
    link: Option<HelperLink>,
    child: Child,
    heard: VecDeque<FromHelper>,
}

impl Helper {
    fn start(driver: &FakeDriver) -> Self {
        Self::start_with(driver, &[], Stdio::null())
    }

    fn start_with(driver: &FakeDriver, more: &[&str], stdout: Stdio) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut command = gpuwatch(driver);
        command
            .args(["helper", "--socket", "0"])
            .args(more)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(stdout);
        Self {
            link: Some(HelperLink::from_fd(ours.into())),
            child: command.spawn().unwrap(),
            heard: VecDeque::new(),
        }
    }

    fn watching(driver: &FakeDriver) -> Self {
        let mut helper = Self::start(driver);
        helper.inventory();
        helper.watch(20);
        helper
    }

    fn say(&mut self, message: &ToHelper) {
        assert_eq!(self.link.as_mut().unwrap().send(message), Ok(true));
    }

    fn watch(&mut self, interval_ms: u64) {
        self.say(&ToHelper::Watch {
            gpus: Watched::All,
            interval_ms,
        });
    }

    fn next(&mut self) -> FromHelper {
        let end = Instant::now() + CEILING;
        loop {
            if let Some(message) = self.heard.pop_front() {
                return message;
            }
            assert!(Instant::now() < end, "the helper says nothing");
            let link = self.link.as_mut().unwrap();
            let mut polled = [PollFd::new(link.as_fd(), PollFlags::POLLIN)];
            poll(&mut polled, PollTimeout::from(1000_u16)).unwrap();
            self.heard.extend(link.receive().unwrap());
        }
    }

    /// The first message that this finds something in.
    fn until<T>(&mut self, mut find: impl FnMut(&FromHelper) -> Option<T>) -> T {
        let end = Instant::now() + CEILING;
        loop {
            let message = self.next();
            if let Some(found) = find(&message) {
                return found;
            }
            assert!(Instant::now() < end, "never came; last: {message:?}");
        }
    }

    fn inventory(&mut self) -> Inventory {
        match self.next() {
            FromHelper::Inventory(inventory) => inventory,
            other => panic!("no inventory but {other:?}"),
        }
    }

    /// The first tick in which the GPUs are like this.
    fn tick(&mut self, like: impl Fn(&[GpuSample]) -> bool) -> Vec<GpuSample> {
        self.until(|message| match message {
            FromHelper::Tick { gpus, .. } if like(gpus) => Some(gpus.clone()),
            _ => None,
        })
    }

    /// Waits for its end, which must be its own.
    fn ends(mut self) {
        self.link = None;
        wait_until("the helper ends", || {
            self.child.try_wait().unwrap().is_some()
        });
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + CEILING;
    while !is_so() {
        assert!(Instant::now() < end, "never so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn gpuwatch(driver: &FakeDriver) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuwatch"));
    driver.apply(&mut command);
    command
}

fn gpus(driver: &FakeDriver, arguments: &[&str]) -> Output {
    gpuwatch(driver)
        .arg("gpus")
        .args(arguments)
        .output()
        .unwrap()
}

fn gpus_json(driver: &FakeDriver) -> Value {
    let output = gpus(driver, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn keys(object: &Value) -> Vec<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn fault(scenario: &Value, fault: Value) -> Value {
    let mut scenario = scenario.clone();
    scenario["faults"] = json!([fault]);
    scenario
}

/// One GPU at work with one process.
fn at_work() -> Value {
    json!({"gpus": [{"util": 50, "mem_util": 20, "processes": [{"pid": 4242, "mem_mib": 1024, "sm": 50}]}]})
}

// ---- gpuwatch gpus ----

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
            "processes"
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
    assert!(process["command"].as_str().unwrap().contains("fake_nvml"));
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
        driver.set(&fault(&json!({}), fault_));
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
        json!({"call": "nvmlInit_v2", "hang": "forever"}),
    ));
    let output = gpus(&driver, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("doesn't answer: no GPUs after 3 s"));
    driver.set(&fault(
        &at_work(),
        json!({"call": "nvmlDeviceGetTemperature", "hang": "forever"}),
    ));
    let output = gpus(&driver, &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["gpus"][0]["state"], "unknown");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no readings after 3 s"));
}

// ---- what is read ----

#[test]
fn a_healthy_gpu_has_every_reading() {
    let driver = FakeDriver::new(&at_work());
    let mut helper = Helper::start(&driver);
    let inventory = helper.inventory();
    assert_eq!(inventory.gpus[0].memory_mib, Some(81_920));
    assert_eq!(inventory.gpus[0].power_limit_w, Some(400.0));
    assert_eq!(inventory.gpus[0].slowdown_c, Some(89));
    helper.watch(20);
    let gpu = &helper.tick(|gpus| gpus[0].pcie_mb_s.get().is_some())[0];
    assert_eq!(gpu.util_pct, Reading::Value(50.0));
    assert_eq!(gpu.mem_util_pct, Reading::Value(20.0));
    assert_eq!(gpu.mem_used_mib, Reading::Value(1024.0));
    assert_eq!(gpu.mem_total_mib, Reading::Value(81_920.0));
    assert_eq!(gpu.temp_c, Reading::Value(52.0));
    assert_eq!(gpu.power_limit_w, Reading::Value(400.0));
    assert_eq!(gpu.sm_clock_mhz, Reading::Value(1410.0));
    assert_eq!(gpu.ecc_uncorrected_total, Reading::Value(0));
    assert!(gpu.energy_total_j.get().unwrap() >= 7015.0);
    let pcie = gpu.pcie_mb_s.get().unwrap();
    assert!((500.0..=1500.0).contains(&pcie), "{pcie}");
    assert_eq!(gpu.throttle.get().unwrap().text(), "none");
    let process = &gpu.processes.value().unwrap()[0];
    assert_eq!((process.pid, process.compute), (4242, true));
    assert_eq!(process.mem_mib, Reading::Value(1024.0));
    assert_eq!(process.sm_pct, Reading::Value(50.0));
}

/// What each call's failure takes away.
fn readings(gpu: &GpuSample) -> Vec<(&'static str, Vec<Option<Why>>)> {
    let why = |reading: &Reading<f64>| reading.why().cloned();
    let of_process = |pick: fn(&gpuwatch::model::GpuProcess) -> &Reading<f64>| {
        gpu.processes
            .value()
            .and_then(|list| list.first())
            .and_then(|p| pick(p).why().cloned())
    };
    vec![
        (
            "nvmlDeviceGetUtilizationRates",
            vec![why(&gpu.util_pct), why(&gpu.mem_util_pct)],
        ),
        ("nvmlDeviceGetMemoryInfo_v2", vec![why(&gpu.mem_used_mib)]),
        ("nvmlDeviceGetTemperature", vec![why(&gpu.temp_c)]),
        ("nvmlDeviceGetPowerUsage", vec![why(&gpu.power_w)]),
        (
            "nvmlDeviceGetEnforcedPowerLimit",
            vec![why(&gpu.power_limit_w)],
        ),
        (
            "nvmlDeviceGetTotalEnergyConsumption",
            vec![why(&gpu.energy_total_j)],
        ),
        ("nvmlDeviceGetClockInfo", vec![why(&gpu.sm_clock_mhz)]),
        (
            "nvmlDeviceGetCurrentClocksEventReasons",
            vec![gpu.throttle.why().cloned()],
        ),
        ("nvmlDeviceGetFieldValues", vec![why(&gpu.pcie_mb_s)]),
        (
            "nvmlDeviceGetTotalEccErrors",
            vec![gpu.ecc_uncorrected_total.why().cloned()],
        ),
        (
            "nvmlDeviceGetComputeRunningProcesses_v3",
            vec![gpu.processes.why().cloned()],
        ),
        (
            "nvmlDeviceGetProcessUtilization",
            vec![of_process(|p| &p.sm_pct)],
        ),
    ]
}

/// A GPU whose one call fails so.
fn gpu_with(call: &str, code: u32) -> GpuSample {
    let driver = FakeDriver::new(&fault(&at_work(), json!({"call": call, "code": code})));
    let mut helper = Helper::watching(&driver);
    // A rate shows in the second tick at the earliest.
    helper.tick(|_| true);
    helper.tick(|_| true).remove(0)
}

#[test]
fn a_call_that_fails_takes_its_own_reading_and_no_other_and_never_gives_a_zero() {
    let calls = readings(&GpuSample::default())
        .into_iter()
        .map(|(call, _)| call);
    for call in calls {
        for (code, reason) in [
            (3, Why::NotSupported),
            (4, Why::NoPermission),
            (10, Why::TimedOut),
        ] {
            let gpu = gpu_with(call, code);
            for (other, missing) in readings(&gpu) {
                let expected = (other == call).then(|| reason.clone());
                for why in missing {
                    assert_eq!(why, expected, "{other} after {call} failed with {code}");
                }
            }
        }
    }
}

#[test]
fn impossible_answers_are_no_readings() {
    let driver = FakeDriver::new(&fault(
        &at_work(),
        json!({"call": "nvmlDevice*", "garbage": true}),
    ));
    let mut helper = Helper::watching(&driver);
    helper.tick(|_| true);
    let gpu = &helper.tick(|_| true)[0];
    let garbage = Some(&Why::Garbage);
    assert_eq!(gpu.util_pct.why(), garbage);
    assert_eq!(gpu.mem_util_pct.why(), garbage);
    assert_eq!(gpu.mem_used_mib.why(), garbage);
    assert_eq!(gpu.temp_c.why(), garbage);
    assert_eq!(gpu.power_w.why(), garbage);
    assert_eq!(gpu.power_limit_w.why(), garbage);
    assert_eq!(gpu.energy_total_j.why(), garbage);
    assert_eq!(gpu.sm_clock_mhz.why(), garbage);
    assert_eq!(gpu.throttle.why(), garbage);
    assert_eq!(gpu.ecc_uncorrected_total.why(), garbage);
    let list = gpu.processes.value().unwrap();
    // The sample of PID 0 is nobody's.
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].mem_mib.why(), Some(&Why::NotSupported));
    assert_eq!(list[0].sm_pct.why(), garbage);
}

#[test]
fn memory_that_the_driver_cannot_tell_is_not_16_eib() {
    let driver = FakeDriver::new(&json!({"gpus": [{"processes": [{"pid": 7, "mem_mib": null}]}]}));
    let mut helper = Helper::watching(&driver);
    let gpu = &helper.tick(|_| true)[0];
    let process = &gpu.processes.value().unwrap()[0];
    assert_eq!(process.mem_mib, Reading::Missing(Why::NotSupported));
    assert_eq!(process.sm_pct, Reading::Value(0.0));
}

#[test]
fn samples_of_processes_that_are_not_listed_do_not_count() {
    let driver = FakeDriver::new(&json!({"gpus": [{
        "processes": [{"pid": 7, "mem_mib": 10}],
        "samples": [{"pid": 8, "sm": 90}, {"pid": 7, "sm": 37100}, {"pid": 7, "sm": 20, "age_us": 1000}],
    }]}));
    let mut helper = Helper::watching(&driver);
    let gpu = &helper.tick(|_| true)[0];
    let list = gpu.processes.value().unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].sm_pct, Reading::Value(20.0));
}

#[test]
fn forty_processes_on_a_driver_with_wide_entries_are_forty() {
    let processes: Vec<_> = (1..=40)
        .map(|pid| json!({"pid": pid, "mem_mib": pid}))
        .collect();
    for version in ["535.54.03", "580.95.05"] {
        let driver =
            FakeDriver::new(&json!({"driver": version, "gpus": [{"processes": processes}]}));
        let mut helper = Helper::watching(&driver);
        let gpu = &helper.tick(|_| true)[0];
        let list = gpu.processes.value().unwrap();
        let read: Vec<_> = list
            .iter()
            .map(|p| (p.pid, p.mem_mib.get().unwrap() as u32))
            .collect();
        let told: Vec<_> = (1..=40).map(|n| (n, n)).collect();
        assert_eq!(read, told, "{version}");
    }
}

#[test]
fn a_list_that_grows_while_it_is_read_is_read_again() {
    let processes: Vec<_> = (1..=50)
        .map(|pid| json!({"pid": pid, "mem_mib": 1}))
        .collect();
    let scenario = json!({"gpus": [{"processes": processes}]});
    let driver = FakeDriver::new(&fault(
        &scenario,
        json!({"call": "nvmlDeviceGetComputeRunningProcesses*", "race": 15, "times": 1}),
    ));
    let mut helper = Helper::watching(&driver);
    let gpu = &helper.tick(|_| true)[0];
    assert_eq!(gpu.processes.value().unwrap().len(), 50);
}

#[test]
fn older_libraries_are_read_with_the_functions_that_they_have() {
    let driver = FakeDriver::without(
        &[
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "nvmlDeviceGetGraphicsRunningProcesses_v3",
            "nvmlDeviceGetMPSComputeRunningProcesses_v3",
            "nvmlDeviceGetMPSComputeRunningProcesses_v2",
            "nvmlDeviceGetMemoryInfo_v2",
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetFieldValues",
        ],
        &json!({"driver": "470.256.02", "gpus": [{
            "util": 50,
            "processes": [{"pid": 4242, "mem_mib": 1024, "sm": 50}],
            "graphics": [{"pid": 9, "mem_mib": 100}],
        }]}),
    );
    let mut helper = Helper::watching(&driver);
    helper.tick(|_| true);
    let gpu = &helper.tick(|_| true)[0];
    let list = gpu.processes.value().unwrap();
    let read: Vec<_> = list.iter().map(|p| (p.pid, p.compute)).collect();
    assert_eq!(read, [(9, false), (4242, true)]);
    assert_eq!(gpu.mem_used_mib, Reading::Value(1124.0));
    assert_eq!(gpu.throttle.get().unwrap().text(), "none");
    assert_eq!(gpu.pcie_mb_s, Reading::Missing(Why::NotSupported));
}

#[test]
fn a_library_without_any_reading_is_no_reason_to_fail() {
    let driver = FakeDriver::without(
        &[
            "nvmlDeviceGetUtilizationRates",
            "nvmlDeviceGetPowerUsage",
            "nvmlDeviceGetProcessUtilization",
            "nvmlDeviceGetName",
        ],
        &at_work(),
    );
    let mut helper = Helper::start(&driver);
    assert_eq!(helper.inventory().gpus[0].name, None);
    helper.watch(20);
    let gpu = &helper.tick(|_| true)[0];
    let unsupported = Reading::Missing(Why::NotSupported);
    assert_eq!(gpu.util_pct, unsupported);
    assert_eq!(gpu.power_w, unsupported);
    assert_eq!(gpu.processes.value().unwrap()[0].sm_pct, unsupported);
}

#[test]
fn gpus_that_may_not_be_opened_are_not_ours() {
    let driver = FakeDriver::new(
        &json!({"gpus": [{"no_permission": true}, {}, {"no_permission": true}, {}]}),
    );
    let mut helper = Helper::start(&driver);
    let indexes: Vec<_> = helper.inventory().gpus.iter().map(|g| g.index).collect();
    assert_eq!(indexes, [1, 3]);
    helper.say(&ToHelper::Watch {
        gpus: Watched::These(vec![0, 3]),
        interval_ms: 20,
    });
    let gpus = helper.tick(|_| true);
    assert_eq!(gpus.iter().map(|g| g.index).collect::<Vec<_>>(), [3]);
}

#[test]
fn a_process_that_died_holds_nothing() {
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let mut script = Command::new("python3");
    driver.apply(&mut script).env("PYTHONPATH", python_path());
    script.args([
        "-c",
        "import fake_gpu, sys\nfake_gpu.hold(0, 2048)\nfake_gpu.use(0, 44, 12)\nprint(flush=True)\nsys.stdin.read()",
    ]);
    let mut script = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut helper = Helper::watching(&driver);
    let held = |gpus: &[GpuSample]| {
        let list = gpus[0].processes.value().unwrap();
        list.first()
            .map(|p| (p.pid, p.mem_mib.get(), p.sm_pct.get()))
    };
    let gpus = helper.tick(|gpus| held(gpus).is_some());
    assert_eq!(held(&gpus), Some((script.id(), Some(2048.0), Some(44.0))));
    assert_eq!(gpus[0].util_pct, Reading::Value(44.0));
    script.kill().unwrap();
    script.wait().unwrap();
    helper.tick(|gpus| held(gpus).is_none() && gpus[0].mem_used_mib == Reading::Value(0.0));
}

// ---- what goes wrong while it runs ----

#[test]
fn a_gpu_that_falls_off_the_bus_and_comes_back() {
    let two = json!({"gpus": [{}, {}]});
    let driver = FakeDriver::new(&two);
    let mut helper = Helper::watching(&driver);
    let mut health = Health::new();
    let mut said = Vec::new();
    let hear = |helper: &mut Helper, health: &mut Health, said: &mut Vec<String>, lost: bool| {
        helper.until(|message| {
            let events = health.hear(message);
            said.extend(
                events
                    .iter()
                    .map(|e| serde_json::to_string(e).unwrap())
                    .filter(|e| e.contains("\"gpu\"")),
            );
            match message {
                FromHelper::Tick { gpus, .. } => {
                    let gone = gpus[1].temp_c == Reading::Missing(Why::Lost);
                    assert!(gpus[0].temp_c.get().is_some());
                    (gone == lost).then_some(())
                }
                _ => None,
            }
        });
    };
    hear(&mut helper, &mut health, &mut said, false);
    driver.set(&fault(
        &two,
        json!({"call": "nvmlDevice*", "gpu": 1, "code": 15}),
    ));
    hear(&mut helper, &mut health, &mut said, true);
    hear(&mut helper, &mut health, &mut said, true);
    driver.set(&two);
    hear(&mut helper, &mut health, &mut said, false);
    hear(&mut helper, &mut health, &mut said, false);
    assert_eq!(
        said,
        [
            r#"{"kind":"gpu","gpu":"1","change":"lost"}"#,
            r#"{"kind":"gpu","gpu":"1","change":"recovered"}"#
        ]
    );
}

#[test]
fn a_gpu_that_was_lost_at_the_start_is_listed_and_comes_back() {
    let two = json!({"gpus": [{}, {}]});
    let driver = FakeDriver::new(&fault(
        &two,
        json!({"call": "nvmlDevice*", "gpu": 1, "code": 15}),
    ));
    assert_eq!(gpus_json(&driver)["gpus"][1]["state"], "lost");
    let mut helper = Helper::start(&driver);
    let inventory = helper.inventory();
    assert_eq!((inventory.gpus.len(), &inventory.gpus[1].uuid), (2, &None));
    helper.watch(20);
    helper.tick(|gpus| gpus[1].util_pct == Reading::Missing(Why::Lost));
    driver.set(&two);
    helper.tick(|gpus| {
        gpus[1].util_pct == Reading::Value(0.0) && gpus[1].power_limit_w.get().is_some()
    });
}

#[test]
fn a_call_that_hangs_is_reported_and_its_end_too() {
    let driver = FakeDriver::new(&at_work());
    let mut helper = Helper::watching(&driver);
    helper.tick(|_| true);
    driver.set(&fault(
        &at_work(),
        json!({"call": "nvmlDeviceGetPowerUsage", "hang": "until_removed", "after_calls": 3}),
    ));
    let (call, gpu, for_s) = helper.until(|message| match message {
        FromHelper::Stuck { call, gpu, for_s } => Some((call.clone(), *gpu, *for_s)),
        _ => None,
    });
    assert_eq!((call.as_str(), gpu), ("nvmlDeviceGetPowerUsage", Some(0)));
    assert!(for_s > 3.0, "{for_s}");
    // The main thread is as alive as before.
    helper.say(&ToHelper::Consume { signal: 10 });
    driver.set(&at_work());
    assert_eq!(helper.next(), FromHelper::Unstuck);
    helper.tick(|gpus| gpus[0].power_w.get().is_some());
}

#[test]
fn a_hung_helper_still_ends_when_it_is_told_or_left() {
    for (hang, farewell) in [
        ("forever", true),
        ("forever", false),
        ("uninterruptible", true),
    ] {
        let driver = FakeDriver::new(&fault(
            &at_work(),
            json!({"call": "nvmlDeviceGetTemperature", "hang": hang}),
        ));
        let mut helper = Helper::watching(&driver);
        wait_until("the call hangs", || {
            threads(helper.child.id())
                .iter()
                .any(|t| t.name == "nvml" && (hang == "forever" || t.state == "D"))
        });
        if farewell {
            helper.say(&ToHelper::Bye);
        }
        helper.ends();
    }
}

struct Thread {
    name: String,
    state: String,
}

fn threads(pid: u32) -> Vec<Thread> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let stats = tasks.filter_map(|t| fs::read_to_string(t.unwrap().path().join("stat")).ok());
    stats
        .filter_map(|stat| {
            let (start, rest) = stat.rsplit_once(')')?;
            Some(Thread {
                name: start.split_once('(')?.1.to_owned(),
                state: rest.split_whitespace().next()?.to_owned(),
            })
        })
        .collect()
}

#[test]
fn orders_change_what_is_watched() {
    let driver = FakeDriver::new(&json!({"gpus": [{}, {}, {}]}));
    let mut helper = Helper::watching(&driver);
    helper.tick(|gpus| gpus.len() == 3);
    helper.say(&ToHelper::Watch {
        gpus: Watched::These(vec![2]),
        interval_ms: 20,
    });
    helper.tick(|gpus| gpus.len() == 1 && gpus[0].index == 2);
    helper.say(&ToHelper::Stop);
    helper.watch(20);
    let mut last = 0;
    for _ in 0..3 {
        let mono_ms = helper.until(|m| match m {
            FromHelper::Tick { mono_ms, gpus } if gpus.len() == 3 => Some(*mono_ms),
            _ => None,
        });
        assert!(mono_ms > last);
        last = mono_ms;
    }
}

// ---- the sentinel ----

fn pending(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("ShdPnd:"));
    u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
}

#[test]
fn signals_show_as_pending_until_they_are_consumed() {
    let driver = FakeDriver::new(&at_work());
    for more in [&["--no-nvml"][..], &[]] {
        let mut helper = Helper::start_with(&driver, more, Stdio::null());
        let pid = helper.child.id();
        wait_until("all signals are blocked", || {
            fs::read_to_string(format!("/proc/{pid}/status"))
                .unwrap()
                .contains("SigBlk:\tfffffffe7ffbfeff")
        });
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            kill(Pid::from_raw(pid as i32), signal).unwrap();
            let bit = 1 << (signal as i32 - 1);
            wait_until("it is pending", || pending(pid) & bit != 0);
            helper.say(&ToHelper::Consume {
                signal: signal as i32,
            });
            wait_until("it is consumed", || pending(pid) & bit == 0);
        }
        helper.say(&ToHelper::Bye);
        helper.ends();
    }
}

#[test]
fn a_sentinel_alone_touches_no_library() {
    let driver = FakeDriver::new(&at_work());
    let mut helper = Helper::start_with(&driver, &["--no-nvml"], Stdio::null());
    helper.say(&ToHelper::Consume { signal: 10 });
    let maps = fs::read_to_string(format!("/proc/{}/maps", helper.child.id())).unwrap();
    assert!(!maps.contains("fake_nvml"));
    assert!(helper.heard.is_empty());
    helper.ends();
}

#[test]
fn what_is_kept_stays_open_after_the_supervisor_and_not_for_ever() {
    let driver = FakeDriver::new(&at_work());
    let (read_end, write_end) = std::io::pipe().unwrap();
    let mut helper = Helper::start_with(&driver, &["--keep", "1"], read_end.into());
    helper.inventory();
    helper.link = None;
    // Only the helper has the other end.
    assert!((&write_end).write(b"x").is_ok());
    wait_until("the pipe is closed", || (&write_end).write(b"x").is_err());
    helper.ends();
}

#[test]
fn the_link_says_when_the_helper_is_gone() {
    let driver = FakeDriver::new(&at_work());
    let mut helper = Helper::start(&driver);
    helper.inventory();
    helper.say(&ToHelper::Bye);
    let link = helper.link.as_mut().unwrap();
    wait_until("the link is closed", || link.receive() == Err(Closed));
}

#[test]
fn nothing_is_printed() {
    let driver = FakeDriver::new(&fault(
        &at_work(),
        json!({"call": "nvmlInit_v2", "code": 18}),
    ));
    let (ours, theirs) = UnixStream::pair().unwrap();
    let child = gpuwatch(&driver)
        .args(["helper", "--socket", "0"])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut link = HelperLink::from_fd(ours.into());
    let mut heard = Vec::new();
    wait_until("it fails", || {
        heard.extend(link.receive().unwrap());
        !heard.is_empty()
    });
    assert!(matches!(&heard[0], FromHelper::Failed { why } if why.contains("different versions")));
    link.send(&ToHelper::Bye).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.len(), output.stderr.len()), (0, 0));
}
