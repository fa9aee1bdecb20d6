//! Choosing GPUs and claiming them, among runs that start at once, wait, and are killed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};
use support::{FakeDriver, Live, Sandbox, content, kill};

/// Says which GPUs it was given, and stays until it is told to go.
const STAY: &str = "echo \"$CUDA_VISIBLE_DEVICES\" > \"$0\"; read -r go";

fn eight() -> FakeDriver {
    FakeDriver::new(&json!({"gpus": [{}, {}, {}, {}, {}, {}, {}, {}]}))
}

/// A run that writes its GPUs into this file and stays.
fn stays(sandbox: &Sandbox, driver: &FakeDriver, options: &[&str], file: &str) -> Live {
    let file = sandbox.arg(file);
    let job = sandbox.watched(options, &["sh", "-c", STAY, &file]);
    job.with(driver).start()
}

fn go(mut run: Live) {
    run.send("go\n");
    assert_eq!(run.end().code(), Some(0));
}

/// What a run says that can't have its GPUs.
fn refusal(sandbox: &Sandbox, driver: &FakeDriver, options: &[&str]) -> String {
    let job = sandbox.watched(options, &["touch", "started"]);
    let ended = job.with(driver).run();
    assert_eq!(ended.code(), Some(125), "{options:?}: {}", ended.err());
    assert_eq!(ended.err().lines().count(), 1, "{}", ended.err());
    assert!(!sandbox.path("started").exists(), "{options:?}");
    assert!(support::files_below(&sandbox.runs()).is_empty());
    ended.err()
}

fn gpus(sandbox: &Sandbox, driver: &FakeDriver) -> Value {
    let job = sandbox.gpuwatch(&["gpus", "--json"]).with(driver);
    serde_json::from_str(&job.run().out()).unwrap()
}

/// Eight at once, a few times over, some of them killed in between: use never shows here, so
/// that only claims can keep them apart.
#[test]
fn eight_starts_take_eight_gpus() {
    let (sandbox, driver) = (Sandbox::new(), eight());
    for round in 0..4 {
        let runs: Vec<Live> = (0..8)
            .map(|n| {
                stays(
                    &sandbox,
                    &driver,
                    &["-q", "--gpus", "1"],
                    &format!("gpu-{round}-{n}"),
                )
            })
            .collect();
        let taken: BTreeSet<String> = (0..8)
            .map(|n| content(&sandbox.path(&format!("gpu-{round}-{n}"))))
            .collect();
        assert_eq!(taken.len(), 8, "{taken:?}");
        for (n, run) in runs.into_iter().enumerate() {
            if (n + round) % 2 == 0 {
                go(run);
            } else {
                kill(run.pid(), libc::SIGKILL);
                run.end();
            }
        }
    }
}

#[test]
fn a_killed_runs_gpu_is_free_at_once() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    for n in 0..5 {
        let file = format!("gpu-{n}");
        let run = stays(&sandbox, &driver, &["-q", "--gpus", "1"], &file);
        assert_eq!(content(&sandbox.path(&file)), "0");
        kill(run.pid(), libc::SIGKILL);
        run.end();
    }
}

#[test]
fn a_claim_is_seen_by_others() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{}, {}]}));
    let run = stays(
        &sandbox,
        &driver,
        &["-q", "--gpus", "id:1", "--name", "mine"],
        "gpu",
    );
    assert_eq!(content(&sandbox.path("gpu")), "1");
    let seen = gpus(&sandbox, &driver);
    assert_eq!(
        (&seen["gpus"][0]["state"], &seen["gpus"][0]["claim"]),
        (&json!("free"), &Value::Null)
    );
    let claim = &seen["gpus"][1]["claim"];
    assert_eq!(seen["gpus"][1]["state"], "claimed");
    assert_eq!(claim["pid"], run.pid());
    assert!(claim["run"].as_str().unwrap().contains("-mine-"), "{claim}");
    assert!(
        claim["user"].is_string() && claim["since"].is_string(),
        "{claim}"
    );
    // Without a claim of its own a run takes what nobody has claimed.
    let free = sandbox.watched(&["-q"], &["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"]);
    assert_eq!(free.with(&driver).run().out(), "0\n");
    let second = sandbox
        .watched(&["--gpus", "id:1"], &["true"])
        .with(&driver)
        .run();
    assert_eq!(second.code(), Some(125));
    assert!(
        second.err().contains("GPU 1 is claimed by run "),
        "{}",
        second.err()
    );
    go(run);
    assert_eq!(gpus(&sandbox, &driver)["gpus"][1]["claim"], Value::Null);
}

