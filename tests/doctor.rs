//! `gpuwatch doctor`: each broken set-up is named with its cure, and a sound one is silent.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "doctor/broken.rs"]
mod broken;
#[path = "doctor/environment.rs"]
mod environment;
mod support;

use environment::{Environment, Setup};
use serde_json::{Value, json};
use support::{Ended, FakeDriver, Job, Sandbox};

/// The checks of a `--json` answer.
fn checks(ended: &Ended) -> Vec<Value> {
    let document: Value = serde_json::from_str(&ended.out())
        .unwrap_or_else(|e| panic!("{e}: {}{}", ended.out(), ended.err()));
    assert_eq!(document["schema"], 1);
    document["checks"].as_array().unwrap().clone()
}

/// What isn't fine, of them: name, what was found, what to do.
fn wrong(ended: &Ended) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let is_wrong = |c: &&Value| c["state"] == "bad" || c["state"] == "warning";
    checks(ended)
        .iter()
        .filter(is_wrong)
        .map(|c| (text(&c["check"]), text(&c["found"]), text(&c["cure"])))
        .collect()
}

/// That nothing is wrong but this, which is found in these words and has this cure.
fn only(job: &Job, check: &str, found: &str, cure: &str) {
    let ended = job.run();
    let wrong = wrong(&ended);
    let of_it: Vec<_> = wrong.iter().filter(|(name, ..)| name == check).collect();
    assert_eq!(of_it.len(), 1, "{check}: {wrong:?}");
    assert_eq!(wrong.len(), 1, "nothing but {check}: {wrong:?}");
    assert!(of_it[0].1.contains(found), "{found}: {of_it:?}");
    assert!(of_it[0].2.contains(cure), "{cure}: {of_it:?}");
    assert_eq!(ended.code(), Some(1), "{}", ended.err());
    assert_eq!(ended.err(), "");
}

#[test]
fn a_sound_set_up_is_silent() {
    let setup = Setup::new();
    let ended = setup.doctor(&["--", "python", "train.py"]).run();
    assert_eq!(ended.out(), "", "{}", ended.err());
    assert_eq!(ended.err(), "");
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn asked_for_it_lists_what_it_looked_at() {
    let setup = Setup::new();
    let ended = setup.doctor(&["-v", "--", "python", "train.py"]).run();
    assert_eq!(ended.code(), Some(0));
    for looked_at in [
        "the working directory",
        "CUDA_VISIBLE_DEVICES",
        "Python 3.",
        "torch 2.9.0",
        "/dev/shm",
        "A100",
    ] {
        let looked_at = looked_at.trim_start_matches("the ");
        assert!(
            ended.out().contains(looked_at),
            "{looked_at}: {}",
            ended.out()
        );
    }
    assert!(
        ended.out().ends_with("checks are fine\n"),
        "{}",
        ended.out()
    );
    assert!(!ended.out().contains('\x1b'), "no colour in a pipe");
    let all = checks(&setup.doctor(&["--json", "--", "python", "train.py"]).run());
    assert_eq!(
        ended.out().lines().filter(|l| !l.starts_with("  ")).count(),
        all.len() + 1
    );
    for check in &all {
        let keys: Vec<&str> = check
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(keys, ["check", "state", "found", "cure"]);
    }
}

#[test]
fn a_terminal_gets_colour_unless_it_wants_none() {
    let setup = Setup::new();
    let job = setup
        .doctor(&["--", "python", "train.py"])
        .env("CUDA_VISIBLE_DEVICES", "");
    let ended = job.run_on_terminal();
    assert!(ended.out().contains("\x1b[31mbad"), "{}", ended.out());
    let ended = job.env("NO_COLOR", "1").run_on_terminal();
    assert!(ended.out().contains("bad"), "{}", ended.out());
    assert!(!ended.out().contains('\x1b'), "{}", ended.out());
}

#[test]
fn what_is_wrong_is_a_line_with_its_cure_below() {
    let setup = Setup::new();
    let ended = setup
        .doctor(&["--", "python", "train.py"])
        .env("CUDA_VISIBLE_DEVICES", "")
        .run();
    let out = ended.out();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("bad      CUDA_VISIBLE_DEVICES: "),
        "{lines:?}"
    );
    assert!(lines[1].contains("unset CUDA_VISIBLE_DEVICES"), "{lines:?}");
    assert_eq!(ended.code(), Some(1));
}

