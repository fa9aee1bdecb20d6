//! Which framework a process uses, told by the libraries that it has mapped.
//!
//! Owns their names, and reading `maps` and `exe` (proc(5)). Knows no job and judges nothing.

use std::collections::BTreeSet;
use std::path::Path;

use super::ProcFs;

/// What a process has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// `tensorflow`, `pytorch`, `jax`, `mindspore`, `paddle`.
    pub framework: &'static str,
    /// Whether it is a build for GPUs, where its libraries tell.
    pub gpu: Option<bool>,
    /// The library that gives it away.
    pub library: String,
    /// Who loaded it: `python3.12`.
    pub program: Option<String>,
}

impl Loaded {
    /// How much a framework says about a job that has loaded several: JAX programs read data by
    /// TensorFlow or PyTorch, and PyTorch's tensorboard writer loads TensorFlow.
    pub fn weight(&self) -> usize {
        let order = LIBRARIES.iter().rev();
        let mut names = order.map(|(name, _)| *name);
        names.position(|name| name == self.framework).unwrap_or(0)
    }
}

/// Frameworks, the telling first, and how the file names of their libraries begin.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("jax", &["libjax_common.so", "xla_extension.so", "_jax.so"]),
    ("pytorch", &["libtorch_cpu.so", "libtorch.so"]),
    (
        "tensorflow",
        &[
            "libtensorflow_framework.so",
            "libtensorflow_cc.so",
            "_pywrap_tensorflow_internal.so",
        ],
    ),
    ("mindspore", &["libmindspore_core.so"]),
    ("paddle", &["libpaddle.so", "libphi.so"]),
];

/// What only builds for GPUs have. PyTorch loads it in any case, JAX once it uses a GPU.
const GPU_LIBRARIES: &[(&str, &[&str])] = &[
    ("pytorch", &["libtorch_cuda.so", "libtorch_hip.so"]),
    ("jax", &["xla_cuda_plugin.so", "xla_rocm_plugin.so"]),
];

/// What a process has loaded; None: no framework, or it can't be read.
pub fn loaded(fs: &mut ProcFs, pid: u32) -> Option<Loaded> {
    let maps = fs.read(format_args!("{pid}/maps")).ok()?;
    let mut found = classify(maps)?;
    let exe = fs.link(format_args!("{pid}/exe")).ok();
    let name = exe.as_deref().and_then(Path::file_name);
    found.program = name.map(|name| name.to_string_lossy().into_owned());
    Some(found)
}

/// The most telling framework of a `maps` file.
fn classify(maps: &[u8]) -> Option<Loaded> {
    let files = files(maps);
    let first = |names: &[&str]| {
        let begins = |file: &&str| names.iter().any(|name| file.starts_with(name));
        files.iter().copied().find(begins)
    };
    let (framework, library) = LIBRARIES
        .iter()
        .find_map(|(framework, names)| Some((*framework, first(names)?)))?;
    let has = GPU_LIBRARIES
        .iter()
        .find(|(known, _)| *known == framework)
        .map(|(_, names)| first(names).is_some());
    Some(Loaded {
        framework,
        // What JAX hasn't loaded yet it may still load.
        gpu: has.filter(|has| *has || framework == "pytorch"),
        library: library.to_owned(),
        program: None,
    })
}

/// The names of the mapped files.
fn files(maps: &[u8]) -> BTreeSet<&str> {
    let name = |line| {
        let at = memchr::memrchr(b'/', line)?;
        std::str::from_utf8(line.get(at + 1..)?).ok()
    };
    maps.split(|b| *b == b'\n').filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fake::FakeProc;
    use super::*;

    fn of(paths: &[&str]) -> Option<(&'static str, Option<bool>)> {
        let lines: Vec<String> = ["", "[heap]", "/usr/bin/python3.12", "/usr/lib/libc.so.6"]
            .iter()
            .chain(paths)
            .map(|path| format!("7f00-7f01 r-xp 00000000 fe:00 12345    {path}\n"))
            .collect();
        let found = classify(lines.concat().as_bytes())?;
        Some((found.framework, found.gpu))
    }

    #[test]
    fn a_framework_is_known_by_its_libraries() {
        let torch = "/v/torch/lib/libtorch_cpu.so";
        let tensorflow = "/v/tensorflow/libtensorflow_framework.so.2";
        let jax = "/v/jaxlib/libjax_common.so";
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["/home/me/libtorch_cpu/data.bin"]), None);
        assert_eq!(of(&[tensorflow]), Some(("tensorflow", None)));
        assert_eq!(of(&[torch]), Some(("pytorch", Some(false))));
        let cuda = "/v/torch/lib/libtorch_cuda.so (deleted)";
        assert_eq!(of(&[torch, cuda]), Some(("pytorch", Some(true))));
        assert_eq!(of(&[jax]), Some(("jax", None)));
        let plugin = "/v/jax_plugins/xla_cuda12/xla_cuda_plugin.so";
        assert_eq!(of(&[jax, plugin]), Some(("jax", Some(true))));
        assert_eq!(of(&["/v/jaxlib/xla_extension.so"]), Some(("jax", None)));
        assert_eq!(of(&["/v/paddle/base/libpaddle.so"]), Some(("paddle", None)));
        // The one that the others serve.
        assert_eq!(of(&[tensorflow, torch]), Some(("pytorch", Some(false))));
        assert_eq!(of(&[tensorflow, torch, jax]), Some(("jax", None)));
    }

    #[test]
    fn a_process_is_read_with_its_program() {
        let fake = FakeProc::new();
        fake.file(
            "7/maps",
            "7f00-7f01 r-xp 0 fe:00 1 /v/torch/lib/libtorch_cpu.so\n",
        );
        std::os::unix::fs::symlink("/usr/bin/python3.12", fake.path("7/exe")).unwrap();
        let found = loaded(&mut fake.fs(), 7).unwrap();
        assert_eq!(found.library, "libtorch_cpu.so");
        assert_eq!(found.program.as_deref(), Some("python3.12"));
        assert_eq!(loaded(&mut fake.fs(), 8), None);
    }
}