#[test]
fn who_waits_gets_what_is_freed_and_says_what_for() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let first = stays(&sandbox, &driver, &["-q", "--gpus", "1"], "first");
    content(&sandbox.path("first"));
    let options = ["--no-record", "--gpus", "1", "--wait"];
    let second = stays(&sandbox, &driver, &options, "second");
    second.wait_for_err("waiting for a GPU: no GPU is free (GPU 0 is claimed by run ");
    assert!(!sandbox.path("second").exists());
    go(first);
    assert_eq!(content(&sandbox.path("second")), "0");
    go(second);
}

#[test]
fn who_waits_longest_is_first() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let mut holder = stays(&sandbox, &driver, &["-q", "--gpus", "1"], "0");
    content(&sandbox.path("0"));
    let mut line = Vec::new();
    for n in 1..4 {
        let run = stays(
            &sandbox,
            &driver,
            &["--gpus", "1", "--wait"],
            &n.to_string(),
        );
        run.wait_for_err("waiting for a GPU");
        line.push(run);
    }
    for (n, run) in line.into_iter().enumerate() {
        go(holder);
        assert_eq!(content(&sandbox.path(&(n + 1).to_string())), "0");
        let later = (n + 2..4).any(|later| sandbox.path(&later.to_string()).exists());
        assert!(!later, "run {n} was overtaken");
        holder = run;
    }
    go(holder);
}

#[test]
fn waiting_ends_in_time_and_by_a_signal() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let holder = stays(&sandbox, &driver, &["-q", "--gpus", "1"], "gpu");
    content(&sandbox.path("gpu"));
    let records = || std::fs::read_dir(sandbox.runs()).unwrap().count();
    let before = records();
    let late = sandbox.watched(&["-q", "--gpus", "1", "--wait", "1s"], &["true"]);
    let ended = late.with(&driver).run();
    assert_eq!(ended.code(), Some(125));
    assert!(
        ended.err().contains("after waiting for 1s"),
        "{}",
        ended.err()
    );
    // A dry run says what is so, and waits for nothing.
    let dry = ["--dry-run", "--gpus", "1", "--wait"];
    let ended = sandbox.watched(&dry, &["true"]).with(&driver).run();
    assert_eq!(ended.code(), Some(125));
    assert!(ended.err().contains("GPU 0 is claimed"), "{}", ended.err());
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let waits = stays(&sandbox, &driver, &["--gpus", "1", "--wait"], "never");
        waits.wait_for_err("waiting for a GPU");
        waits.signal(signal);
        assert_eq!(waits.end().signal(), Some(signal));
    }
    assert_eq!(records(), before, "no record stays");
    go(holder);
}

#[test]
fn busy_is_whoever_holds_memory_and_what_nobody_explains() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [
        {"memory_mib": 16_384, "base_mib": 15_073},
        {"base_mib": 900},
        {"graphics": [{"pid": 1, "mem_mib": 300}], "base_mib": 0},
        {},
    ]}));
    driver.hold(std::process::id(), 3, 2048, 0);
    let free = sandbox.watched(
        &["--gpus", "free"],
        &["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"],
    );
    let ended = free.with(&driver).run();
    assert_eq!(ended.out(), "1,2\n");
    let said = ended.err();
    assert!(
        said.contains("GPU 0 is busy: 14.7 GiB are in use by nobody that can be seen"),
        "{said}"
    );
    assert!(
        said.contains("GPU 3 is busy: claims-") && said.contains("holds 2.0 GiB"),
        "{said}"
    );
}

