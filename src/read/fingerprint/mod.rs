//! Output lines that tell why a run fails, waits or doesn't use its GPU.
//!
//! Owns which lines matter (DETECTION section 5), what each says, line by line, and which rank
//! it speaks of. Must not know what follows from it: start-up noise, for example, is told like
//! an error.

mod lines;
mod patterns;
mod quotes;
pub mod ranks;
mod table;

pub use lines::{Lines, Source};
pub use patterns::exception_name;
pub use quotes::Quote;

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use patterns::ADVICE;
use table::PATTERNS;

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// GPU memory ran out, in PyTorch.
    OomTorch,
    /// GPU memory ran out, in TensorFlow.
    OomTensorFlow,
    /// GPU memory ran out, in JAX or XLA.
    OomJax,
    /// GPU memory ran out, in another library.
    OomOther,
    /// No memory for the key-value cache of a model server.
    OomCache,
    /// cuBLAS or cuDNN can't start: memory ran out, as a rule.
    OomCublas,
    /// The program was refused main memory.
    HostMemory,
    /// The kernel's out-of-memory killer struck.
    KernelOom,
    /// A collective operation timed out.
    CollectiveTimeout,
    /// How far a rank came in its collective operations.
    CollectiveState,
    /// Another rank is gone.
    RankLost,
    /// Who started the ranks says how one of them ended.
    RankEnded,
    /// Who started the ranks says that the next traceback is one of theirs.
    RankRaised,
    /// torchrun's list of failures comes to the first one.
    RootCause,
    /// A rank in that list.
    ListedRank,
    /// The end of the rank above it.
    ListedEnd,
    /// An assertion failed on the GPU.
    DeviceAssert,
    /// The GPU was sent to memory that isn't there.
    IllegalAccess,
    /// Shared memory ran out.
    SharedMemory,
    /// A data loader's worker was killed for its memory.
    LoaderOom,
    /// A data loader's worker died.
    LoaderKilled,
    /// The disk is full.
    Disk,
    /// A checkpoint could not be written whole.
    HalfWritten,
    /// The file system takes no writes.
    ReadOnly,
    /// A quota is used up.
    Quota,
    /// A network file system went away.
    NetworkFs,
    /// The driver doesn't fit.
    DriverMismatch,
    /// Libraries of CUDA don't fit.
    LibraryMismatch,
    /// The service that connects the GPUs of a machine doesn't run.
    NoFabric,
    /// An error: there is no GPU.
    NoGpu,
    /// An error: the container was given no GPU.
    NoGpuInContainer,
    /// An error: there is no GPU of this number.
    NoSuchGpu,
    /// An error: the GPU takes nobody else.
    GpuTaken,
    /// An error: the library has no backend for GPUs, or found none.
    NoBackend,
    /// An error: the library is built without GPU support.
    CpuBuild,
    /// The driver's kernel log names an XID.
    Xid,
    /// The GPU's own failure, in CUDA's words.
    Hardware,
    /// The program died of a wrong memory access.
    Segfault,
    /// It touched memory that no longer has anything behind it.
    BusError,
    /// The program gave up because its loss was no number.
    LossNan,
    /// Native code gave up.
    Aborted,
    /// The scheduler ended the job.
    Scheduler,
    /// The command was given arguments that it doesn't take.
    Usage,
    /// Start-up noise: no driver.
    NoiseNoDriver,
    /// Start-up noise: a library can't be loaded.
    NoiseNoLibrary,
    /// Start-up noise: the library has no GPU support.
    NoiseCpuBuild,
    /// Start-up noise: no device is visible.
    NoiseHidden,
    /// Start-up noise: driver and library differ.
    NoiseMismatch,
    /// TensorFlow has started. A build with GPU support says more.
    TensorFlowStarted,
    /// The program says that it works on the CPU.
    OnCpu,
    /// A GPU was found.
    GpuFound,
    /// A Python traceback begins.
    Traceback,
    /// The traceback after this one has it for its reason.
    Chained,
    /// The traceback after this line ends nothing but a thread, a finaliser or a log record.
    Aside,
    /// The exception that ended a traceback.
    Exception,
    /// The prompt of a debugger, or a question.
    Prompt,
    /// A server is ready.
    Ready,
    /// A shuffle buffer is filled.
    Shuffle,
    /// A compiler says that it takes its time.
    Compile,
}

impl Kind {
    /// GPU memory ran out.
    pub fn is_oom(self) -> bool {
        matches!(
            self,
            Self::OomTorch
                | Self::OomTensorFlow
                | Self::OomJax
                | Self::OomOther
                | Self::OomCache
                | Self::OomCublas
        )
    }

    /// Whether the line may be what a run failed of, and is worth quoting.
    pub fn is_failure(self) -> bool {
        !matches!(
            self,
            Self::CollectiveState
                | Self::RankRaised
                | Self::RootCause
                | Self::ListedRank
                | Self::ListedEnd
                | Self::NoiseNoDriver
                | Self::NoiseNoLibrary
                | Self::NoiseCpuBuild
                | Self::NoiseHidden
                | Self::NoiseMismatch
                | Self::TensorFlowStarted
                | Self::OnCpu
                | Self::GpuFound
                | Self::Traceback
                | Self::Chained
                | Self::Aside
                | Self::Prompt
                | Self::Ready
                | Self::Shuffle
                | Self::Compile
        )
    }

    /// The framework whose words these are.
    pub fn framework(self) -> Option<&'static str> {
        match self {
            Self::OomTorch => Some("pytorch"),
            Self::OomTensorFlow | Self::TensorFlowStarted => Some("tensorflow"),
            Self::OomJax => Some("jax"),
            _ => None,
        }
    }
}

/// What a line says, if any fingerprint cares about it. The text is a line without its end
/// and without control characters.
pub fn fingerprint(text: &str) -> Option<Kind> {
    known(text).or_else(|| exception_name(text).map(|_| Kind::Exception))
}

static NEEDLES: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(PATTERNS.iter().map(|p| p.needle)).ok());

/// What the table of patterns says; the first that fits, in its order.
fn known(text: &str) -> Option<Kind> {
    let mut first = usize::MAX;
    for found in NEEDLES.as_ref()?.find_overlapping_iter(text) {
        let at = found.pattern().as_usize();
        if at < first && PATTERNS[at].fits(text) {
            first = at;
        }
    }
    let pattern = PATTERNS.get(first)?;
    // Advice that quotes an error isn't one.
    let advised = pattern.guarded && ADVICE.iter().any(|word| text.contains(word));
    (!advised).then_some(pattern.kind)
}

/// Whether a line may matter, from its bytes: cheap, and never wrong about one that does.
fn may_matter(line: &[u8]) -> bool {
    NEEDLES
        .as_ref()
        .is_some_and(|needles| needles.is_match(line))
}

#[cfg(test)]
mod tests;
