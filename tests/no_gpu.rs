//! On a machine without a GPU or driver everything works, and it is said once what is missing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use support::{Sandbox, in_package};

#[test]
fn the_readmes_first_command_works() {
    let sandbox = Sandbox::new();
    let train = [
        "python3",
        &in_package("examples/train.py"),
        "--epochs",
        "3",
        "--steps",
        "60",
    ];
    let direct = sandbox.direct(&train).run();
    let ended = sandbox.watched(&[], &train).run();
    assert_eq!(ended.assert_ok().out(), direct.out());
    let about: Vec<_> = ended
        .own_lines()
        .into_iter()
        .filter(|l| l.contains("GPU"))
        .collect();
    assert_eq!(about.len(), 1, "said once: {}", ended.err());
    assert!(about[0].contains("no-driver.so"), "and why: {}", about[0]);
    let summary = ended.own_lines();
    assert!(
        summary.iter().any(|l| l.contains("3/3")),
        "the progress reached: {summary:?}"
    );
    let shown = sandbox.gpuwatch(&["show", "last"]).run();
    assert!(shown.assert_ok().out().contains("3/3"), "{}", shown.out());
}

#[test]
fn missing_readings_are_never_zero() {
    let sandbox = Sandbox::new();
    sandbox
        .watched(&["-q", "--interval", "100ms"], &["sleep", "0.5"])
        .run()
        .assert_ok();
    let gpu_columns = [
        "gpu",
        "gpu_util_pct",
        "mem_util_pct",
        "mem_used_mib",
        "mem_total_mib",
        "job_mem_mib",
        "job_sm_pct",
        "temp_c",
        "power_w",
        "power_limit_w",
        "energy_j",
        "sm_clock_mhz",
        "throttle",
        "pcie_mb_s",
        "ecc_uncorrected",
        "sm_active_pct",
        "tensor_active_pct",
        "dram_active_pct",
    ];
    let progress = [
        "epoch",
        "epochs",
        "step",
        "steps",
        "percent",
        "loss",
        "rate",
        "overall_pct",
        "eta_s",
    ];
    let samples = sandbox.record().samples();
    assert!(!samples.is_empty());
    for row in &samples {
        for name in gpu_columns.iter().chain(&progress) {
            assert_eq!(row[*name], "", "{name}");
        }
    }
    let shown = sandbox.gpuwatch(&["show", "last"]).run();
    for impossible in ["0 %", "0.0 %", "0 W", "0.0 W", "0 MiB", "0.0 GiB"] {
        let text = shown.out();
        let as_a_value = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = as_a_value.split(' ').collect::<Vec<_>>();
        let pair: Vec<_> = impossible.split(' ').collect();
        assert!(
            !found.windows(2).any(|w| w == pair),
            "{impossible} in {text}"
        );
    }
}

#[test]
fn gpus_says_that_there_is_no_driver() {
    let sandbox = Sandbox::new();
    let ended = sandbox.gpuwatch(&["gpus"]).run();
    assert_eq!(ended.code(), Some(1), "{}{}", ended.out(), ended.err());
    assert_eq!(ended.err().lines().count(), 1, "{}", ended.err());
    assert!(ended.err().contains("no-driver.so"), "{}", ended.err());
}

#[test]
fn with_no_gpu_asked_for_nothing_is_said_about_gpus() {
    let sandbox = Sandbox::new();
    let ended = sandbox.watched(&["--gpus", "none"], &["true"]).run();
    let about: Vec<_> = ended
        .assert_ok()
        .own_lines()
        .into_iter()
        .filter(|l| l.contains("driver"))
        .collect();
    assert!(about.is_empty(), "the user knows: {about:?}");
}
