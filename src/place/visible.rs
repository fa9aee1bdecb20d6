//! What `CUDA_VISIBLE_DEVICES` makes visible, as CUDA reads it.
//!
//! Pure. The rules are those of the CUDA programming guide's appendix on environment
//! variables, and what its runtime was seen to do where the guide is silent.

use crate::model::{GpuInfo, Inventory};

/// A device that CUDA would see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// A whole GPU, by NVML index.
    Gpu(u32),
    /// A MIG device, and the GPU that it is part of, if known.
    Mig {
        /// Its UUID as the driver writes it; of one that the driver doesn't show, what was given:
        /// `MIG-<uuid>` or `MIG-GPU-<uuid>/<gi>/<ci>`.
        name: String,
        /// NVML index of its GPU.
        gpu: Option<u32>,
    },
}

impl Device {
    /// The NVML index of the GPU that this is or is part of.
    pub fn gpu(&self) -> Option<u32> {
        match self {
            Self::Gpu(index) => Some(*index),
            Self::Mig { gpu, .. } => *gpu,
        }
    }

    /// What is known of it.
    pub fn info<'i>(&self, inventory: &'i Inventory) -> Option<&'i GpuInfo> {
        match self {
            Self::Gpu(index) => inventory.gpus.iter().find(|gpu| gpu.index == *index),
            Self::Mig { name, .. } => inventory.instances.iter().find(|i| i.mig() == Some(name)),
        }
    }

    /// As people are told of it.
    pub fn shown(&self) -> String {
        match self {
            Self::Gpu(index) => format!("GPU {index}"),
            Self::Mig { name, .. } => name.clone(),
        }
    }
}

impl From<&GpuInfo> for Device {
    fn from(info: &GpuInfo) -> Self {
        match info.mig() {
            None => Self::Gpu(info.index),
            Some(uuid) => Self::Mig {
                name: uuid.to_owned(),
                gpu: Some(info.index),
            },
        }
    }
}

/// Every device that a process could have: GPUs that aren't split, and the parts of those that are.
pub fn all(inventory: &Inventory) -> Vec<Device> {
    let whole = |gpu: &&GpuInfo| gpu.instance.is_some() || !gpu.mig_mode;
    inventory
        .devices()
        .filter(whole)
        .map(Device::from)
        .collect()
}

/// The devices that CUDA shows a process with this value of the variable, in its order: the
/// first is its device 0. `None` is the variable unset.
///
/// Numbers count in the order of PCI bus ids, as with `CUDA_DEVICE_ORDER=PCI_BUS_ID`; see
/// `numbers_are_certain` for other orders.
pub fn visible(value: Option<&str>, inventory: &Inventory) -> Vec<Device> {
    let seen = value.map_or_else(|| all(inventory), |value| listed(value, inventory));
    // A process sees one MIG device at most, and no GPU beside it.
    if let Some(mig) = seen.iter().find(|d| matches!(d, Device::Mig { .. })) {
        return vec![mig.clone()];
    }
    seen
}

/// The devices that this value names, though a process may not see all of them at once.
pub fn listed(value: &str, inventory: &Inventory) -> Vec<Device> {
    let mut seen: Vec<Device> = Vec::new();
    for entry in value.split(',') {
        // An entry that names nothing ends the list there.
        let Some(device) = device(entry, inventory) else {
            break;
        };
        // Named twice: none at all.
        if seen.contains(&device) {
            return Vec::new();
        }
        seen.push(device);
    }
    seen
}

