//! What was seen: the argument of every check. `None` is "not known", never "no".

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use crate::model::{GpuSample, Inventory};

/// Everything.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The command's environment: ours, and what `env` in the command changes.
    pub variables: BTreeMap<String, String>,
    /// The kernel's side of the driver.
    pub kernel: Kernel,
    /// What NVML said.
    pub asked: Asked,
    /// The command and its interpreter.
    pub command: Command,
    /// What the interpreter said of itself; none if there is none to ask.
    pub python: Option<Answer<Python>>,
    /// Libraries that the loader finds without Python's help; none if that can't be told.
    pub libraries: Option<BTreeSet<String>>,
    /// Libraries in `/usr/local/cuda`, where the loader looks only if told to.
    pub toolkit: BTreeSet<String>,
    /// The machine, or what a container leaves of it.
    pub machine: Machine,
    /// What the frameworks see; by name, only where they were imported.
    pub imported: BTreeMap<String, Answer<Imported>>,
}

/// The kernel's side of the driver.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// The version in `/proc/driver/nvidia/version`.
    pub version: Option<String>,
    /// `nvidia*` and `dxg` in `/dev`.
    pub devices: Vec<DeviceFile>,
    /// Bus ids of NVIDIA's display devices, in their order: the host's, also in a container.
    pub pci: Vec<String>,
    /// Under WSL.
    pub wsl: bool,
    /// `nvidia-modprobe` is installed, which makes device files when a program wants them.
    pub modprobe: bool,
}

/// A file in `/dev`.
#[derive(Clone, Debug, Default)]
pub struct DeviceFile {
    /// `nvidia0`
    pub name: String,
    /// This user may read and write it.
    pub usable: bool,
    /// Its permissions, as `ls -l` has them in digits.
    pub mode: u32,
    /// Its group's number.
    pub group: u32,
}

/// What NVML said.
#[derive(Clone, Debug, Default)]
pub enum Asked {
    /// The driver answered.
    Answered {
        /// What there is.
        inventory: Inventory,
        /// Readings; none if they didn't come in time.
        samples: Vec<GpuSample>,
    },
    /// It said no, in words.
    Refused(String),
    /// It said nothing, in words.
    Silent(String),
    /// It wasn't asked.
    #[default]
    Not,
}

/// The command and its interpreter.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// As typed; none: the Python of `PATH` is looked at.
    pub typed: Option<String>,
    /// What runs it.
    pub runs: Runs,
    /// Frameworks that the script names in an import; none if it could not be read.
    pub imports: Option<BTreeSet<String>>,
    /// `py-spy` was found here.
    pub pyspy: Option<PathBuf>,
}

/// What a command turns out to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Runs {
    /// Python: the file that is started, and its options that change what it imports.
    Python {
        /// The interpreter.
        file: PathBuf,
        /// `-I`, `-s` and the like.
        options: Vec<String>,
        /// How it was come by, in words.
        how: String,
    },
    /// Something else, in words.
    Other(String),
    /// Nothing has this name, here or in `PATH`.
    Missing(String),
    /// A file that can't be executed.
    NotExecutable(PathBuf),
    /// Its first line names an interpreter that isn't there.
    BadInterpreter {
        /// The script.
        file: PathBuf,
        /// What the line names.
        wants: String,
    },
    /// Started by a program that chooses the interpreter as it starts.
    Unknown {
        /// `poetry run`
        launcher: String,
    },
    /// An environment that isn't there yet.
    NoEnvironment {
        /// Who wants it.
        launcher: String,
        /// Which.
        wants: String,
        /// What makes it.
        cure: String,
    },
    /// No Python in `PATH`.
    #[default]
    Nothing,
}

/// What came of running a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// It answered.
    Said(T),
    /// It was killed after so many seconds.
    Hung(u64),
    /// It failed; what it said.
    Failed(String),
}

/// An interpreter, by its own account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Python {
    /// `sys.executable`
    pub executable: String,
    /// `sys.version_info`, the first three.
    pub version: (u32, u32, u32),
    /// `sys.prefix`
    pub prefix: String,
    /// It can't read what is installed: Python 3.7 and older.
    pub blind: bool,
    /// Installed distributions of those that matter, and their versions.
    pub dists: BTreeMap<String, String>,
    /// `torch/version.py`: the CUDA that it was built for.
    pub torch_cuda: Option<String>,
    /// `torch/version.py` says that there is none.
    pub torch_without_cuda: bool,
    /// `torch/version.py`: the `ROCm` that it was built for.
    pub torch_hip: Option<String>,
    /// TensorFlow's `build_info.py`: `is_cuda_build`.
    pub tf_cuda_build: Option<bool>,
    /// There: `cuda_version`.
    pub tf_cuda: Option<String>,
    /// There: `cudnn_version`.
    pub tf_cudnn: Option<String>,
    /// Libraries of CUDA in the environment, and where.
    pub libraries: BTreeMap<String, String>,
}

/// A framework's own view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Imported {
    /// Its names of the GPUs that it sees.
    pub devices: Vec<String>,
    /// What it said on the way that may tell why.
    pub said: String,
}

/// The machine, or what a container leaves of it.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// A container.
    pub container: bool,
    /// Places to write to: a role and its file system.
    pub places: Vec<Place>,
    /// `/dev/shm`; none if there is none.
    pub shm: Option<Answer<Space>>,
    /// The tightest limit of memory above us, in MiB.
    pub memory_limit_mib: Option<u64>,
    /// What is used of it.
    pub memory_used_mib: Option<u64>,
    /// `kernel.yama.ptrace_scope`
    pub ptrace_scope: Option<u32>,
}

/// A directory that a run writes to.
#[derive(Clone, Debug)]
pub struct Place {
    /// `working directory`
    pub role: &'static str,
    /// Where.
    pub path: PathBuf,
    /// Its file system.
    pub space: Answer<Space>,
}

/// A file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// In MiB.
    pub total_mib: u64,
    /// In MiB, for this user.
    pub free_mib: u64,
    /// All its files are used up.
    pub no_files_left: bool,
    /// This user may write.
    pub writable: bool,
}
