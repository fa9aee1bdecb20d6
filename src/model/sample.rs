//! What one look at the machine gave. One `Sample` is one tick: it becomes one row of
//! `samples.csv` per watched GPU, or one row with empty GPU fields where there is none.

use serde::{Deserialize, Serialize};

use super::{GpuInfo, Metric, Reading, Stamp};

/// Why the clocks are held back, as the driver's bit field says.
///
/// Bits as in `nvml.h`, `nvmlClocksEventReason*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle(pub u64);

impl Throttle {
    /// The known reasons and their bits, in the order in which they are written.
    pub const NAMES: [(u64, &'static str); 9] = [
        (0x1, "gpu_idle"),
        (0x4, "sw_power_cap"),
        (0x8, "hw_slowdown"),
        (0x20, "sw_thermal"),
        (0x40, "hw_thermal_slowdown"),
        (0x80, "hw_power_brake"),
        (0x10, "sync_boost"),
        (0x2, "app_clocks"),
        (0x100, "display"),
    ];

    /// The column's text: known reasons joined by `+`, or `none`.
    pub fn text(self) -> String {
        let named: Vec<_> = Self::NAMES
            .iter()
            .filter(|(bit, _)| self.0 & bit != 0)
            .map(|(_, name)| *name)
            .collect();
        if named.is_empty() {
            "none".to_owned()
        } else {
            named.join("+")
        }
    }

    /// What `text` wrote; `None` where it is neither `none` nor made of known reasons.
    pub fn from_text(text: &str) -> Option<Self> {
        if text == "none" {
            return Some(Self(0));
        }
        text.split('+').try_fold(Self(0), |sum, word| {
            let (bit, _) = Self::NAMES.iter().find(|(_, name)| *name == word)?;
            Some(Self(sum.0 | bit))
        })
    }
}

/// A process that the driver lists on a GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// In our PID namespace where the driver translates it.
    pub pid: u32,
    /// Memory that it holds on this GPU, MiB.
    pub mem_mib: Reading<f64>,
    /// Its share of SM time since the last sample, %.
    pub sm_pct: Reading<f64>,
    /// True for a compute process, false for a graphics one (a desktop's).
    pub compute: bool,
    /// An MPS server, whose clients' work and memory may be listed as its own.
    #[serde(default)]
    pub mps_server: bool,
}

/// One GPU at one tick. Everything is the device's, except the processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuSample {
    /// NVML's index.
    pub index: u32,
    /// The MIG device on it that this is about, by its UUID; None: the whole GPU.
    #[serde(default)]
    pub mig: Option<String>,
    /// Percent of the driver's sample window in which a kernel ran.
    pub util_pct: Reading<f64>,
    /// Percent of the window in which device memory was read or written.
    pub mem_util_pct: Reading<f64>,
    /// Memory in use, MiB (reserved memory left out).
    pub mem_used_mib: Reading<f64>,
    /// Total memory, MiB.
    pub mem_total_mib: Reading<f64>,
    /// Degrees Celsius.
    pub temp_c: Reading<f64>,
    /// Watts (a 1 s mean on Ampere and later).
    pub power_w: Reading<f64>,
    /// The enforced limit, W.
    pub power_limit_w: Reading<f64>,
    /// The driver's energy counter, J since the driver was loaded (not since the run's start).
    pub energy_total_j: Reading<f64>,
    /// SM clock, MHz.
    pub sm_clock_mhz: Reading<f64>,
    /// Reasons for lower clocks.
    pub throttle: Reading<Throttle>,
    /// PCIe traffic, received and sent, 10^6 bytes a second.
    pub pcie_mb_s: Reading<f64>,
    /// Uncorrectable ECC errors since the driver's own start of counting.
    pub ecc_uncorrected_total: Reading<u64>,
    /// SM activity, % (Hopper and later).
    pub sm_active_pct: Reading<f64>,
    /// Tensor-core activity, %.
    pub tensor_active_pct: Reading<f64>,
    /// DRAM activity, %.
    pub dram_active_pct: Reading<f64>,
    /// Who is on it; missing where the list couldn't be read (an empty list is "nobody").
    pub processes: Reading<Vec<GpuProcess>>,
}

