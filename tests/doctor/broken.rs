//! Set-ups that are broken on purpose, one thing each.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::environment::{Environment, Setup};
use super::support::no_answer::NoAnswer;
use super::support::{FakeDriver, Job, alive, provided, wait_until};
use super::{only, wrong};

const TRAIN: [&str; 4] = ["--json", "--", "python", "train.py"];

fn on(driver: &serde_json::Value) -> Setup {
    let environment = Environment::torch("2.9.0", Some("12.8"), &["libcudart.so.12"]);
    Setup::of(environment, FakeDriver::new(driver))
}

#[test]
fn tensorflow_for_the_cpu() {
    let Some(python) = provided("GPUWATCH_TEST_TF_PYTHON") else {
        return;
    };
    let setup = Setup::new();
    let job = setup.doctor(&["--json", "--", &python, "-m", "train"]);
    only(
        &job,
        "TensorFlow",
        "tensorflow-cpu 2.",
        "tensorflow[and-cuda]",
    );
}

#[test]
fn pytorch_for_the_cpu() {
    let setup = Setup::of(
        Environment::torch("2.9.0+cpu", None, &[]),
        FakeDriver::new(&json!({"gpus": [{}]})),
    );
    only(
        &setup.doctor(&TRAIN),
        "PyTorch",
        "torch 2.9.0+cpu",
        "-m pip install torch",
    );
    // From a package that doesn't say it in its version.
    let setup = Setup::of(
        Environment::torch("2.9.0", None, &[]),
        FakeDriver::new(&json!({"gpus": [{}]})),
    );
    only(
        &setup.doctor(&TRAIN),
        "PyTorch",
        "version.py has no CUDA",
        "-m pip install torch",
    );
}

#[test]
fn a_real_pytorch_is_read_right() {
    let Some(python) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    let setup = Setup::new();
    let ended = setup.doctor(&["--json", "--", &python, "train.py"]).run();
    assert_eq!(ended.code(), Some(0), "{:?}", wrong(&ended));
    assert!(
        ended.out().contains("is built for CUDA 13"),
        "{}",
        ended.out()
    );
    assert!(ended.out().contains("libcudnn.so.9"), "{}", ended.out());
}

#[test]
fn jax_without_its_plugin() {
    let Some(python) = provided("GPUWATCH_TEST_JAX_PYTHON") else {
        return;
    };
    let setup = Setup::new();
    let job = setup.doctor(&["--json", "--", &python, "-m", "train"]);
    only(&job, "JAX", "no CUDA plugin", "jax[cuda13]");
}

#[test]
fn hidden_gpus() {
    let setup = Setup::new();
    let name = "CUDA_VISIBLE_DEVICES";
    for (value, found) in [
        ("", "hides every GPU"),
        ("-1", "hides every GPU"),
        ("5", "5 names no device"),
        ("1,1", "names a device twice"),
        ("GPU-", "fits GPUs 0 and 1"),
    ] {
        let job = setup.doctor(&TRAIN).env(name, value);
        only(&job, name, found, "unset");
    }
    let inside = [
        "--json",
        "--",
        "env",
        "CUDA_VISIBLE_DEVICES=",
        "python",
        "train.py",
    ];
    only(&setup.doctor(&inside), name, "hides every GPU", "unset");
}

#[test]
fn a_driver_that_was_upgraded_under_the_kernel() {
    let setup = on(&json!({"gpus": [{}], "faults": [{"call": "nvmlInit_v2", "code": 18}]}));
    let ended = setup.doctor(&TRAIN).run();
    says(
        &wrong(&ended),
        "driver's answer",
        "different versions",
        "reboot",
    );
}

/// That this is among what is wrong.
fn says(wrong: &[(String, String, String)], check: &str, found: &str, cure: &str) {
    let fits =
        |(c, f, u): &(String, String, String)| c == check && f.contains(found) && u.contains(cure);
    assert!(
        wrong.iter().any(fits),
        "{check}, {found}, {cure}: {wrong:?}"
    );
}

#[test]
fn a_driver_that_refuses() {
    for (code, found, cure) in [
        (9, "not loaded", "modprobe nvidia"),
        (4, "no permission", "ls -l /dev/nvidia*"),
        (15, "fallen off the bus", "xid"),
        (999, "could not be initialised", "nvidia-smi"),
    ] {
        let setup = on(&json!({"gpus": [{}], "faults": [{"call": "nvmlInit_v2", "code": code}]}));
        let ended = setup.doctor(&TRAIN).run();
        assert_eq!(ended.code(), Some(1));
        says(&wrong(&ended), "driver's answer", found, cure);
    }
}

#[test]
fn a_driver_that_hangs() {
    let setup = on(&json!({"gpus": [{}], "faults": [{"call": "nvmlInit_v2", "hang": "forever"}]}));
    let ended = setup.doctor(&TRAIN).run();
    assert_eq!(ended.code(), Some(1));
    says(&wrong(&ended), "driver's answer", "doesn't answer", "dmesg");
}

#[test]
fn a_driver_without_gpus() {
    let setup = on(&json!({"gpus": []}));
    let ended = setup.doctor(&TRAIN).run();
    says(&wrong(&ended), "GPUs", "no GPU that may be used", "gpu");
}

