//! The columns of `samples.csv`, in their order, and what stands in the `gpu` column.

use crate::model::GpuInfo;

/// Declares the columns once: as an enum to write and read by, and as the header's names.
macro_rules! columns {
    ($($column:ident $name:literal),+ $(,)?) => {
        /// One column.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Column { $($column),+ }

        /// The first line of `samples.csv`.
        pub const COLUMNS: [&str; [$($name),+].len()] = [$($name),+];
    };
}

columns! {
    Time "time", ElapsedS "elapsed_s", Gpu "gpu",
    GpuUtilPct "gpu_util_pct", MemUtilPct "mem_util_pct",
    MemUsedMib "mem_used_mib", MemTotalMib "mem_total_mib",
    JobMemMib "job_mem_mib", JobSmPct "job_sm_pct",
    TempC "temp_c", PowerW "power_w", PowerLimitW "power_limit_w", EnergyJ "energy_j",
    SmClockMhz "sm_clock_mhz", Throttle "throttle", PcieMbS "pcie_mb_s",
    EccUncorrected "ecc_uncorrected",
    SmActivePct "sm_active_pct", TensorActivePct "tensor_active_pct",
    DramActivePct "dram_active_pct",
    Procs "procs", NRun "n_run", NSleep "n_sleep", NDisk "n_disk", NZombie "n_zombie",
    NStopped "n_stopped", NBusy "n_busy",
    CpuCores "cpu_cores", MainCores "main_cores",
    RssMib "rss_mib", AnonMib "anon_mib", ShmemMib "shmem_mib",
    ReadMbS "read_mb_s", WriteMbS "write_mb_s", MajfltS "majflt_s", Forks "forks",
    HostCpuPct "host_cpu_pct", IoPressurePct "io_pressure_pct",
    CpuThrottledPct "cpu_throttled_pct", MemLimitMib "mem_limit_mib",
    OutBytes "out_bytes",
    Epoch "epoch", Epochs "epochs", Step "step", Steps "steps", Percent "percent",
    Loss "loss", Rate "rate", OverallPct "overall_pct", EtaS "eta_s",
}

/// What stands in the `gpu` column for a MIG device: its UUID, because it has no index of
/// its own that `nvidia-smi` would show. Every other GPU is its NVML index.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels(Vec<(u32, String)>);

impl Labels {
    pub fn new(gpus: &[GpuInfo]) -> Self {
        let mig = |gpu: &GpuInfo| {
            let uuid = gpu.uuid.as_ref()?;
            uuid.starts_with("MIG-").then(|| (gpu.index, uuid.clone()))
        };
        Self(gpus.iter().filter_map(mig).collect())
    }

    /// The MIG device's name, where this index is one.
    pub fn of(&self, index: u32) -> Option<&str> {
        let found = self.0.iter().find(|(i, _)| *i == index);
        found.map(|(_, label)| label.as_str())
    }

    /// The index that a cell stands for.
    pub fn index(&self, cell: &str) -> Option<u32> {
        let named = self.0.iter().find(|(_, label)| label == cell);
        named.map(|(i, _)| *i).or_else(|| cell.parse().ok())
    }

    /// Gives a name that isn't known yet (a record without its `run.json`) an index that no
    /// driver uses.
    pub fn learn(&mut self, cell: &str) -> u32 {
        let index = u32::MAX - self.0.len() as u32;
        self.0.push((index, cell.to_owned()));
        index
    }
}
