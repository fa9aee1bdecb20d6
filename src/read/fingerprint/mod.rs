//! Output lines that tell why a run fails, waits or doesn't use its GPU.
//!
//! Owns which lines matter (DETECTION section 5) and what each says, line by line. Must not
//! know what follows from it: start-up noise, for example, is told like an error.

mod lines;
mod patterns;

pub use lines::Lines;

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use patterns::{ADVICE, PATTERNS};

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
    /// cuBLAS can't start: memory ran out, as a rule.
    OomCublas,
    /// The program was refused main memory.
    HostMemory,
    /// The kernel's out-of-memory killer struck.
    KernelOom,
    /// A collective operation timed out.
    CollectiveTimeout,
    /// Another rank is gone.
    RankLost,
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
    /// A quota is used up.
    Quota,
    /// A network file system went away.
    NetworkFs,
    /// The driver doesn't fit.
    DriverMismatch,
    /// An error: there is no GPU.
    NoGpu,
    /// An error: the library is built without GPU support.
    CpuBuild,
    /// The program died of a wrong memory access.
    Segfault,
    /// The program gave up because its loss was no number.
    LossNan,
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
    known(text).or_else(|| patterns::exception(text).then_some(Kind::Exception))
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
