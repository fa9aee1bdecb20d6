//! The table of patterns.
//!
//! Owns the words. Where one line fits several patterns the first in the table is meant, so
//! initiating events stand before what follows from them.

use super::Kind;

/// One pattern.
pub struct Pattern {
    /// What it means.
    pub kind: Kind,
    /// What a line must hold: searched for in all output at once.
    pub needle: &'static str,
    /// What it must hold besides.
    all: &'static [&'static str],
    /// What it must not hold.
    none: &'static [&'static str],
    /// Whether advice may quote it.
    pub guarded: bool,
}

impl Pattern {
    /// Whether the rest of the pattern fits a line that holds the needle.
    pub fn fits(&self, text: &str) -> bool {
        self.all.iter().all(|word| text.contains(word))
            && !self.none.iter().any(|word| text.contains(word))
    }
}

/// Words of somebody who explains, advises or asks, and doesn't report.
pub const ADVICE: &[&str] = &[
    " if ",
    "If ",
    "avoid",
    "in case",
    "prevent",
    "might",
    "may be",
    "may cause",
    "to reduce",
    "try ",
    "Try ",
    "instead of",
    "--help",
    "usage:",
    "://docs",
    "e.g.",
    "should ",
];

const fn error(kind: Kind, needle: &'static str) -> Pattern {
    Pattern {
        kind,
        needle,
        all: &[],
        none: &[],
        guarded: false,
    }
}

const fn guarded(kind: Kind, needle: &'static str) -> Pattern {
    Pattern {
        guarded: true,
        ..error(kind, needle)
    }
}

