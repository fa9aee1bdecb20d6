//! What a line of output stands for: the cause's name and what helps.
//!
//! Owns the names that DESIGN lists, and the advice.

use crate::read::fingerprint::Kind;

use super::memory::oom_advice;
use super::story::Story;

type Meaning = (&'static str, &'static str);

/// Memory, disks, drivers, the GPU itself.
pub fn of_machine(kind: Kind, text: &str, story: &Story) -> Option<Meaning> {
    of_memory(kind)
        .or_else(|| of_disk(kind))
        .or_else(|| of_driver(kind, text, story))
}

fn of_memory(kind: Kind) -> Option<Meaning> {
    Some(match kind {
        kind if kind.is_oom() || kind == Kind::HostMemory => ("oom", oom_advice(kind)),
        Kind::KernelOom => (
            "host-oom",
            "A process was killed for its memory: fewer DataLoader workers, a smaller prefetch or cache, or a higher memory limit.",
        ),
        Kind::LoaderOom => (
            "loader-killed",
            "A DataLoader worker was killed, for main memory as a rule: fewer workers, a smaller prefetch_factor, or more memory for the job.",
        ),
        Kind::SharedMemory => (
            "shared-memory",
            "/dev/shm is full: in a container --ipc=host or --shm-size=8g; else fewer DataLoader workers, or sharing by file_system.",
        ),
        Kind::BusError => ("shared-memory", BUS),
        _ => return None,
    })
}

/// SIGBUS.
pub const BUS: &str = "The program died of SIGBUS: a full /dev/shm (in a container --ipc=host or --shm-size), or a file that shrank while it was mapped.";

/// SIGSEGV.
pub const SEGFAULT: &str = "The program died of a wrong memory access in native code: PYTHONFAULTHANDLER=1 shows the Python line; check extensions whose versions don't fit.";

fn of_disk(kind: Kind) -> Option<Meaning> {
    Some(match kind {
        Kind::Disk => (
            "disk",
            "The disk is full: free space (`df -h`), keep fewer checkpoints, or write elsewhere.",
        ),
        Kind::HalfWritten => (
            "disk",
            "A checkpoint could not be written whole, because the disk or a quota is full as a rule (`df -h`, `quota -s`): keep fewer checkpoints, or write elsewhere.",
        ),
        Kind::ReadOnly => (
            "disk",
            "The file system is read-only, by its mount or after an error (`dmesg`): write elsewhere.",
        ),
        Kind::Quota => (
            "quota",
            "The quota is used up (`quota -s`): keep fewer checkpoints or write elsewhere.",
        ),
        Kind::NetworkFs => (
            "network-fs",
            "A network file system went away or replaced a file: copy the data to local disk, and restart from the last checkpoint.",
        ),
        _ => return None,
    })
}

fn of_driver(kind: Kind, text: &str, story: &Story) -> Option<Meaning> {
    let built_for_cpu = story.told(Kind::NoiseCpuBuild)
        || story.loaded.as_ref().and_then(|loaded| loaded.gpu) == Some(false);
    Some(match kind {
        Kind::DriverMismatch => (
            "driver-mismatch",
            "Driver and CUDA don't fit: update the driver, reboot after an upgrade, or install a build for this driver and GPU.",
        ),
        Kind::LibraryMismatch => (
            "driver-mismatch",
            "cuDNN is not the one that the framework was built with: install matching versions (`pip install 'tensorflow[and-cuda]'`), and check LD_LIBRARY_PATH.",
        ),
        Kind::NoFabric => (
            "driver-mismatch",
            "The GPUs of this machine aren't connected: nvidia-fabricmanager must run, in the driver's version (`systemctl status nvidia-fabricmanager`).",
        ),
        Kind::CpuBuild => ("cpu-build", cpu_build(text)),
        Kind::NoGpu | Kind::NoBackend if built_for_cpu => ("cpu-build", cpu_build(text)),
        Kind::NoGpu | Kind::NoBackend => (
            "no-gpu",
            "The program sees no GPU: check `nvidia-smi`, CUDA_VISIBLE_DEVICES, and `--gpus all` in a container.",
        ),
        Kind::NoGpuInContainer => (
            "no-gpu",
            "The container gets no GPU: install the NVIDIA Container Toolkit on the host, check `nvidia-smi` there, and start the container with `--gpus all`.",
        ),
        Kind::NoSuchGpu => (
            "no-gpu",
            "There is no GPU of that number: CUDA_VISIBLE_DEVICES shows fewer than the program asks for; start fewer ranks, or use LOCAL_RANK.",
        ),
        Kind::GpuTaken => (
            "no-gpu",
            "The GPU takes nobody else: it is in exclusive mode (`nvidia-smi -q -d COMPUTE`), or another process holds it; choose a free one with --gpus.",
        ),
        Kind::Hardware => (
            "hardware",
            "The GPU itself failed: restart from a checkpoint on another one, and have this one reset and tested (`nvidia-smi -q -d ECC`, `dmesg`).",
        ),
        _ => return None,
    })
}

fn cpu_build(text: &str) -> &'static str {
    let of = [
        (
            "Torch",
            "The installed PyTorch has no CUDA support: install it from the CUDA index (https://download.pytorch.org/whl/cu126).",
        ),
        (
            "backend",
            "The installed JAX has no CUDA support: `pip install 'jax[cuda12]'`.",
        ),
        (
            "Tree Learner",
            "The installed LightGBM has no GPU support: build it with -DUSE_CUDA=1, or use device_type='cpu'.",
        ),
    ];
    let found = of.iter().find(|(word, _)| text.contains(word));
    found.map_or(
        "The installed library has no GPU support: install its build with CUDA.",
        |(_, advice)| advice,
    )
}

/// The program's own faults.
pub fn of_program(kind: Kind) -> Option<Meaning> {
    Some(match kind {
        Kind::DeviceAssert => (
            "device-assert",
            "An assertion on the GPU failed, usually a label or index out of range: run one batch on the CPU, where the message names the line.",
        ),
        Kind::IllegalAccess => (
            "illegal-access",
            "A kernel touched memory that isn't there: a bug in the program or an extension. CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer finds the operation.",
        ),
        Kind::LoaderKilled => (
            "loader-killed",
            "A DataLoader worker died: num_workers=0 shows its own error; a crash in a decoder or too little memory is the usual cause.",
        ),
        Kind::Segfault => ("segfault", SEGFAULT),
        Kind::LossNan => (
            "nan",
            "The program stopped because its loss is no number: a lower learning rate, gradient clipping, bf16 instead of fp16.",
        ),
        _ => return None,
    })
}
