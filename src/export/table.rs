//! The metrics: the one list of their names, units, meanings and where their values come from.

use super::label::Labels;
use super::scrape::{Gpu, Job, Share};
use crate::model::{Reading, Severity, Throttle};

/// A metric.
#[derive(Debug)]
pub struct Metric {
    /// What its series are called, ending included.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// What it counts in, where it has a unit: the name's last word but `total`.
    pub unit: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Its values.
    pub(super) of: Of,
}

/// Kinds of metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that goes up and down.
    Gauge,
    /// One that goes up; its name ends with `_total`.
    Counter,
    /// Always 1, what it says is in its labels; its name ends with `_info`.
    Info,
}

/// What a metric is about, and how its values are found there. Those of `Each` have labels of
/// their own beside those of the job or GPU.
pub(super) enum Of {
    Job(fn(&Job) -> Option<f64>),
    JobEach(fn(&Job) -> Vec<(Labels, f64)>),
    Share(fn(&Share) -> Option<f64>),
    Gpu(fn(&Gpu) -> Option<f64>),
    GpuEach(fn(&Gpu) -> Vec<(Labels, f64)>),
}

impl std::fmt::Debug for Of {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Job(_) | Self::JobEach(_) => "Job",
            Self::Share(_) => "Share",
            Self::Gpu(_) | Self::GpuEach(_) => "Gpu",
        })
    }
}

const fn gauge(name: &'static str, unit: &'static str, help: &'static str, of: Of) -> Metric {
    let kind = Kind::Gauge;
    Metric {
        name,
        kind,
        unit,
        help,
        of,
    }
}

const fn counter(name: &'static str, unit: &'static str, help: &'static str, of: Of) -> Metric {
    let kind = Kind::Counter;
    Metric {
        name,
        kind,
        unit,
        help,
        of,
    }
}

const fn info(name: &'static str, help: &'static str, of: Of) -> Metric {
    let (kind, unit) = (Kind::Info, "");
    Metric {
        name,
        kind,
        unit,
        help,
        of,
    }
}