const fn with(kind: Kind, needle: &'static str, all: &'static [&'static str]) -> Pattern {
    Pattern {
        all,
        ..error(kind, needle)
    }
}

const fn without(kind: Kind, needle: &'static str, none: &'static [&'static str]) -> Pattern {
    Pattern {
        none,
        ..error(kind, needle)
    }
}

/// XLA and TensorFlow try sizes and go on; these lines say so.
const RETRIED: &[&str] = &["not a failure", "bfc_allocator", "utotun", "remat"];

/// All of them.
pub const PATTERNS: &[Pattern] = &[
    // A prompt is a prompt whatever else the line says.
    error(Kind::Prompt, "(Pdb"),
    error(Kind::Prompt, "ipdb>"),
    error(Kind::Prompt, "(gdb)"),
    error(Kind::Prompt, "(cuda-gdb)"),
    error(Kind::Prompt, "[y/N]"),
    error(Kind::Prompt, "[Y/n]"),
    error(Kind::Prompt, "[y/n]"),
    // GPU memory.
    error(Kind::OomTorch, "CUDA out of memory. Tried to allocate"),
    error(Kind::OomTorch, "OutOfMemoryError: CUDA"),
    error(Kind::OomTorch, "OutOfMemoryError: HIP"),
    error(Kind::OomTorch, "CUDA error: out of memory"),
    guarded(Kind::OomTorch, "CUDA out of memory"),
    error(Kind::OomTensorFlow, "OOM when allocating tensor"),
    error(Kind::OomTensorFlow, "ResourceExhaustedError"),
    without(Kind::OomJax, "RESOURCE_EXHAUSTED: Out of memory", RETRIED),
    without(
        Kind::OomJax,
        "RESOURCE_EXHAUSTED: Failed to allocate",
        RETRIED,
    ),
    error(Kind::OomOther, "OutOfMemoryError: Out of memory allocating"),
    error(Kind::OomOther, "cudaErrorMemoryAllocation"),
    error(Kind::OomCache, "No available memory for the cache blocks"),
    guarded(Kind::OomCublas, "CUBLAS_STATUS_ALLOC_FAILED"),
    guarded(Kind::OomCublas, "CUBLAS_STATUS_NOT_INITIALIZED"),
    // Data loaders, before the memory and disks that they mention.
    with(Kind::SharedMemory, "DataLoader worker (pid", &["Bus error"]),
    error(
        Kind::SharedMemory,
        "Unexpected bus error encountered in worker",
    ),
    error(Kind::SharedMemory, "unable to open shared memory object"),
    with(Kind::SharedMemory, "No space left on device", &["/dev/shm"]),
    with(
        Kind::LoaderOom,
        "DataLoader worker (pid",
        &["by signal: Killed"],
    ),
    with(
        Kind::LoaderKilled,
        "DataLoader worker (pid",
        &["killed by signal"],
    ),
    with(
        Kind::LoaderKilled,
        "DataLoader worker (pid",
        &["exited unexpectedly"],
    ),
    // Main memory.
    error(Kind::KernelOom, "Out of memory: Killed process"),
    error(Kind::KernelOom, "Memory cgroup out of memory"),
    error(Kind::KernelOom, "oom-kill event"),
    error(Kind::KernelOom, "oom_kill event"),
    error(
        Kind::HostMemory,
        "DefaultCPUAllocator: can't allocate memory",
    ),
    error(Kind::HostMemory, "DefaultCPUAllocator: not enough memory"),
    error(Kind::HostMemory, "ArrayMemoryError: Unable to allocate"),
    error(
        Kind::HostMemory,
        "terminate called after throwing an instance of 'std::bad_alloc'",
    ),
    // The device.
    error(Kind::DeviceAssert, "device-side assert triggered"),
    with(Kind::DeviceAssert, "Assertion `", &[".cu:", "failed"]),
    error(
        Kind::IllegalAccess,
        "an illegal memory access was encountered",
    ),
    error(Kind::IllegalAccess, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    // Other ranks.
    error(
        Kind::CollectiveTimeout,
        "Watchdog caught collective operation timeout",
    ),
    with(
        Kind::CollectiveTimeout,
        "Timed out waiting",
        &["operation to complete"],
    ),
    with(Kind::RankLost, "unhandled system error", &["NCCL"]),
    error(Kind::RankLost, "ncclRemoteError"),
    with(Kind::RankLost, "Connection closed by peer", &["gloo"]),
    with(Kind::RankLost, "Connection reset by peer", &["gloo"]),
    with(Kind::RankLost, "Connection closed by peer", &["NCCL"]),
    with(Kind::RankLost, "Connection reset by peer", &["NCCL"]),
    with(Kind::RankLost, "failed (exitcode:", &["local_rank:"]),
    // Disks.
    error(Kind::Quota, "Disk quota exceeded"),
    error(Kind::Quota, "[Errno 122]"),
    guarded(Kind::Disk, "No space left on device"),
    error(Kind::Disk, "[Errno 28]"),
    error(Kind::NetworkFs, "Stale file handle"),
    error(Kind::NetworkFs, "[Errno 116]"),
    // Drivers and builds: errors.
    with(Kind::NoGpu, "No CUDA GPUs are available", &["Error"]),
    with(
        Kind::NoGpu,
        "Found no NVIDIA driver on your system",
        &["Error"],
    ),
    with(
        Kind::NoGpu,
        "no CUDA-capable device is detected",
        &["RuntimeError"],
    ),
    with(Kind::CpuBuild, "not compiled with CUDA enabled", &["Error"]),
    error(
        Kind::DriverMismatch,
        "driver version is insufficient for CUDA runtime",
    ),
    error(Kind::DriverMismatch, "Driver/library version mismatch"),
    error(Kind::DriverMismatch, "no kernel image is available"),
    error(
        Kind::DriverMismatch,
        "The NVIDIA driver on your system is too old",
    ),
    // The same as start-up noise: TensorFlow and JAX go on without a GPU.
    error(
        Kind::NoiseNoDriver,
        "Could not find cuda drivers on your machine",
    ),
    error(Kind::NoiseNoDriver, "UNKNOWN ERROR (303)"),
    with(
        Kind::NoiseNoDriver,
        "Could not load dynamic library",
        &["libcuda.so"],
    ),
    error(Kind::NoiseNoDriver, "CUDA_ERROR_UNKNOWN"),
    with(Kind::NoiseNoDriver, "UNKNOWN ERROR (999)", &["cuInit"]),
    error(Kind::NoiseHidden, "CUDA_ERROR_NO_DEVICE"),
    error(Kind::NoiseHidden, "CUDA_ERROR_INVALID_DEVICE"),
    error(Kind::NoiseMismatch, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    with(
        Kind::NoiseMismatch,
        "does not match DSO version",
        &["kernel version"],
    ),
    error(Kind::NoiseNoLibrary, "Cannot dlopen some GPU libraries"),
    error(Kind::NoiseNoLibrary, "Skipping registering GPU devices"),
    error(Kind::NoiseNoLibrary, "Could not load dynamic library"),
    error(Kind::NoiseCpuBuild, "CUDA-enabled jaxlib is not installed"),
    error(Kind::NoiseCpuBuild, "No GPU/TPU found, falling back to CPU"),
    error(
        Kind::TensorFlowStarted,
        "This TensorFlow binary is optimized to use available CPU instructions",
    ),
    error(Kind::OnCpu, "GPU available: True (cuda), used: False"),
    error(Kind::OnCpu, "Using cpu device"),
    error(Kind::OnCpu, "Using device: cpu"),
    error(Kind::OnCpu, "[CpuDevice(id=0)"),
    error(Kind::GpuFound, "Found device 0 with properties"),
    with(Kind::GpuFound, "Created device /job:", &["device:GPU:0"]),
    error(Kind::GpuFound, "GPU available: True (cuda), used: True"),
    error(Kind::GpuFound, "[CudaDevice(id=0)"),
    // The program.
    error(Kind::LossNan, "Loss is nan, stopping training"),
    error(Kind::LossNan, "Invalid loss, terminating training"),
    error(Kind::Segfault, "Fatal Python error: Segmentation fault"),
    error(Kind::Segfault, "Segmentation fault (core dumped)"),
    error(Kind::Segfault, "SIGSEGV"),
    error(Kind::Traceback, "Traceback (most recent call last)"),
    // What it waits for.
    error(Kind::Ready, "Uvicorn running on"),
    error(Kind::Ready, "Application startup complete"),
    error(Kind::Ready, "Running on local URL"),
    error(Kind::Ready, "* Running on http"),
    error(Kind::Ready, "Listening at: http"),
    error(Kind::Ready, "Started GRPCInferenceService"),
    error(Kind::Shuffle, "Filling up shuffle buffer"),
    error(Kind::Compile, "Very slow compile"),
    error(Kind::Compile, "slow_operation_alarm"),
];

/// The last line of a traceback: `package.SomeError: words`.
pub fn exception(text: &str) -> bool {
    let text = without_rank(text);
    let name = text.split(':').next().unwrap_or_default();
    let is_path = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
    let ends = ["Error", "Exception", "Interrupt", "Exit"];
    is_path && name.len() < 120 && ends.iter().any(|end| name.ends_with(end))
}

/// Without the `[rank0]: ` that PyTorch puts before each line of a rank.
pub fn without_rank(text: &str) -> &str {
    let rest = text.strip_prefix("[rank").and_then(|t| t.split_once("]:"));
    match rest {
        Some((rank, rest)) if rank.bytes().all(|b| b.is_ascii_digit()) => {
            rest.strip_prefix(' ').unwrap_or(rest)
        }
        _ => text,
    }
}
