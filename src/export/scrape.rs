//! What there is to export at one moment: any number of jobs, and GPUs.
//!
//! A run has one job and its watched GPUs. Whoever watches a whole machine has many jobs, and
//! each GPU once. What is missing here is a series that isn't there, never a zero.

use crate::model::{GpuInfo, GpuSample, JobSample, ProgressState, Severity};

/// Everything that is known at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    /// The jobs that live.
    pub jobs: Vec<Job>,
    /// The GPUs.
    pub gpus: Vec<Gpu>,
}

/// Which job: labels of each of its series. Nothing here may be different for every process
/// (a PID) or hold free text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// What tells it from all others: a run's id.
    pub run: String,
    /// What people call it.
    pub name: Option<String>,
    /// Whose it is.
    pub user: Option<String>,
    /// The scheduler's job.
    pub job_id: Option<String>,
    /// Its rank in a distributed job.
    pub rank: Option<u32>,
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Which.
    pub who: Who,
    /// Where it runs.
    pub host: Option<String>,
    /// What it uses.
    pub framework: Option<String>,
    /// The profile by which it is judged.
    pub profile: Option<String>,
    /// When it was started, seconds since 1970.
    pub started: Option<f64>,
    /// When it was looked at last, seconds since 1970.
    pub sampled: Option<f64>,
    /// How long ago that is; None where whoever reads this may do so at any time.
    pub sample_age_s: Option<f64>,
    /// How long it runs, seconds, suspend left out.
    pub elapsed_s: Option<f64>,
    /// Its processes.
    pub now: JobSample,
    /// The limit of its main memory.
    pub mem_limit_mib: Option<f64>,
    /// What it has printed.
    pub out_bytes: Option<u64>,
    /// Where training stands.
    pub progress: ProgressState,
    /// How long it has stood there; None before any progress.
    pub progress_age_s: Option<f64>,
    /// What it has of each GPU.
    pub shares: Vec<Share>,
    /// What holds of it.
    pub findings: Vec<Raised>,
}

/// What a job has of a GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    /// NVML's index; of a MIG device, the GPU's that it is part of.
    pub index: u32,
    /// The GPU's or MIG device's.
    pub uuid: Option<String>,
    /// Memory that its processes hold, MiB.
    pub mem_mib: Option<f64>,
    /// Their share of SM time, %.
    pub sm_pct: Option<f64>,
}

/// A finding that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// From the closed list, or a user's rule.
    pub name: String,
    /// How serious.
    pub severity: Severity,
    /// The finding's cause, where one is named.
    pub cause: Option<String>,
}

/// A GPU, or a MIG device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gpu {
    /// The run that looks at it, which tells apart what several runs say of one GPU; None where
    /// one program looks at all GPUs.
    pub run: Option<String>,
    /// Which.
    pub info: GpuInfo,
    /// What was read last.
    pub now: GpuSample,
    /// Energy since some start of counting, J.
    pub energy_j: Option<f64>,
    /// Uncorrectable ECC errors since some start of counting.
    pub ecc_uncorrected: Option<u64>,
    /// When anything could be read of it last, seconds since 1970.
    pub read: Option<f64>,
}
