//! The simulated NVML driver for tests: built once, its scenario written by rename.
//!
//! `FakeDriver::new(&json!({"gpus": [{}]}))`, then `driver.apply(&mut command)` makes that
//! command see it. `tests/fake-nvml/README.md` documents the scenario.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail where it stands"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

/// A machine with simulated GPUs; it is gone when this is dropped.
pub struct FakeDriver {
    dir: TempDir,
    library: PathBuf,
}

impl FakeDriver {
    /// A machine as this scenario describes it.
    pub fn new(scenario: &Value) -> Self {
        let driver = Self {
            dir: tempfile::tempdir().unwrap(),
            library: library().to_owned(),
        };
        driver.set(scenario);
        driver
    }

    /// The same, but the library lacks these functions, as an older driver's does.
    ///
    /// Their names in the symbol table of a copy are spoilt: the loader finds the place by
    /// the name's hash and then another name there, which is the same as none.
    pub fn without(functions: &[&str], scenario: &Value) -> Self {
        let mut driver = Self::new(scenario);
        let mut bytes = fs::read(library()).unwrap();
        for function in functions {
            let name = format!("\0{function}\0").into_bytes();
            let places: Vec<_> = (0..bytes.len() - name.len())
                .filter(|&at| bytes[at..].starts_with(&name))
                .collect();
            assert!(!places.is_empty(), "the library has no {function}");
            for at in places {
                bytes[at + 1] = b'X';
            }
        }
        driver.library = driver.dir.path().join("libnvidia-ml.so.1");
        fs::write(&driver.library, bytes).unwrap();
        driver
    }

    /// Replaces the scenario; the driver takes it up at the next call.
    pub fn set(&self, scenario: &Value) {
        let new = self.dir.path().join("scenario.json.tmp");
        fs::write(&new, scenario.to_string()).unwrap();
        fs::rename(new, self.scenario()).unwrap();
    }

    /// Makes a command see this machine's GPUs.
    pub fn apply<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("GPUWATCH_NVML_LIBRARY", &self.library)
            .env("FAKE_NVML_SCENARIO", self.scenario())
            .env_remove("CUDA_VISIBLE_DEVICES")
    }

    /// Says for a running process that it holds and uses this much of a GPU, as
    /// `fake_gpu.py` does for its own.
    pub fn hold(&self, pid: u32, gpu: u32, mib: u64, sm_pct: u32) {
        self.say_of(pid, gpu, &json!({"mib": mib, "sm": sm_pct}));
    }

    /// The same on a MIG device, given by GPU, GPU instance and compute instance.
    pub fn hold_part(&self, pid: u32, (gpu, gi, ci): (u32, u32, u32), mib: u64) {
        self.say_of(pid, gpu, &json!({"mib": mib, "gi": gi, "ci": ci}));
    }

    fn say_of(&self, pid: u32, gpu: u32, share: &Value) {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, rest) = stat.rsplit_once(')').unwrap();
        let started: u64 = rest.split_whitespace().nth(19).unwrap().parse().unwrap();
        let folder = self.dir.path().join("scenario.json.d");
        fs::create_dir_all(&folder).unwrap();
        let new = folder.join(format!("{pid}.tmp"));
        let said = json!({"pid": pid, "start": started, "gpus": {gpu.to_string(): share}});
        fs::write(&new, said.to_string()).unwrap();
        fs::rename(new, folder.join(format!("{pid}.json"))).unwrap();
    }

    /// The scenario's file.
    pub fn scenario(&self) -> PathBuf {
        self.dir.path().join("scenario.json")
    }
}

/// The directory of `fake_gpu.py`, for PYTHONPATH.
pub fn python_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-nvml")
}

/// The simulated driver's shared library, built on the first call.
///
/// `cargo test` alone doesn't put a cdylib anywhere that could be relied on: the build's own
/// message says where it is.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let messages = escargot::CargoBuild::new()
            .manifest_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
            .package("fake-nvml")
            .exec()
            .unwrap();
        messages
            .filter_map(|message| shared_library(&message.unwrap()))
            .last()
            .expect("cargo built no shared library of fake-nvml")
    })
}

fn shared_library(message: &escargot::Message) -> Option<PathBuf> {
    let escargot::format::Message::CompilerArtifact(artifact) = message.decode().unwrap() else {
        return None;
    };
    let is_so = |file: &&std::borrow::Cow<'_, Path>| file.extension().is_some_and(|e| e == "so");
    (artifact.target.name == "fake_nvml").then(|| {
        artifact
            .filenames
            .iter()
            .find(is_so)
            .map(|f| f.to_path_buf())
    })?
}