#[test]
fn a_wish_is_narrowed_by_memory_type_and_what_is_allowed() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [
        {"name": "Tesla T4", "memory_mib": 15_360},
        {"name": "NVIDIA A100-SXM4-80GB"},
        {"name": "NVIDIA A100-SXM4-80GB", "base_mib": 900},
    ]}));
    let given = |options: &[&str], allowed: Option<&str>| {
        let mut words = vec!["-q"];
        words.extend(options);
        let job = sandbox.watched(
            &words,
            &["sh", "-c", "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"],
        );
        let mut job = job.with(&driver);
        if let Some(allowed) = allowed {
            job = job.env("CUDA_VISIBLE_DEVICES", allowed);
        }
        job.run().assert_ok().out().trim().to_owned()
    };
    assert_eq!(given(&["--gpus", "1"], None), "0 PCI_BUS_ID");
    assert_eq!(
        given(&["--gpus", "auto", "--gpu-type", "a100"], None),
        "1 PCI_BUS_ID"
    );
    assert_eq!(
        given(&["--gpus", "1", "--min-free", "79.5GiB"], None),
        "1 PCI_BUS_ID"
    );
    assert_eq!(
        given(&["--gpus", "2", "--gpu-type", "A100*80GB"], None),
        "1,2 PCI_BUS_ID"
    );
    assert_eq!(given(&["--gpus", "id:2,0"], None), "2,0 PCI_BUS_ID");
    assert_eq!(given(&["--gpus", "1"], Some("2,1")), "2 PCI_BUS_ID");
    // What somebody set stays, unless --gpus narrows it.
    assert_eq!(given(&[], Some("2,1")), "2,1");
    assert_eq!(given(&["--min-free", "1GiB"], Some("2,1")), "2,1");
}

/// CUDA counts by another order than the driver: the chosen one must be the one that is got.
#[test]
fn another_order_of_devices_is_answered_with_uuids() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [
        {"uuid": "GPU-slow", "name": "Tesla T4", "base_mib": 4000},
        {"uuid": "GPU-fast", "name": "NVIDIA A100-SXM4-80GB"},
    ]}));
    let show = "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER";
    let given = |order: Option<&str>| {
        let job = sandbox.watched(&["-q", "--gpus", "1"], &["sh", "-c", show]);
        let mut job = job.with(&driver);
        if let Some(order) = order {
            job = job.env("CUDA_DEVICE_ORDER", order);
        }
        job.run().assert_ok().out().trim().to_owned()
    };
    assert_eq!(given(None), "1 PCI_BUS_ID");
    assert_eq!(given(Some("PCI_BUS_ID")), "1 PCI_BUS_ID");
    assert_eq!(given(Some("FASTEST_FIRST")), "GPU-fast FASTEST_FIRST");
}

#[test]
fn a_value_that_ends_early_passes_as_it_is_and_is_warned_about() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{"uuid": "GPU-aa11"}, {"uuid": "GPU-aa22"}]}));
    for (value, said) in [
        ("GPU-aa2", None),
        (
            "GPU-aa",
            Some("CUDA_VISIBLE_DEVICES=GPU-aa: GPU-aa fits GPUs 0 and 1"),
        ),
        ("1,9", Some("9 names no device")),
    ] {
        let job = sandbox.watched(
            &["--no-record"],
            &["sh", "-c", "echo \"$CUDA_VISIBLE_DEVICES\"; sleep 1"],
        );
        let ended = job.with(&driver).env("CUDA_VISIBLE_DEVICES", value).run();
        assert_eq!(ended.out().trim(), value);
        match said {
            Some(said) => assert!(ended.err().contains(said), "{}", ended.err()),
            None => assert!(
                !ended.err().contains("CUDA_VISIBLE_DEVICES"),
                "{}",
                ended.err()
            ),
        }
    }
}

#[test]
fn what_can_not_be_had_is_refused_in_one_line() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [
        {"uuid": "GPU-aa11", "memory_mib": 1000},
        {"uuid": "GPU-aa22", "memory_mib": 1000},
    ]}));
    for (options, said) in [
        (&["--gpus", "3"][..], "--gpus 3: there are 2 GPUs"),
        (&["--gpus", "3", "--wait"], "--gpus 3: there are 2 GPUs"),
        (&["--gpus", "id:7"], "there is no GPU 7: there are 0, 1"),
        (
            &["--gpus", "id:GPU-aa"],
            "GPU-aa fits GPU 0 and GPU 1: write more of it",
        ),
        (&["--gpus", "id:GPU-zz"], "there is no device GPU-zz"),
        (&["--gpus", "0,1"], "write id:0,1"),
        (&["--gpus", "0"], "write none for no GPU, id:0 for GPU 0"),
        (
            &["--gpus", "many"],
            "'many' won't do: write free, auto, none, a count",
        ),
        (
            &["--gpus", "1", "--min-free", "8GB"],
            "--min-free: '8GB' has the unknown unit 'GB'",
        ),
        (
            &["--gpus", "1", "--min-free", "2GiB"],
            "GPU 0 has 1000 MiB in all",
        ),
        (
            &["--gpus", "1", "--gpu-type", "H100"],
            "there is no GPU that fits (GPU 0 is NVIDIA A100",
        ),
        (
            &["--gpus", "1", "--wait", "soon"],
            "--wait: 'soon' is not a duration",
        ),
    ] {
        let got = refusal(&sandbox, &driver, options);
        assert!(got.contains(said), "{options:?}: {got}");
    }
}

