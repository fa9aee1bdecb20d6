//! What the driver says is installed: facts that don't change while a run lasts.

use serde::{Deserialize, Serialize};

/// One GPU (or MIG device), as it stands in `run.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuInfo {
    /// NVML's index: the order of PCI bus ids.
    pub index: u32,
    /// `GPU-...` or `MIG-...`; null where the driver doesn't tell.
    pub uuid: Option<String>,
    /// The product's name.
    pub name: Option<String>,
    /// Total memory in MiB.
    pub memory_mib: Option<u64>,
    /// The enforced power limit in W.
    #[serde(default, with = "super::number")]
    pub power_limit_w: Option<f64>,
    /// The temperature in degrees Celsius at which the hardware slows down.
    pub slowdown_c: Option<u32>,
    /// The index on the host, where it is known to be this one (null inside a container).
    pub host_index: Option<u32>,
}

/// The driver and its GPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Driver version, such as `580.95.05`.
    pub driver: Option<String>,
    /// The newest CUDA that the driver supports, such as `13.0`.
    pub cuda: Option<String>,
    /// All GPUs that may be opened, by NVML index.
    pub gpus: Vec<GpuInfo>,
}