impl GpuSample {
    /// What it is called in the record: `MIG-<uuid>`, or NVML's index.
    pub fn label(&self) -> String {
        super::inventory::label(self.index, self.mig.as_deref())
    }

    /// Whether it is this device's.
    pub fn is_of(&self, device: &GpuInfo) -> bool {
        self.index == device.index && self.mig.as_deref() == device.mig()
    }
}

/// The job's processes at one tick: rates are since the last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobSample {
    /// Live processes (zombies counted in `n_zombie` alone).
    pub procs: Reading<u32>,
    /// In state R.
    pub n_run: Reading<u32>,
    /// In state S or I.
    pub n_sleep: Reading<u32>,
    /// In state D.
    pub n_disk: Reading<u32>,
    /// In state Z.
    pub n_zombie: Reading<u32>,
    /// In state T or t.
    pub n_stopped: Reading<u32>,
    /// Processes that used over 0.85 core since the last tick.
    pub n_busy: Reading<u32>,
    /// CPU seconds a second of the tree.
    pub cpu_cores: Reading<f64>,
    /// CPU seconds a second of the main process.
    pub main_cores: Reading<f64>,
    /// Resident memory of the tree, MiB (shared pages counted once a process).
    pub rss_mib: Reading<f64>,
    /// Anonymous part of it, MiB.
    pub anon_mib: Reading<f64>,
    /// Shared-memory part of it, MiB.
    pub shmem_mib: Reading<f64>,
    /// Read from storage, 10^6 bytes a second.
    pub read_mb_s: Reading<f64>,
    /// Written to storage, 10^6 bytes a second.
    pub write_mb_s: Reading<f64>,
    /// Major page faults a second.
    pub majflt_s: Reading<f64>,
    /// Processes that appeared in the tree since the last sample.
    pub forks: Reading<u32>,
}

/// The host (or our cgroup, where one limits us) at one tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// Busy share of all cores since the last tick, %.
    pub cpu_pct: Reading<f64>,
    /// Share of time in which some task waited for I/O, %.
    pub io_pressure_pct: Reading<f64>,
    /// Share of time in which our cgroup was held back by its CPU quota, %.
    pub cpu_throttled_pct: Reading<f64>,
    /// The memory limit that is in force for the job, MiB: the cgroup's, else the host's memory.
    pub mem_limit_mib: Reading<f64>,
}

/// Progress as it stood at a tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgressState {
    /// Epoch as displayed.
    pub epoch: Option<f64>,
    /// Total epochs.
    pub epochs: Option<f64>,
    /// Step as displayed.
    pub step: Option<u64>,
    /// Total steps.
    pub steps: Option<u64>,
    /// Percent as displayed.
    pub percent: Option<f64>,
    /// Training loss.
    pub loss: Option<Metric>,
    /// Steps a second.
    pub rate: Option<f64>,
    /// Percent of the whole run, ours.
    pub overall_pct: Option<f64>,
    /// Remaining seconds, ours.
    pub eta_s: Option<f64>,
}

/// One tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When.
    #[serde(flatten)]
    pub stamp: Stamp,
    /// The watched GPUs; empty where there is none.
    pub gpus: Vec<GpuSample>,
    /// Per watched GPU, in the same order: memory of this job's processes, MiB.
    pub job_mem_mib: Vec<Reading<f64>>,
    /// Per watched GPU, in the same order: SM share of this job's processes, %.
    pub job_sm_pct: Vec<Reading<f64>>,
    /// Per watched GPU, in the same order: energy since the run's start, J.
    pub energy_j: Vec<Reading<f64>>,
    /// Per watched GPU, in the same order: uncorrectable ECC errors since the run's start.
    pub ecc_uncorrected: Vec<Reading<u64>>,
    /// The job's processes.
    pub job: JobSample,
    /// The machine.
    pub host: HostSample,
    /// Bytes relayed so far, both streams.
    pub out_bytes: u64,
    /// What the output says.
    pub progress: ProgressState,
}
