//! What `--framework` sets, and which framework a job is seen to use; with real ones, as far as
//! their builds go without a GPU.
//!
//! `tests/run` makes the interpreters and names them in `GPUWATCH_TEST_TF_PYTHON`,
//! `GPUWATCH_TEST_TORCH_PYTHON` and `GPUWATCH_TEST_JAX_PYTHON`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use serde_json::Value;
use support::{Job, Sandbox, for_each, provided, python};

/// The lines of `--dry-run` that set something, without their reasons.
fn planned(options: &[&str], prepare: impl Fn(Job) -> Job) -> Vec<String> {
    let sandbox = Sandbox::new();
    let options = [&["--dry-run"], options].concat();
    let ended = prepare(sandbox.watched(&options, &["true"])).run();
    ended.assert_ok();
    let set = ended.out();
    let set = set.lines().filter_map(|line| line.strip_prefix("set: "));
    let plain = |line: &str| line.split_once("  (").unwrap().0.to_owned();
    set.map(plain)
        .filter(|line| !line.starts_with("GPUWATCH_") && !line.starts_with("PYTHONUNBUFFERED"))
        .collect()
}

const RUN: &str = "<directory of the runs>/<id>";

#[test]
fn a_framework_sets_what_helps_it_and_no_more() {
    let as_is = |job| job;
    let growth = "TF_FORCE_GPU_ALLOW_GROWTH=true";
    let fault = "PYTHONFAULTHANDLER=1";
    assert_eq!(planned(&[], as_is), [growth]);
    let set = planned(&["--framework", "tensorflow"], as_is);
    assert_eq!(set, [fault, growth]);
    let set = planned(&["--framework", "JAX"], as_is);
    assert_eq!(set, [fault, growth, "XLA_PYTHON_CLIENT_PREALLOCATE=false"]);
    let set = planned(&["--framework", "pytorch"], as_is);
    let wanted = [
        "NCCL_DEBUG=WARN",
        &format!("NCCL_DEBUG_FILE={RUN}/nccl-%h-%p.log"),
        fault,
        growth,
        "TORCH_FR_BUFFER_SIZE=2000",
        &format!("TORCH_FR_DUMP_TEMP_FILE={RUN}/flight-recorder-"),
        "TORCH_NCCL_DUMP_ON_TIMEOUT=1",
    ];
    assert_eq!(set, wanted);
    // Without a record there is no place for these files.
    let set = planned(&["--framework", "pytorch", "--no-record"], as_is);
    assert_eq!(set, [fault, growth, "TORCH_FR_BUFFER_SIZE=2000"]);
    let set = planned(&["--framework", "jax", "--no-env"], as_is);
    assert_eq!(set, [""; 0]);
}