/// All of them.
pub const METRICS: &[Metric] = &[
    info(
        "gpuwatch_job_info",
        "A job that lives, and what is known of it.",
        Of::JobEach(job_info),
    ),
    gauge(
        "gpuwatch_job_start_timestamp_seconds",
        "seconds",
        "When the job was started.",
        Of::Job(|j| j.started),
    ),
    gauge(
        "gpuwatch_job_last_sample_timestamp_seconds",
        "seconds",
        "When the job was looked at last.",
        Of::Job(|j| j.sampled),
    ),
    gauge(
        "gpuwatch_job_sample_age_seconds",
        "seconds",
        "How long ago that was when this was asked for (not in a textfile).",
        Of::Job(|j| j.sample_age_s),
    ),
    gauge(
        "gpuwatch_job_elapsed_seconds",
        "seconds",
        "How long the job runs, time in suspend left out.",
        Of::Job(|j| j.elapsed_s),
    ),
    gauge(
        "gpuwatch_job_finding",
        "",
        "1 for each finding that holds.",
        Of::JobEach(findings),
    ),
    gauge(
        "gpuwatch_job_progress_ratio",
        "ratio",
        "How much of the whole run is done.",
        Of::Job(|j| ratio(j.progress.overall_pct)),
    ),
    gauge(
        "gpuwatch_job_progress_age_seconds",
        "seconds",
        "Time without progress, once there was some.",
        Of::Job(|j| j.progress_age_s),
    ),
    gauge(
        "gpuwatch_job_eta_seconds",
        "seconds",
        "Time that the run still needs.",
        Of::Job(|j| j.progress.eta_s),
    ),
    gauge(
        "gpuwatch_job_epoch",
        "",
        "Epoch as the job shows it.",
        Of::Job(|j| j.progress.epoch),
    ),
    gauge(
        "gpuwatch_job_epochs",
        "",
        "Epochs that there will be.",
        Of::Job(|j| j.progress.epochs),
    ),
    gauge(
        "gpuwatch_job_step",
        "",
        "Step as the job shows it.",
        Of::Job(|j| j.progress.step.map(|n| n as f64)),
    ),
    gauge(
        "gpuwatch_job_steps",
        "",
        "Steps that there will be.",
        Of::Job(|j| j.progress.steps.map(|n| n as f64)),
    ),
    gauge(
        "gpuwatch_job_steps_per_second",
        "",
        "Pace of the steps.",
        Of::Job(|j| j.progress.rate),
    ),
    gauge(
        "gpuwatch_job_loss",
        "",
        "Training loss as the job shows it.",
        Of::Job(|j| j.progress.loss.map(|loss| loss.0)),
    ),
    gauge(
        "gpuwatch_job_processes",
        "",
        "Processes of the job by what they do.",
        Of::JobEach(processes),
    ),
    gauge(
        "gpuwatch_job_cpu_cores",
        "",
        "Processor cores that the job uses.",
        Of::Job(|j| j.now.cpu_cores.get()),
    ),
    gauge(
        "gpuwatch_job_resident_memory_bytes",
        "bytes",
        "Main memory of the job's processes, shared pages counted once a process.",
        Of::Job(|j| mib(j.now.rss_mib.get())),
    ),
    gauge(
        "gpuwatch_job_anonymous_memory_bytes",
        "bytes",
        "The part of it that backs no file.",
        Of::Job(|j| mib(j.now.anon_mib.get())),
    ),
    gauge(
        "gpuwatch_job_shared_memory_bytes",
        "bytes",
        "The part of it that is shared memory.",
        Of::Job(|j| mib(j.now.shmem_mib.get())),
    ),
    gauge(
        "gpuwatch_job_memory_limit_bytes",
        "bytes",
        "What the job may use: its cgroup's limit, or the machine's memory.",
        Of::Job(|j| mib(j.mem_limit_mib)),
    ),
    gauge(
        "gpuwatch_job_read_bytes_per_second",
        "",
        "Read from storage.",
        Of::Job(|j| mega(&j.now.read_mb_s)),
    ),
    gauge(
        "gpuwatch_job_write_bytes_per_second",
        "",
        "Written to storage.",
        Of::Job(|j| mega(&j.now.write_mb_s)),
    ),
    counter(
        "gpuwatch_job_output_bytes_total",
        "bytes",
        "What the job has printed.",
        Of::Job(|j| j.out_bytes.map(|n| n as f64)),
    ),
    gauge(
        "gpuwatch_job_gpu_memory_bytes",
        "bytes",
        "GPU memory that the job's processes hold.",
        Of::Share(|s| mib(s.mem_mib)),
    ),
    gauge(
        "gpuwatch_job_gpu_utilization_ratio",
        "ratio",
        "Share of the GPU's time that the job's processes use.",
        Of::Share(|s| ratio(s.sm_pct)),
    ),
    info(
        "gpuwatch_gpu_info",
        "A GPU that is watched.",
        Of::GpuEach(gpu_info),
    ),
    gauge(
        "gpuwatch_gpu_last_reading_timestamp_seconds",
        "seconds",
        "When anything could be read of the GPU last.",
        Of::Gpu(|g| g.read),
    ),
    gauge(
        "gpuwatch_gpu_utilization_ratio",
        "ratio",
        "Share of the time in which a kernel ran.",
        Of::Gpu(|g| ratio(g.now.util_pct.get())),
    ),
    gauge(
        "gpuwatch_gpu_memory_busy_ratio",
        "ratio",
        "Share of the time in which its memory was read or written.",
        Of::Gpu(|g| ratio(g.now.mem_util_pct.get())),
    ),
    gauge(
        "gpuwatch_gpu_memory_used_bytes",
        "bytes",
        "Memory in use, by anybody.",
        Of::Gpu(|g| mib(g.now.mem_used_mib.get())),
    ),
    gauge(
        "gpuwatch_gpu_memory_size_bytes",
        "bytes",
        "Memory that there is.",
        Of::Gpu(|g| mib(g.now.mem_total_mib.get())),
    ),
    gauge(
        "gpuwatch_gpu_temperature_celsius",
        "celsius",
        "Temperature.",
        Of::Gpu(|g| g.now.temp_c.get()),
    ),
    gauge(
        "gpuwatch_gpu_power_watts",
        "watts",
        "Power draw.",
        Of::Gpu(|g| g.now.power_w.get()),
    ),
    gauge(
        "gpuwatch_gpu_power_limit_watts",
        "watts",
        "The power limit in force.",
        Of::Gpu(|g| g.now.power_limit_w.get()),
    ),
    counter(
        "gpuwatch_gpu_energy_joules_total",
        "joules",
        "Energy since the watching began.",
        Of::Gpu(|g| g.energy_j),
    ),
    gauge(
        "gpuwatch_gpu_sm_clock_hertz",
        "hertz",
        "Clock of the multiprocessors.",
        Of::Gpu(|g| g.now.sm_clock_mhz.get().map(|mhz| mhz * 1e6)),
    ),
    gauge(
        "gpuwatch_gpu_throttle_reason",
        "",
        "1 for each reason that holds the clocks down now, else 0.",
        Of::GpuEach(throttle),
    ),
    gauge(
        "gpuwatch_gpu_pcie_bytes_per_second",
        "",
        "PCIe traffic, received and sent.",
        Of::Gpu(|g| mega(&g.now.pcie_mb_s)),
    ),
    counter(
        "gpuwatch_gpu_ecc_uncorrected_errors_total",
        "",
        "Uncorrectable memory errors since the watching began.",
        Of::Gpu(|g| g.ecc_uncorrected.map(|n| n as f64)),
    ),
    gauge(
        "gpuwatch_gpu_sm_active_ratio",
        "ratio",
        "Activity of the multiprocessors (Hopper and later).",
        Of::Gpu(|g| ratio(g.now.sm_active_pct.get())),
    ),
    gauge(
        "gpuwatch_gpu_tensor_active_ratio",
        "ratio",
        "Activity of the tensor cores (Hopper and later).",
        Of::Gpu(|g| ratio(g.now.tensor_active_pct.get())),
    ),
    gauge(
        "gpuwatch_gpu_dram_active_ratio",
        "ratio",
        "Activity of the memory (Hopper and later).",
        Of::Gpu(|g| ratio(g.now.dram_active_pct.get())),
    ),
];

