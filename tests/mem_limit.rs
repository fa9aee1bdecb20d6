//! `--mem-limit`: what JAX, TensorFlow and PyTorch are told, and that Python starts as before.
//!
//! The frameworks are real; the GPUs are not, so what is checked is what their own interfaces
//! were asked for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use support::{Ended, FakeDriver, Job, Sandbox, for_each, provided, python, script};

/// What is peculiar to a case.
type Prepare = fn(Job) -> Job;

/// Two GPUs with 24 and 16 GiB.
fn machine() -> FakeDriver {
    FakeDriver::new(&json!({"gpus": [{"memory_mib": 24576}, {"memory_mib": 16384}]}))
}

const LOOK: [&str; 3] = [
    "sh",
    "-c",
    "echo ${XLA_PYTHON_CLIENT_MEM_FRACTION-unset} ${GPUWATCH_PYTHON_MEM_LIMIT-unset} ${PYTHONPATH-unset}",
];

/// The hook's folder.
fn hook(sandbox: &Sandbox) -> String {
    let runs = sandbox.runs();
    let home = runs.parent().unwrap().join("python");
    home.join(env!("CARGO_PKG_VERSION")).display().to_string()
}

fn limits(sandbox: &Sandbox, limit: &str, prepare: impl Fn(Job) -> Job) -> (String, String) {
    let ended = prepare(sandbox.watched(&["--mem-limit", limit], &LOOK)).run();
    (
        ended.assert_ok().out().replace(&hook(sandbox), "HOOK"),
        ended.err(),
    )
}

#[test]
fn a_size_is_a_share_where_the_gpus_are_known() {
    let (driver, sandbox) = (machine(), Sandbox::new());
    let (told, _) = limits(&sandbox, "6GiB", |job| job.with(&driver));
    assert_eq!(told, "0.25 6144 HOOK\n", "of the larger one");
    let (told, _) = limits(&sandbox, "80%", |job| job.with(&driver));
    assert_eq!(told, "0.8 80%:24576,16384 HOOK\n");
    let (told, said) = limits(&sandbox, "6GiB", |job| job);
    assert_eq!(told, "unset 6144 HOOK\n");
    assert!(said.contains("not kept by JAX"), "{said}");
    let (told, said) = limits(&sandbox, "80%", |job| job);
    assert_eq!(told, "0.8 80% HOOK\n");
    assert!(said.contains("not kept by TensorFlow"), "{said}");
    let given = |job: Job| {
        let job = job.with(&driver).env("PYTHONPATH", "/a:/b");
        job.env("XLA_CLIENT_MEM_FRACTION", ".5")
    };
    let (told, _) = limits(&sandbox, "6GiB", given);
    assert_eq!(
        told, "unset 6144 HOOK:/a:/b\n",
        "JAX refuses two names for one thing"
    );
}

