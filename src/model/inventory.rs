//! What the driver says is installed: facts that don't change while a run lasts.

use serde::{Deserialize, Serialize};

/// One GPU (or MIG device), as it stands in `run.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuInfo {
    /// NVML's index: the order of PCI bus ids. Of a MIG device, the GPU's that it is part of.
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
    /// Where it is plugged in, such as `00000000:1A:00.0`: the same inside a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_bus: Option<String>,
    /// The index on the host, where it is known to be this one (null inside a container).
    pub host_index: Option<u32>,
    /// It is split into MIG devices, and can't be used as a whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mig_mode: bool,
    /// It is a MIG device, this one; absent of a whole GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
}

/// Which part of its GPU a MIG device is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Its number among the GPU's MIG devices, which may have holes.
    pub place: u32,
    /// The GPU instance's id.
    pub gi: u32,
    /// The compute instance's id.
    pub ci: u32,
}

impl GpuInfo {
    /// What it is called in the record: `MIG-<uuid>`, or NVML's index.
    pub fn label(&self) -> String {
        label(self.index, self.mig())
    }

    /// A MIG device's UUID; None of a whole GPU.
    pub fn mig(&self) -> Option<&str> {
        self.instance.and(self.uuid.as_deref())
    }
}

/// A device's name: a MIG device's UUID, or the GPU's index.
pub fn label(index: u32, mig: Option<&str>) -> String {
    mig.map_or_else(|| index.to_string(), str::to_owned)
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
    /// The MIG devices of all of them.
    #[serde(default)]
    pub instances: Vec<GpuInfo>,
}

impl Inventory {
    /// Whole GPUs, and MIG devices after them.
    pub fn devices(&self) -> impl Iterator<Item = &GpuInfo> {
        self.gpus.iter().chain(&self.instances)
    }

    /// The MIG devices of one GPU.
    pub fn instances_of(&self, gpu: u32) -> impl Iterator<Item = &GpuInfo> {
        self.instances.iter().filter(move |i| i.index == gpu)
    }
}