#[test]
fn no_library_and_one_that_is_none() {
    let setup = Setup::new();
    let library = "GPUWATCH_NVML_LIBRARY";
    let text = setup.sandbox.path("train.py");
    for file in [Path::new("/no/such/library.so"), &text] {
        let ended = setup.doctor(&TRAIN).env(library, file).run();
        let said = wrong(&ended);
        says(
            &said,
            "driver's answer",
            "can't be loaded",
            "libnvidia-ml.so.1",
        );
        says(&said, "driver's answer", file.to_str().unwrap(), "");
    }
}

#[test]
fn no_python() {
    let setup = Setup::new();
    let empty = setup.sandbox.path("empty");
    fs::create_dir(&empty).unwrap();
    let without = |args: &[&str]| setup.doctor(args).env("PATH", &empty);
    only(
        &without(&TRAIN),
        "interpreter",
        "python isn't found",
        "activate",
    );
    only(
        &without(&["--json"]),
        "interpreter",
        "no python in PATH",
        "activate",
    );
    let gone = ["--json", "--", "./gone/bin/python", "train.py"];
    only(
        &setup.doctor(&gone),
        "interpreter",
        "./gone/bin/python isn't found",
        "path",
    );
}

#[test]
fn a_script_whose_interpreter_is_gone() {
    let setup = Setup::new();
    setup
        .environment
        .program("tool", "#!/no/such/venv/bin/python\n");
    let job = setup.doctor(&["--json", "--", "tool"]);
    only(
        &job,
        "interpreter",
        "/no/such/venv/bin/python",
        "make it again",
    );
    let job = setup.doctor(&["--json", "--", "./train.py"]);
    only(&job, "interpreter", "can't be executed", "chmod +x");
}

#[test]
fn an_interpreter_that_hangs_is_killed() {
    let setup = Setup::new();
    let pid = setup.sandbox.path("pid");
    let text = format!("#!/bin/sh\necho $$ >{}\nsleep 1000\n", pid.display());
    setup.environment.program("python", &text);
    only(
        &setup.doctor(&TRAIN),
        "interpreter",
        "was killed",
        "sitecustomize",
    );
    let pid: i32 = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    wait_until("it has ended", || !alive(pid));
}

#[test]
fn an_interpreter_that_does_not_start() {
    let setup = Setup::new();
    setup.environment.program(
        "python",
        "#!/bin/sh\necho 'no module named encodings' >&2\nexit 1\n",
    );
    only(
        &setup.doctor(&TRAIN),
        "interpreter",
        "no module named encodings",
        "PYTHONHOME",
    );
}

#[test]
fn tensorflow_that_hides_its_warnings() {
    let environment = Environment::empty();
    environment.package("tensorflow", "2.20.0", "");
    for library in ["libcudart.so.12", "libcudnn.so.9"] {
        environment.put(&format!("site/nvidia/made_up/lib/{library}"), "");
    }
    let setup = Setup::of(environment, FakeDriver::new(&json!({"gpus": [{}]})));
    fs::write(setup.sandbox.path("train.py"), "import tensorflow as tf\n").unwrap();
    let level = "TF_CPP_MIN_LOG_LEVEL";
    assert_eq!(setup.doctor(&TRAIN).env(level, "1").run().code(), Some(0));
    only(
        &setup.doctor(&TRAIN).env(level, "2"),
        level,
        "hides the warnings",
        "unset",
    );
}

#[test]
fn a_tensorflow_whose_libraries_are_missing() {
    let environment = Environment::empty();
    environment.package("tensorflow", "2.20.0", "");
    let setup = Setup::of(environment, FakeDriver::new(&json!({"gpus": [{}]})));
    fs::write(setup.sandbox.path("train.py"), "import tensorflow as tf\n").unwrap();
    only(
        &setup.doctor(&TRAIN),
        "TensorFlow",
        "libcudnn.so.9",
        "tensorflow[and-cuda]",
    );
}

/// With other mounts than ours; None, and said, where only root can.
fn mounted(job: &Job, mounts: &str) -> Option<Job> {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can mount");
        return None;
    }
    let script = format!("{mounts} && exec \"$@\"");
    Some(
        job.clone()
            .under(&["unshare", "-m", "sh", "-c", &script, "sh"]),
    )
}

#[test]
fn a_tiny_shared_memory() {
    let setup = Setup::new();
    let job = setup.doctor(&TRAIN);
    if let Some(job) = mounted(&job, "mount -t tmpfs -o size=1m tmpfs /dev/shm") {
        only(&job, "/dev/shm", "it has 1 MiB", "num_workers=0");
    }
}

#[test]
fn a_full_disk() {
    let setup = Setup::new();
    let full = setup.sandbox.path("full");
    fs::create_dir(&full).unwrap();
    let job = setup.doctor(&TRAIN).env("TMPDIR", &full);
    let mount = format!(
        "mount -t tmpfs -o size=1m tmpfs {0} && ! cat /dev/zero >{0}/zeros 2>/dev/null",
        full.display()
    );
    if let Some(job) = mounted(&job, &mount) {
        only(&job, "TMPDIR", "0 MiB are free", "remove or move");
    }
}

#[test]
fn a_file_system_that_does_not_answer() {
    let Some(dead) = NoAnswer::mount() else {
        return;
    };
    let setup = Setup::new();
    let job = setup.doctor(&TRAIN).env("TMPDIR", dead.file());
    only(&job, "TMPDIR", "doesn't answer", "another directory");
}