#[test]
fn wrong_usage_is_one_line_and_two() {
    let sandbox = Sandbox::new();
    let ended = sandbox.gpuwatch(&["doctor", "--nonsense"]).run();
    assert_eq!(ended.code(), Some(2));
    assert_eq!(ended.err().lines().count(), 1, "{}", ended.err());
    assert_eq!(ended.out(), "");
}

#[test]
fn nothing_is_imported_and_nothing_is_written() {
    let setup = Setup::new();
    let before = setup.environment.files();
    let ended = setup.doctor(&["--", "python", "train.py"]).run();
    ended.assert_ok();
    // The made-up package would leave a mark.
    assert!(!setup.sandbox.path("imported").exists());
    assert_eq!(setup.environment.files(), before);
    let inside: Vec<_> = std::fs::read_dir(setup.sandbox.path("."))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(inside, ["train.py"]);
    assert!(
        !setup.sandbox.runs().parent().unwrap().exists(),
        "no state directory was made"
    );
}

#[test]
fn asked_to_it_imports_and_believes_the_framework() {
    let setup = Setup::new();
    let import = ["--import", "--json", "--", "python", "train.py"];
    let ended = setup.doctor(&import).env("MADE_UP_GPUS", "2").run();
    let all = checks(&ended);
    let told = all.iter().find(|c| c["check"] == "import").unwrap();
    assert_eq!(told["state"], "ok", "{told}");
    assert!(
        told["found"].as_str().unwrap().contains("made up 1"),
        "{told}"
    );
    assert_eq!(ended.code(), Some(0));
    assert!(setup.sandbox.path("imported").exists());
    only(
        &setup.doctor(&import).env("MADE_UP_GPUS", "0"),
        "import",
        "CUDA unknown error: made up",
        "the cause",
    );
}

#[test]
fn a_busy_gpu_is_said_where_no_other_is_free() {
    let setup = Setup::new();
    let mine = std::process::id();
    let busy = json!({"processes": [{"pid": mine, "mem_mib": 9000, "sm": 50}]});
    setup.driver.set(&json!({"gpus": [busy, {}]}));
    let job = setup.doctor(&["--json", "--", "python", "train.py"]);
    assert_eq!(job.run().code(), Some(0), "another one is free");
    only(
        &job.env("CUDA_VISIBLE_DEVICES", "0"),
        "free GPUs",
        "GPU 0",
        "--wait",
    );
}

#[test]
fn a_framework_that_the_script_does_not_name_does_not_count() {
    let setup = Setup::new();
    setup.environment.package("jax", "0.7.0", "");
    let job = setup.doctor(&["--json", "--", "python", "train.py"]);
    assert_eq!(job.run().code(), Some(0), "{:?}", wrong(&job.run()));
    std::fs::write(setup.sandbox.path("train.py"), "import jax\n").unwrap();
    only(&job, "JAX", "no CUDA plugin", "jax[cuda13]");
}

#[test]
fn a_driver_too_old_for_the_framework_is_named() {
    let environment = Environment::torch("2.9.0", Some("12.8"), &["libcudart.so.12"]);
    let old = FakeDriver::new(&json!({"driver": "470.82.01", "cuda": 11040, "gpus": [{}]}));
    let setup = Setup::of(environment, old);
    only(
        &setup.doctor(&["--json", "--", "python", "train.py"]),
        "PyTorch",
        "needs CUDA 12 and so driver 525.60.13",
        "update the driver",
    );
}