#[test]
fn a_directory_of_claims_that_is_unsafe_is_refused() {
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let (plain, link) = (sandbox.path("plain"), sandbox.path("link"));
    std::fs::create_dir(&plain).unwrap();
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink(&plain, &link).unwrap();
    for (claims, said) in [(&plain, "is not sticky"), (&link, "is a link")] {
        let job = |options: &[&str]| {
            let job = sandbox.watched(options, &["echo", "ran"]).with(&driver);
            job.env("GPUWATCH_CLAIMS", claims).run()
        };
        let refused = job(&["--gpus", "1"]);
        assert_eq!(refused.code(), Some(125));
        assert!(refused.err().contains(said), "{}", refused.err());
        assert_eq!(refused.out(), "");
        // What nobody asked for stands in nobody's way.
        let default = job(&[]);
        assert_eq!((default.code(), default.out().as_str()), (Some(0), "ran\n"));
        assert!(
            default.err().contains("claims are not seen"),
            "{}",
            default.err()
        );
    }
    assert!(std::fs::read_dir(&plain).unwrap().next().is_none());
}

#[test]
fn inside_a_run_its_gpus_are_given() {
    let (sandbox, driver) = (Sandbox::new(), eight());
    let gpuwatch = env!("CARGO_BIN_EXE_gpuwatch");
    let inner =
        "echo $CUDA_VISIBLE_DEVICES; \"$0\" run -q --gpus 1 -- sh -c 'echo $CUDA_VISIBLE_DEVICES'";
    // Whether the inner one was told of the outer one (by the record's variables) or not.
    for options in [
        &["-q", "--gpus", "2"][..],
        &["-q", "--gpus", "2", "--no-record"],
    ] {
        let outer = sandbox.watched(options, &["sh", "-c", inner, gpuwatch]);
        let ended = outer.with(&driver).run();
        assert_eq!(ended.assert_ok().out(), "0,1\n0\n", "{options:?}");
    }
}

/// Everybody's directory, whoever made the files in it (`fs.protected_regular` looks at that).
#[test]
fn every_user_can_claim() {
    if !nix::unistd::Uid::effective().is_root() {
        return eprintln!("skipped: only root can become another user");
    }
    let (sandbox, driver) = (Sandbox::new(), eight());
    let open = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let put = |from: &std::path::Path, name: &str| {
        let to = open.path().join(name);
        support::copy_program(from, &to);
        to
    };
    let gpuwatch = put(env!("CARGO_BIN_EXE_gpuwatch").as_ref(), "gpuwatch");
    let library = put(support::fake_driver::library(), "libnvidia-ml.so.1");
    let scenario = put(&driver.scenario(), "scenario.json");
    let start = |user: &str| {
        let options = [
            "run",
            "--no-record",
            "--gpus",
            "1",
            "--",
            "sh",
            "-c",
            "echo $CUDA_VISIBLE_DEVICES; read -r go",
        ];
        let words = [gpuwatch.to_str().unwrap()].into_iter().chain(options);
        let reuid = format!("--reuid={user}");
        let job = sandbox
            .direct(&words.collect::<Vec<_>>())
            .under(&["setpriv", &reuid, "--regid=65534", "--clear-groups"])
            .env("GPUWATCH_CLAIMS", open.path().join("claims"))
            .env("GPUWATCH_NVML_LIBRARY", &library)
            .env("FAKE_NVML_SCENARIO", &scenario)
            .cwd(open.path());
        job.start()
    };
    std::fs::create_dir(open.path().join("claims")).unwrap();
    std::fs::set_permissions(
        open.path().join("claims"),
        std::fs::Permissions::from_mode(0o1777),
    )
    .unwrap();
    for _ in 0..2 {
        // The second time the files are there, and each is another user's.
        let (first, second) = (start("65533"), start("65532"));
        let mut got = [&first, &second].map(|run| {
            run.wait_for_out("\n");
            run.out_so_far().trim().to_owned()
        });
        got.sort();
        assert_eq!(got, ["0", "1"]);
        go(second);
        go(first);
    }
}
