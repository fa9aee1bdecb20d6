//! What is read, and what isn't.

use std::process::{Command, Stdio};

use gpuwatch::model::{GpuProcess, GpuSample, Reading, Why};
use gpuwatch::nvml::protocol::{ToHelper, Watched};
use serde_json::json;

use crate::harness::{Helper, at_work, fault};
use crate::support::fake_driver::{FakeDriver, python_path};

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
    let of_process = |pick: fn(&GpuProcess) -> &Reading<f64>| {
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
    let driver = FakeDriver::new(&fault(&at_work(), &json!({"call": call, "code": code})));
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
        &json!({"call": "nvmlDevice*", "garbage": true}),
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
        &json!({"call": "nvmlDeviceGetComputeRunningProcesses*", "race": 15, "times": 1}),
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

#[test]
fn a_script_counts_gpus_as_cuda_does() {
    let driver = FakeDriver::new(&json!({"gpus": [{}, {}, {}]}));
    let mut helper = Helper::watching(&driver);
    for (visible, ordinal, held) in [
        (None, "1", Some(1)),
        (Some("2,0"), "0", Some(2)),
        (Some("2,0"), "1", Some(0)),
        (Some("2,-1,0"), "1", None),
        (Some(""), "0", None),
        (Some("GPU-1234"), "2", Some(2)),
    ] {
        let mut script = Command::new("python3");
        driver.apply(&mut script).env("PYTHONPATH", python_path());
        script.args(["-c", "import fake_gpu, sys\nfake_gpu.hold(int(sys.argv[1]), 100)\nprint(flush=True)\nsys.stdin.read()", ordinal]);
        if let Some(visible) = visible {
            script.env("CUDA_VISIBLE_DEVICES", visible);
        }
        let script = script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = script.stderr(Stdio::null()).spawn().unwrap();
        let Some(held) = held else {
            assert!(!script.wait().unwrap().success(), "{visible:?} {ordinal}");
            continue;
        };
        helper.tick(|gpus| {
            let on = |g: &GpuSample| g.processes.value().is_some_and(|l| !l.is_empty());
            gpus.iter().filter(|g| on(g)).map(|g| g.index).eq([held])
        });
        drop(script.stdin.take());
        script.wait().unwrap();
    }
}

#[test]
fn activity_inside_the_gpu_comes_from_two_samples() {
    let gpm = json!({"sm_active": 61.5, "tensor_active": 30.25, "dram_active": 12.0});
    let driver = FakeDriver::new(&json!({"gpus": [{"gpm": gpm}, {}]}));
    let mut helper = Helper::watching(&driver);
    let gpus = helper.tick(|gpus| gpus[0].sm_active_pct.get().is_some());
    assert_eq!(gpus[0].sm_active_pct, Reading::Value(61.5));
    assert_eq!(gpus[0].tensor_active_pct, Reading::Value(30.25));
    assert_eq!(gpus[0].dram_active_pct, Reading::Value(12.0));
    let unsupported = Reading::Missing(Why::NotSupported);
    assert_eq!(gpus[1].sm_active_pct, unsupported);
}

#[test]
fn watching_asks_little() {
    const TICKS: usize = 30;
    let process = json!({"pid": 4242, "mem_mib": 1024, "sm": 50});
    let gpu = json!({"processes": [process]});
    let driver = FakeDriver::new(&json!({"gpus": vec![gpu; 8]}));
    let calls = driver.scenario().with_file_name("calls");
    let mut helper = Helper::start_with(
        &driver,
        &[("FAKE_NVML_CALLS", calls.as_path())],
        &[],
        Stdio::null(),
    );
    helper.inventory();
    helper.watch(20);
    for _ in 0..TICKS {
        helper.tick(|_| true);
    }
    let log = std::fs::read_to_string(&calls).unwrap();
    let times = |call: &str| log.lines().filter(|l| l.starts_with(call)).count();
    assert_eq!(times("nvmlInit_v2"), 1);
    assert_eq!(times("nvmlDeviceGetName"), 8);
    assert_eq!(times("nvmlDeviceGetPcieThroughput"), 0);
    // A tick of one GPU begins with the first call of its gauge.
    let mut per_tick: Vec<usize> = Vec::new();
    for line in log.lines().filter(|l| l.ends_with(" 3")) {
        if line.starts_with("nvmlDeviceGetUtilizationRates") {
            per_tick.push(0);
        }
        if let Some(n) = per_tick.last_mut() {
            *n += 1;
        }
    }
    per_tick.sort_unstable();
    // Eight, and two about processes where a second has passed. Ten of each of eight GPUs and
    // one for all are fewer than the 90 calls a second that watching may cost.
    let usual = per_tick[per_tick.len() / 2];
    assert!(usual <= 10, "{per_tick:?}");
    assert!(per_tick.last() <= Some(&20), "{per_tick:?}");
}