#[test]
fn the_record_and_the_plan_tell_it() {
    let (driver, sandbox) = (machine(), Sandbox::new());
    let options = ["--mem-limit", "6GiB", "--dry-run"];
    let ended = sandbox
        .watched(&options, &["touch", "x"])
        .with(&driver)
        .run();
    let hook = hook(&sandbox);
    let plan = ended.assert_ok().out();
    for line in [
        "set: XLA_PYTHON_CLIENT_MEM_FRACTION=0.25  (--mem-limit 6.0 GiB)\n",
        &format!("set: PYTHONPATH={hook}  (--mem-limit 6.0 GiB: a start-up hook"),
    ] {
        assert!(plan.contains(line), "{line} in {plan}");
    }
    assert!(!std::path::Path::new(&hook).exists(), "nothing is made");

    let job = sandbox.watched(&["-q", "--mem-limit", "6GiB"], &["true"]);
    job.with(&driver).env("PYTHONPATH", "/a").run().assert_ok();
    let env = &sandbox.record().json()["env"];
    assert_eq!(env["PYTHONPATH"]["value"], format!("{hook}:/a"));
    assert_eq!(env["XLA_PYTHON_CLIENT_MEM_FRACTION"]["value"], "0.25");
    let files = support::files_below(std::path::Path::new(&hook));
    assert!(!files.is_empty(), "nothing in {hook}");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn a_limit_without_sense_starts_nothing() {
    let cases = [
        ("6GB", "unknown unit"),
        ("6", "no unit"),
        ("much", "like 80%"),
        ("0", "out of range"),
        ("-1GiB", "like 80%"),
        ("0%", "out of range"),
        ("120%", "out of range"),
        ("%", "no share"),
        ("30GiB", "more than a GPU of this run has (24.0 GiB)"),
    ];
    let driver = machine();
    for_each(&cases, |(limit, why)| {
        let sandbox = Sandbox::new();
        let limit = format!("--mem-limit={limit}");
        let ended = sandbox
            .watched(&[&limit], &["touch", "started"])
            .with(&driver)
            .run();
        let said = ended.err();
        assert_eq!(ended.code(), Some(125), "{limit}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("--mem-limit") && said.contains(why), "{said}");
        assert!(!sandbox.path("started").exists());
        assert!(support::files_below(&sandbox.runs()).is_empty(), "{limit}");
    });
}

#[test]
fn a_profiles_limit_is_for_many_machines() {
    let (driver, sandbox) = (machine(), Sandbox::new());
    let run = |text: &str, options: &[&str]| {
        std::fs::write(sandbox.path("gpuwatch.yaml"), text).unwrap();
        sandbox.watched(options, &LOOK).with(&driver).run()
    };
    let ended = run("gpus: {mem_limit: 50%}", &[]);
    let told = ended.assert_ok().out();
    assert!(told.starts_with("0.5 50%:24576,16384 "), "{told}");
    let ended = run("gpus: {mem_limit: 80GiB}", &[]);
    assert_eq!(ended.assert_ok().out(), "unset unset unset\n");
    assert!(ended.err().contains("limits nothing"), "{}", ended.err());
    let ended = run("gpus: {mem_limit: 50%}", &["--no-env"]);
    assert_eq!(ended.assert_ok().out(), "unset unset unset\n");
    let ended = run("gpus: {mem_limit: 50}", &[]);
    assert_eq!(ended.code(), Some(125));
    assert!(ended.err().contains("gpuwatch.yaml:1:"), "{}", ended.err());
}

/// Where the state directory can't be written the run's own has the hook, else it is said.
#[test]
fn the_hook_goes_where_it_can() {
    let sandbox = Sandbox::new();
    let (told, said) = limits(&sandbox, "6GiB", |job| {
        job.env("XDG_STATE_HOME", "/dev/null")
    });
    let dir = "/python\n";
    assert!(
        told.starts_with("unset 6144 /tmp/gpuwatch-") && told.ends_with(dir),
        "{told}"
    );
    let folder = told.split_whitespace().nth(2).unwrap();
    let run = std::path::Path::new(folder).parent().unwrap();
    assert!(run.join("python/sitecustomize.py").exists(), "{said}");
    std::fs::remove_dir_all(run).unwrap();
    let job = sandbox.watched(&["--no-record", "--mem-limit", "6GiB"], &LOOK);
    let ended = job.env("XDG_STATE_HOME", "/dev/null").run();
    assert_eq!(ended.assert_ok().out(), "unset unset unset\n");
    let said = ended.err();
    assert!(
        said.contains("not kept by TensorFlow and PyTorch"),
        "{said}"
    );
}

/// What a Python knows of its own start.
const START: &str = "
import os, sys, multiprocessing
def line(*words):
    # By one write, since several processes write at once.
    os.write(1, (' '.join(map(str, words)) + '\\n').encode())
def say():
    # Without site (-S) nothing takes it away, and nothing reads it.
    path = [p for p in sys.path if 'gpuwatch/python' in p and not sys.flags.no_site]
    custom = sys.modules.get('sitecustomize')
    line(path, getattr(custom, '__file__', None), sorted(k for k in vars(sys) if 'own_' in k))
if __name__ == '__main__':
    say()
    for way in ['fork', 'spawn', 'forkserver']:
        child = multiprocessing.get_context(way).Process(target=say)
        child.start(); child.join()
    try:
        import sitecustomize
        line('it is', sitecustomize.__file__)
    except Exception as error:
        line(type(error).__name__, error, getattr(error, 'name', None))
";

/// Direct and watched, with this file as a `sitecustomize` of its own.
fn starts(own: Option<&str>, flags: &[&str]) -> [Ended; 2] {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("start.py"), START).unwrap();
    std::fs::create_dir(sandbox.path("own")).unwrap();
    if let Some(text) = own {
        std::fs::write(sandbox.path("own/sitecustomize.py"), text).unwrap();
    }
    let words = [&[python()], flags, &["start.py"]].concat();
    let limited = sandbox.watched(&["-q", "--mem-limit", "6GiB"], &words);
    [sandbox.direct(&words), limited].map(|job| {
        let ended = job.env("PYTHONPATH", sandbox.path("own")).run();
        assert!(ended.status.success(), "{}", ended.err());
        ended
    })
}

#[test]
fn python_starts_as_before() {
    let own = "import sys, os\nsys.own_count = getattr(sys, 'own_count', 0) + 1\nsys.own_file = __file__\nassert sys.own_count == 1\nos.write(1, ('own ran as %s %s\\n' % (__name__, __file__)).encode())\n";
    let cases: [(Option<&str>, &[&str]); 7] = [
        (None, &[]),
        (Some(own), &[]),
        (Some("raise ValueError('mine')"), &[]),
        (Some("import no_such_module"), &[]),
        (Some(own), &["-I"]),
        (Some(own), &["-E"]),
        (Some(own), &["-S"]),
    ];
    for_each(&cases, |(own, flags)| {
        let [direct, watched] = starts(*own, flags);
        // Helpers of multiprocessing start when they please.
        let lines = |ended: &Ended| {
            let mut lines: Vec<String> = ended.out().lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert!(lines(&direct).len() >= 5, "{}", direct.out());
        assert_eq!(lines(&watched), lines(&direct), "{own:?} {flags:?}");
        assert_eq!(watched.err(), direct.err(), "{own:?} {flags:?}");
    });
}

/// Runs a script of `tests/scripts` under a limit; what it printed as JSON at its end.
fn asked(python: &str, limit: &str, prepare: impl Fn(Job) -> Job, words: &[&str]) -> Value {
    let (driver, sandbox) = (machine(), Sandbox::new());
    let words = [&[python], words].concat();
    let options = ["-q", "--mem-limit", limit];
    let job = sandbox.watched(&options, &words).with(&driver);
    let ended = prepare(job.env("TF_CPP_MIN_LOG_LEVEL", "3")).run();
    let out = ended.assert_ok().out();
    assert!(!ended.err().contains("gpuwatch"), "{}", ended.err());
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

#[test]
fn real_pytorch_is_limited_when_it_first_uses_a_gpu() {
    let Some(python) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    let fake = script("torch_on_fake_gpus.py");
    let plain: Prepare = |job| job;
    let rank: Prepare = |job| job.env("LOCAL_RANK", "1");
    let init = "torch.cuda.init()";
    let third = "torch.cuda.set_device(3)";
    let own = "torch.cuda.set_per_process_memory_fraction(0.5, 3)";
    let cases: [(&str, Prepare, &str, Vec<&str>, Value); 6] = [
        ("6GiB", plain, "1", vec![init], json!([[0, 0.25]])),
        ("80%", plain, "2", vec![init], json!([[0, 0.8], [1, 0.8]])),
        ("80%", rank, "4", vec![init], json!([[1, 0.8]])),
        // The device is chosen before CUDA is initialised: no context on another one.
        ("80%", plain, "4", vec![third], json!([[3, 0.8]])),
        // What the program says later stays.
        (
            "80%",
            plain,
            "4",
            vec![third, own, third],
            json!([[3, 0.8], [3, 0.5]]),
        ),
        ("80%", plain, "2", vec![], json!([])),
    ];
    for (limit, prepare, gpus, code, noted) in cases {
        let words = [vec![fake.as_str(), gpus, "24576"], code.clone()].concat();
        let told = asked(&python, limit, prepare, &words);
        assert_eq!(told["noted"], noted, "{limit} {gpus} {code:?}");
        let before = json!({"initialised": 0, "loader": "SourceFileLoader", "source": true});
        assert_eq!(told["before"], before, "nothing happens at the import");
    }
}

#[test]
fn real_pytorch_without_a_gpu_goes_on() {
    let Some(python) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    let code = "
import torch, importlib, pickle, sys
print(torch.ones(3).sum(), torch.cuda.is_available(), torch.__spec__.loader.__class__.__name__)
print(pickle.loads(pickle.dumps(torch.cuda.set_device)) is torch.cuda.set_device)
print([type(f).__name__ for f in sys.meta_path if '_Finder' == type(f).__name__])
try:
    torch.zeros(1).cuda()
except (RuntimeError, AssertionError) as error:
    print(type(error).__name__, str(error)[:60])
import torch.multiprocessing as mp
context = mp.get_context('fork')
child = context.Process(target=lambda: print(torch.ones(2).sum()))
child.start(); child.join(); print(child.exitcode)
";
    let sandbox = Sandbox::new();
    let [free, limited] = [&[][..], &["--mem-limit", "6GiB"]].map(|options| {
        let job = sandbox.watched(&[&["-q"], options].concat(), &[&python, "-c", code]);
        job.run()
    });
    // TensorFlow may still be imported.
    let wanted = free.assert_ok().out().replace("[]", "['_Finder']");
    assert_eq!(limited.assert_ok().out(), wanted);
    assert_eq!(limited.err(), free.err());
}

#[test]
fn real_tensorflow_is_limited_when_it_makes_its_devices() {
    let Some(python) = provided("GPUWATCH_TEST_TF_PYTHON") else {
        return;
    };
    let fake = script("tensorflow_on_fake_gpus.py");
    let growth = "[tf.config.experimental.set_memory_growth(g, True) for g in gpus]";
    let own = "tf.config.set_logical_device_configuration(gpus[0], [tf.config.LogicalDeviceConfiguration(memory_limit=100)])";
    // As programs do that ask for it in two places.
    let twice = "tf.constant(1); [tf.config.experimental.set_memory_growth(g, True) for g in gpus]";
    let plain: Prepare = |job| job;
    let no_env: Prepare = |job| job.env("GPUWATCH_NO_ENV", "1");
    let cases: [(&str, Prepare, Vec<&str>, Value); 5] = [
        ("6GiB", plain, vec![], json!([[6144.0], [6144.0]])),
        ("50%", plain, vec![], json!([[12288.0], [8192.0]])),
        (
            "6GiB",
            plain,
            vec![growth, twice],
            json!([[6144.0], [6144.0]]),
        ),
        // The program's own is the one that counts.
        ("6GiB", plain, vec![own], json!([[100.0], []])),
        ("6GiB", no_env, vec![growth], json!([[6144.0], [6144.0]])),
    ];
    for (limit, prepare, code, limits) in cases {
        let words = [vec![fake.as_str(), "2"], code.clone()].concat();
        let told = asked(&python, limit, prepare, &words);
        assert_eq!(told["limits"], limits, "{limit} {code:?}");
        assert_eq!(told["growth_variable"], "true", "{limit} {code:?}");
        assert_eq!(told["total"], 10.0);
        if code != [own] {
            assert_eq!(told["left"], json!(["None", "None"]), "{code:?}");
        }
    }
}
