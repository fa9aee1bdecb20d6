//! What the command's environment gains, and what it never loses.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::BTreeMap;

use support::{Job, Sandbox, python};

/// The environment that a command sees, by way of its own eyes.
fn seen_by(job: &Job) -> BTreeMap<String, String> {
    let ended = job.run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    parse(&ended.out())
}

fn parse(printed: &str) -> BTreeMap<String, String> {
    printed
        .split('\0')
        .filter_map(|entry| entry.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// What the watched environment has beyond or unlike the direct one.
fn gained(options: &[&str], prepare: impl Fn(Job) -> Job) -> BTreeMap<String, String> {
    let sandbox = Sandbox::new();
    let look = ["env", "-0"];
    let direct = seen_by(&prepare(sandbox.direct(&look)));
    let mut watched = seen_by(&prepare(sandbox.watched(options, &look)));
    for name in direct.keys() {
        assert!(watched.contains_key(name), "{name} is gone");
    }
    watched.retain(|name, value| direct.get(name) != Some(value));
    watched
}

#[test]
fn only_documented_names_are_added() {
    let added = gained(&["-q"], |job| job);
    let names: Vec<_> = added.keys().map(String::as_str).collect();
    let wanted = [
        "GPUWATCH_PROGRESS",
        "GPUWATCH_RUN_DIR",
        "GPUWATCH_RUN_ID",
        "PYTHONUNBUFFERED",
        "TF_FORCE_GPU_ALLOW_GROWTH",
    ];
    assert_eq!(names, wanted, "no GPU is chosen where there is no driver");
    assert_eq!(added["TF_FORCE_GPU_ALLOW_GROWTH"], "true");
    assert_eq!(added["PYTHONUNBUFFERED"], "1");
    let folder = std::path::Path::new(&added["GPUWATCH_RUN_DIR"]);
    assert_eq!(
        folder.file_name().unwrap().to_str().unwrap(),
        added["GPUWATCH_RUN_ID"]
    );
}

#[test]
fn what_the_user_set_stays() {
    let set = |job: Job| {
        job.env("TF_FORCE_GPU_ALLOW_GROWTH", "false")
            .env("PYTHONUNBUFFERED", "")
            .env("CUDA_VISIBLE_DEVICES", "1")
            .env("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    };
    let added = gained(&["-q"], set);
    for name in [
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "PYTHONUNBUFFERED",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
    ] {
        assert!(!added.contains_key(name), "{name} was changed: {added:?}");
    }
}

#[test]
fn no_gpu_stays_no_gpu() {
    for none in ["", "-1"] {
        let added = gained(&["-q"], |job| job.env("CUDA_VISIBLE_DEVICES", none));
        assert!(!added.contains_key("CUDA_VISIBLE_DEVICES"), "{added:?}");
    }
}

#[test]
fn python_is_unbuffered_through_pipes_alone() {
    let sandbox = Sandbox::new();
    let look = [
        python(),
        "-c",
        "import os; print(os.environ.get('PYTHONUNBUFFERED', 'unset'))",
    ];
    let job = sandbox.watched(&["-q"], &look);
    assert_eq!(job.run().out(), "1\n");
    assert_eq!(job.run_on_terminal().out(), "unset\r\n");
}

#[test]
fn the_users_words_win() {
    let options = [
        "-q",
        "--env",
        "TF_FORCE_GPU_ALLOW_GROWTH=false",
        "--env",
        "OMP_NUM_THREADS=3",
        "--env",
        "EMPTY=",
        "--env",
        "WITH=equals=signs and spaces",
        "--env",
        "LANG=C",
    ];
    let added = gained(&options, |job| job);
    assert_eq!(added["TF_FORCE_GPU_ALLOW_GROWTH"], "false");
    assert_eq!(added["OMP_NUM_THREADS"], "3");
    assert_eq!(added["EMPTY"], "");
    assert_eq!(added["WITH"], "equals=signs and spaces");
    assert_eq!(added["LANG"], "C", "a flag beats what was set before");
}

#[test]
fn the_record_tells_what_was_set_and_why() {
    let sandbox = Sandbox::new();
    let options = ["-q", "--env", "OMP_NUM_THREADS=3"];
    sandbox.watched(&options, &["true"]).run().assert_ok();
    let env = &sandbox.record().json()["env"];
    assert_eq!(env["TF_FORCE_GPU_ALLOW_GROWTH"]["value"], "true");
    assert_eq!(env["OMP_NUM_THREADS"]["value"], "3");
    for (name, entry) in env.as_object().unwrap() {
        assert!(
            !entry["why"].as_str().unwrap().is_empty(),
            "{name} has no reason"
        );
    }
}

#[test]
fn a_dry_run_shows_it_and_starts_nothing() {
    let sandbox = Sandbox::new();
    let options = ["--dry-run", "--env", "OMP_NUM_THREADS=3"];
    let ended = sandbox.watched(&options, &["touch", "touched"]).run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let shown = format!("{}{}", ended.out(), ended.err());
    for part in [
        "TF_FORCE_GPU_ALLOW_GROWTH=true",
        "OMP_NUM_THREADS=3",
        "touch touched",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!sandbox.path("touched").exists());
    let left = support::files_below(&sandbox.runs());
    assert!(left.is_empty(), "no record: {left:?}");
}

#[test]
fn a_dry_run_that_nobody_can_read_is_a_failure() {
    let sandbox = Sandbox::new();
    let full = ["sh", "-c", "exec \"$@\" >/dev/full", "sh"];
    let ended = sandbox
        .watched(&["--dry-run"], &["true"])
        .under(&full)
        .run();
    assert_eq!(ended.code(), Some(125), "{}", ended.err());
    let said = ended.err();
    assert!(said.contains("cannot write what would be set"), "{said}");
}

#[test]
fn bytes_that_are_no_text_pass() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    let odd = OsStr::from_bytes(b"a\xff\xfe\nb");
    let argv = [
        OsStr::new("printf"),
        OsStr::new("%s|%s"),
        odd,
        OsStr::new(""),
    ];
    for job in sandbox.both(&argv) {
        assert_eq!(job.env("ODD", odd).run().out, b"a\xff\xfe\nb|");
    }
    assert_eq!(sandbox.record().json()["argv"][0], "printf");
}

#[test]
fn descriptors_are_the_callers_and_no_more() {
    let sandbox = Sandbox::new();
    let [direct, watched] = sandbox
        .both(&["sh", "-c", "ls /proc/self/fd | tr '\\n' ' '; cat <&7"])
        .map(|job| {
            job.under(&["sh", "-c", "echo passed > given; exec \"$@\" 7<given", "sh"])
                .run()
                .out()
        });
    assert!(direct.ends_with(" 7 passed\n"), "{direct}");
    assert_eq!(watched, direct);
}

#[test]
fn identity_and_limits_are_inherited() {
    let look = "
import os, resource
print(os.getpriority(os.PRIO_PROCESS, 0), os.umask(0o22), os.getcwd() == os.environ['PWD'])
print(sorted(os.sched_getaffinity(0)), os.getsid(0) == os.getsid(os.getppid()))
print(os.getpgrp() == os.getpgid(os.getppid()))
print([resource.getrlimit(getattr(resource, n)) for n in sorted(dir(resource)) if n.startswith('RLIMIT')])
print(open('/proc/self/oom_score_adj').read(), open('/proc/self/timerslack_ns').read())
";
    let sandbox = Sandbox::new();
    let shell = "umask 027; ulimit -n 512; ulimit -c 0; exec nice -n 19 \"$@\"";
    let outs = sandbox.both(&[python(), "-c", look]).map(|job| {
        job.env("PWD", sandbox.path(""))
            .under(&["sh", "-c", shell, "sh"])
            .run()
            .out()
    });
    // 19 is the last, wherever the tests were started from.
    assert!(outs[0].starts_with("19 23 "), "{}", outs[0]);
    assert_eq!(outs[1], outs[0]);
}