#[test]
fn what_is_set_already_stays() {
    let set = planned(&["--framework", "jax"], |job| {
        job.env("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
            .env("PYTHONFAULTHANDLER", "")
            .env("TF_FORCE_GPU_ALLOW_GROWTH", "false")
    });
    assert_eq!(set, [""; 0]);
    // Whoever wants NCCL's words on the terminal gets them there.
    let set = planned(&["--framework", "pytorch"], |job| {
        job.env("NCCL_DEBUG", "INFO")
    });
    assert!(!set.iter().any(|line| line.starts_with("NCCL")), "{set:?}");
}

#[test]
fn a_variable_or_a_profile_can_name_it() {
    let jax = "XLA_PYTHON_CLIENT_PREALLOCATE=false".to_owned();
    let set = planned(&[], |job| job.env("GPUWATCH_FRAMEWORK", "jax"));
    assert!(set.contains(&jax), "{set:?}");
    assert!(planned(&["--profile", "jax"], |job| job).contains(&jax));
    let set = planned(&["--profile", "jax", "--framework", "tensorflow"], |job| {
        job
    });
    assert!(!set.contains(&jax), "the flag goes before it: {set:?}");
    let none = planned(&[], |job| job.env("GPUWATCH_FRAMEWORK", ""));
    assert_eq!(none, ["TF_FORCE_GPU_ALLOW_GROWTH=true"]);
    let set = planned(&["--profile", "pytorch"], |job| {
        job.env("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64")
    });
    let ours = |line: &String| line.contains("ALLOC_CONF");
    assert!(
        !set.iter().any(ours),
        "the user's is under its older name: {set:?}"
    );
}

#[test]
fn a_profile_has_variables_of_its_own_for_a_framework() {
    let sandbox = Sandbox::new();
    let text = "env: {framework: jax, frameworks: {jax: {XLA_FLAGS: --xla_x, LOG: '{run_dir}/x'}}}";
    std::fs::write(sandbox.path("gpuwatch.yaml"), text).unwrap();
    let look = "import os; print(os.environ['XLA_FLAGS'], os.environ['LOG'])";
    let ended = sandbox.watched(&["-q"], &[python(), "-c", look]).run();
    let record = sandbox.record();
    let folder = record.folder.display();
    assert_eq!(ended.assert_ok().out(), format!("--xla_x {folder}/x\n"));
    let json = record.json();
    assert_eq!(
        json["env"]["XLA_FLAGS"]["why"],
        "framework jax, profile gpuwatch.yaml"
    );
    assert_eq!(json["framework"], "jax");
    let said = &record.events_of("framework")[0];
    assert_eq!(said["why"], "profile gpuwatch.yaml");
    for wrong in [
        "env: {framework: jaxx}",
        "env: {frameworks: {pytroch: {A: x}}}",
    ] {
        std::fs::write(sandbox.path("gpuwatch.yaml"), wrong).unwrap();
        let ended = sandbox.watched(&[], &["touch", "started"]).run();
        assert_eq!(ended.code(), Some(125));
        assert!(ended.err().contains("did you mean"), "{}", ended.err());
        assert!(!sandbox.path("started").exists());
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest() {
    let cases = [
        ("pytroch", "did you mean 'pytorch'?"),
        ("torch", "did you mean 'pytorch'?"),
        ("tf", "did you mean 'tensorflow'?"),
        ("caffe", "known are tensorflow, pytorch, jax"),
    ];
    for_each(&cases, |(name, cure)| {
        let sandbox = Sandbox::new();
        let job = sandbox.watched(&["--framework", name], &["touch", "started"]);
        let by_variable = sandbox.watched(&[], &["touch", "started"]);
        for job in [job, by_variable.env("GPUWATCH_FRAMEWORK", name)] {
            let ended = job.run();
            assert_eq!(ended.code(), Some(125), "{name}");
            let said = ended.err();
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(
                said.contains("--framework") && said.contains(cure),
                "{said}"
            );
            assert!(!sandbox.path("started").exists(), "{name}");
        }
        assert!(support::files_below(&sandbox.runs()).is_empty());
    });
}

/// A program that imports a framework and goes on until that was seen: its record says so.
/// What is seen of the framework in the end: `enough` says of an event `l` that it is that.
fn seen(python: &str, import: &str, enough: &str) -> Value {
    let sandbox = Sandbox::new();
    let wait = "
import json, os, sys, time
events = os.path.join(os.environ['GPUWATCH_RUN_DIR'], 'events.jsonl')
def seen():
    lines = [json.loads(l) for l in open(events).read().split('\\n')[:-1]]
    return [l for l in lines if l['kind'] == 'framework' and ' in ' in l['why'] and ENOUGH]
end = time.time() + 60
while not seen() and time.time() < end:
    time.sleep(0.02)
";
    let code = format!("{import}\n{}", wait.replace("ENOUGH", enough));
    let options = ["-q", "--framework", "tensorflow"];
    let job = sandbox.watched(&options, &[python, "-c", &code]);
    job.env("TF_CPP_MIN_LOG_LEVEL", "3").run().assert_ok();
    let record = sandbox.record();
    let events = record.events_of("framework");
    assert_eq!(events[0]["why"], "--framework", "what was said comes first");
    assert_eq!(record.json()["framework"], events[events.len() - 1]["name"]);
    events[events.len() - 1].clone()
}

#[test]
fn real_pytorch_is_seen() {
    let Some(python) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    // While it is being imported nobody knows yet.
    let found = seen(&python, "import torch", "l['gpu'] is not None");
    assert_eq!(found["name"], "pytorch");
    assert_eq!(found["gpu"], true, "the registry's build has CUDA");
    let why = found["why"].as_str().unwrap();
    assert!(
        why.starts_with("libtorch") && why.contains(" in python3"),
        "{why}"
    );
}

#[test]
fn real_jax_is_seen() {
    let Some(python) = provided("GPUWATCH_TEST_JAX_PYTHON") else {
        return;
    };
    let found = seen(
        &python,
        "import jax.numpy as jnp; jnp.ones(3).sum()",
        "True",
    );
    assert_eq!(found["name"], "jax");
}

#[test]
fn real_tensorflow_is_seen() {
    let Some(python) = provided("GPUWATCH_TEST_TF_PYTHON") else {
        return;
    };
    let found = seen(&python, "import tensorflow", "True");
    assert_eq!(found["name"], "tensorflow");
}

/// What is set for it does it no harm: it prints the same as without.
#[test]
fn real_frameworks_take_what_is_set() {
    let cases = [
        (
            "GPUWATCH_TEST_JAX_PYTHON",
            "jax",
            "import jax, jax.numpy as jnp; print(jax.default_backend(), jnp.arange(10).sum())",
        ),
        (
            "GPUWATCH_TEST_TORCH_PYTHON",
            "pytorch",
            "
import os, torch, torch.distributed as d
where = 'file://' + os.path.abspath('meet-%d' % os.getpid())
d.init_process_group('gloo', rank=0, world_size=1, init_method=where)
x = torch.arange(10.); d.all_reduce(x); print(x.sum()); d.destroy_process_group()",
        ),
        (
            "GPUWATCH_TEST_TF_PYTHON",
            "tensorflow",
            "import tensorflow as tf; print(tf.reduce_sum(tf.range(10)).numpy())",
        ),
    ];
    for (variable, framework, code) in cases {
        let Some(python) = provided(variable) else {
            continue;
        };
        let sandbox = Sandbox::new();
        let words = [
            &python,
            "-W",
            "error::DeprecationWarning:__main__",
            "-c",
            code,
        ];
        let options = ["-q", "--profile", framework, "--mem-limit", "50%"];
        let [direct, watched] = [sandbox.direct(&words), sandbox.watched(&options, &words)]
            .map(|job| job.env("TF_CPP_MIN_LOG_LEVEL", "3").run());
        assert_eq!(watched.assert_ok().out(), direct.assert_ok().out());
        let warned = |text: &str| text.matches("deprecated").count();
        assert_eq!(warned(&watched.err()), warned(&direct.err()), "{framework}");
        assert!(!watched.err().contains("gpuwatch"), "{}", watched.err());
    }
}
