//! A made-up environment: a real interpreter that finds packages in a folder of ours.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::support::{FakeDriver, Job, Sandbox, python};

/// A virtual environment without pip, and what is put into it.
pub struct Environment {
    folder: tempfile::TempDir,
}

/// Importing it leaves a mark in the working directory and sees as many GPUs as it is told.
const TORCH: &str = r#"
import os, sys
open("imported", "w").close()
class cuda:
    device_count = staticmethod(lambda: int(os.environ["MADE_UP_GPUS"]))
    is_available = staticmethod(lambda: cuda.device_count() > 0)
    get_device_name = staticmethod(lambda i: "made up %d" % i)
    @staticmethod
    def init():
        raise RuntimeError("CUDA unknown error: made up")
"#;

impl Environment {
    pub fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        fs::create_dir_all(folder.path().join("site")).unwrap();
        let environment = Self { folder };
        // Without site packages of its own: what a machine happens to have changes nothing.
        let text = format!(
            "#!/bin/sh\nPYTHONPATH={} exec {} -s -S \"$@\"\n",
            environment.site().display(),
            python()
        );
        environment.program("python", &text);
        environment
    }

    /// With a PyTorch built for this CUDA, and these of its libraries.
    pub fn torch(version: &str, cuda: Option<&str>, libraries: &[&str]) -> Self {
        let environment = Self::empty();
        environment.package("torch", version, TORCH);
        let cuda = cuda.map_or("None".to_owned(), |c| format!("'{c}'"));
        environment.put(
            "site/torch/version.py",
            &format!("from typing import Optional\n__version__ = '{version}'\ncuda: Optional[str] = {cuda}\nhip: Optional[str] = None\n"),
        );
        for library in libraries {
            environment.put(&format!("site/nvidia/made_up/lib/{library}"), "");
        }
        environment
    }

    pub fn package(&self, name: &str, version: &str, code: &str) {
        self.put(&format!("site/{name}/__init__.py"), code);
        self.put(
            &format!("site/{name}-{version}.dist-info/METADATA"),
            &format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"),
        );
    }

    pub fn put(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program of its `bin`.
    pub fn program(&self, name: &str, text: &str) {
        // By rename: another test's child may have the new file open for a moment.
        let new = self.bin().join(format!("{name}.new"));
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, self.bin().join(name)).unwrap();
    }

    pub fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    fn site(&self) -> PathBuf {
        self.folder.path().join("site")
    }

    /// Every file in it.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                found.push(path);
            }
        }
        found.sort();
        found
    }
}

/// A machine on which everything fits, but for what a test breaks.
pub struct Setup {
    pub sandbox: Sandbox,
    pub environment: Environment,
    pub driver: FakeDriver,
}

impl Setup {
    /// PyTorch for CUDA 12 on two A100.
    pub fn new() -> Self {
        Self::of(
            Environment::torch("2.9.0", Some("12.8"), &["libcudart.so.12"]),
            FakeDriver::new(&json!({"gpus": [{}, {}]})),
        )
    }

    pub fn of(environment: Environment, driver: FakeDriver) -> Self {
        let sandbox = Sandbox::new();
        fs::write(sandbox.path("train.py"), "import torch\n").unwrap();
        environment.put("driver/libcuda.so.1", "");
        Self {
            sandbox,
            environment,
            driver,
        }
    }

    pub fn doctor(&self, args: &[&str]) -> Job {
        let words: Vec<&str> = ["doctor"].iter().chain(args).copied().collect();
        let job = self.sandbox.gpuwatch(&words).with(&self.driver);
        self.with_path(job, &self.environment.bin())
    }

    /// With this folder first in PATH, and the driver's library where the loader looks.
    pub fn with_path(&self, job: Job, first: &Path) -> Job {
        let old = std::env::var_os("PATH").unwrap();
        let folders = [first.to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&old));
        let library_path = self.environment.folder.path().join("driver");
        job.env("PATH", std::env::join_paths(folders).unwrap())
            .env("LD_LIBRARY_PATH", library_path)
    }
}