/// What is wrong with a value that shows less than it seems to name, as a sentence without a full
/// stop. None: it means what it says, an early `-1` included.
pub fn doubt(value: &str, inventory: &Inventory) -> Option<String> {
    let entries = || value.split(',').map(str::trim);
    let first_bad = entries().find(|entry| device(entry, inventory).is_none());
    match first_bad {
        None if listed(value, inventory).is_empty() => {
            Some("it names a device twice, and so CUDA shows none".to_owned())
        }
        None | Some("" | "-1") => None,
        Some(entry) => {
            let fits = |gpu: &&GpuInfo| gpu.uuid.as_ref().is_some_and(|u| u.starts_with(entry));
            let fitting: Vec<String> = inventory
                .gpus
                .iter()
                .filter(fits)
                .map(|gpu| gpu.index.to_string())
                .collect();
            let why = if fitting.len() > 1 {
                format!("fits GPUs {}", fitting.join(" and "))
            } else {
                "names no device".to_owned()
            };
            Some(format!("{entry} {why}, and CUDA ends the list there"))
        }
    }
}

/// Whether a number in the variable surely means the GPU that `visible` says.
///
/// CUDA's own order is fastest first, unless `CUDA_DEVICE_ORDER` (given here) is
/// `PCI_BUS_ID`; between equal GPUs it is that of the bus again.
pub fn numbers_are_certain(order: Option<&str>, inventory: &Inventory) -> bool {
    let mut names = inventory.gpus.iter().map(|g| g.name.as_deref());
    let first = names.next().flatten();
    order == Some("PCI_BUS_ID")
        || inventory.gpus.len() < 2
        || (first.is_some() && names.all(|n| n == first))
}

fn device(entry: &str, inventory: &Inventory) -> Option<Device> {
    let entry = entry.trim_start();
    if entry.starts_with("MIG-") {
        return mig(entry.trim_end(), inventory);
    }
    let gpu = if entry.starts_with("GPU-") {
        only(&inventory.gpus, entry.trim_end())?
    } else {
        inventory.gpus.get(leading_number(entry)?)?
    };
    if !gpu.mig_mode {
        return Some(Device::Gpu(gpu.index));
    }
    // Of a GPU that is split, the first part; of one split into nothing, nothing.
    inventory.instances_of(gpu.index).next().map(Device::from)
}

/// The number at the start, whatever follows it (`1gpu2` is 1), as C's `strtol` reads it.
fn leading_number(entry: &str) -> Option<usize> {
    let digits = entry.strip_prefix('+').unwrap_or(entry);
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// The one of these whose UUID starts so; an ambiguous start names none.
fn only<'i>(devices: &'i [GpuInfo], start: &str) -> Option<&'i GpuInfo> {
    let starts = |uuid: &String| uuid.starts_with(start);
    let mut found = devices
        .iter()
        .filter(|d| d.uuid.as_ref().is_some_and(starts));
    let device = found.next()?;
    let whole = device.uuid.as_deref() == Some(start);
    (whole || found.next().is_none()).then_some(device)
}

fn mig(name: &str, inventory: &Inventory) -> Option<Device> {
    let parts = &inventory.instances;
    if name.len() == "MIG-".len() {
        return None;
    }
    // Drivers before 470 write it as the GPU and two instances, and then it is the UUID, too.
    if let Some(known) = only(parts, name) {
        return Some(known.into());
    }
    let unknown = |gpu: Option<u32>| Device::Mig {
        name: name.to_owned(),
        gpu,
    };
    let Some(rest) = name.strip_prefix("MIG-").filter(|r| r.starts_with("GPU-")) else {
        // Which GPU it is on the name doesn't tell. Where parts are to be seen it is none of them.
        return parts.is_empty().then(|| unknown(None));
    };
    let mut ids = rest.split('/');
    let gpu = only(&inventory.gpus, ids.next()?)?;
    let (gi, ci) = (ids.next()?.parse::<u32>().ok()?, ids.next()?.parse().ok()?);
    let here = |i: &&GpuInfo| i.instance.is_some_and(|i| (i.gi, i.ci) == (gi, ci));
    match inventory.instances_of(gpu.index).find(here) {
        Some(known) => Some(known.into()),
        None => parts.is_empty().then(|| unknown(Some(gpu.index))),
    }
}

#[cfg(test)]
#[path = "visible_tests.rs"]
mod tests;