fn ratio(pct: Option<f64>) -> Option<f64> {
    // Without the noise of a division.
    pct.map(|pct| (pct * 1e4).round() / 1e6)
}

fn mib(mib: Option<f64>) -> Option<f64> {
    mib.map(|mib| (mib * 1_048_576.0).round())
}

fn mega(mb: &Reading<f64>) -> Option<f64> {
    mb.get().map(|mb| mb * 1e6)
}

/// The labels of these names that have a value.
fn known<const N: usize>(labels: [(&'static str, Option<String>); N]) -> Labels {
    let labels = labels.into_iter();
    labels
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn job_info(job: &Job) -> Vec<(Labels, f64)> {
    let labels = known([
        ("host", job.host.clone()),
        ("framework", job.framework.clone()),
        ("profile", job.profile.clone()),
        ("version", Some(env!("CARGO_PKG_VERSION").to_owned())),
    ]);
    vec![(labels, 1.0)]
}

fn findings(job: &Job) -> Vec<(Labels, f64)> {
    let labels = |raised: &super::Raised| {
        let severity = match raised.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        };
        known([
            ("finding", Some(raised.name.clone())),
            ("severity", Some(severity.to_owned())),
            ("cause", raised.cause.clone()),
        ])
    };
    job.findings
        .iter()
        .map(|raised| (labels(raised), 1.0))
        .collect()
}

fn processes(job: &Job) -> Vec<(Labels, f64)> {
    let now = &job.now;
    let states = [
        ("running", &now.n_run),
        ("sleeping", &now.n_sleep),
        ("disk", &now.n_disk),
        ("zombie", &now.n_zombie),
        ("stopped", &now.n_stopped),
    ];
    let known = states
        .iter()
        .filter_map(|(state, n)| Some((*state, n.get()?)));
    known
        .map(|(state, n)| (vec![("state", state.to_owned())], f64::from(n)))
        .collect()
}

fn gpu_info(gpu: &Gpu) -> Vec<(Labels, f64)> {
    let info = &gpu.info;
    let labels = known([
        ("name", info.name.clone()),
        ("host_gpu", info.host_index.map(|index| index.to_string())),
        ("pci_bus", info.pci_bus.clone()),
    ]);
    vec![(labels, 1.0)]
}

fn throttle(gpu: &Gpu) -> Vec<(Labels, f64)> {
    let Some(now) = gpu.now.throttle.get() else {
        return Vec::new();
    };
    let reason = |(bit, name): &(u64, &str)| {
        let holds = f64::from(u8::from(now.0 & bit != 0));
        (vec![("reason", (*name).to_owned())], holds)
    };
    Throttle::NAMES.iter().map(reason).collect()
}
