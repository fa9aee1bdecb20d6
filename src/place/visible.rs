//! What `CUDA_VISIBLE_DEVICES` makes visible, as CUDA reads it.
//!
//! Pure. The rules are those of the CUDA programming guide's appendix on environment
//! variables, and what its runtime was seen to do where the guide is silent.

use crate::model::Inventory;

/// A device that CUDA would see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// A whole GPU, by NVML index.
    Gpu(u32),
    /// A MIG device by the name that was given, and the GPU that it is part of, if known.
    Mig {
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
}

/// The devices that CUDA shows a process with this value of the variable, in its order: the
/// first is its device 0. `None` is the variable unset.
///
/// Numbers count in the order of PCI bus ids, as with `CUDA_DEVICE_ORDER=PCI_BUS_ID`; see
/// `numbers_are_certain` for other orders.
pub fn visible(value: Option<&str>, inventory: &Inventory) -> Vec<Device> {
    let Some(value) = value else {
        return inventory
            .gpus
            .iter()
            .map(|g| Device::Gpu(g.index))
            .collect();
    };
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
    // A process sees one MIG device at most, and no GPU beside it.
    if let Some(mig) = seen.iter().find(|d| matches!(d, Device::Mig { .. })) {
        return vec![mig.clone()];
    }
    seen
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
    if entry.starts_with("GPU-") {
        return only(inventory, entry.trim_end()).map(Device::Gpu);
    }
    let place = leading_number(entry)?;
    inventory.gpus.get(place).map(|g| Device::Gpu(g.index))
}

/// The number at the start, whatever follows it (`1gpu2` is 1), as C's `strtol` reads it.
fn leading_number(entry: &str) -> Option<usize> {
    let digits = entry.strip_prefix('+').unwrap_or(entry);
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// The one GPU whose UUID starts so; an ambiguous start names none.
fn only(inventory: &Inventory, start: &str) -> Option<u32> {
    let mut found = inventory
        .gpus
        .iter()
        .filter(|g| g.uuid.as_deref().is_some_and(|u| u.starts_with(start)));
    let gpu = found.next()?;
    found.next().is_none().then_some(gpu.index)
}

fn mig(name: &str, inventory: &Inventory) -> Option<Device> {
    let gpu = match name.strip_prefix("MIG-") {
        // The older form names the GPU and two instances.
        Some(rest) if rest.starts_with("GPU-") => {
            let mut parts = rest.split('/');
            let gpu = only(inventory, parts.next()?)?;
            parts.next()?.parse::<u32>().ok()?;
            parts.next()?.parse::<u32>().ok()?;
            Some(gpu)
        }
        // Which GPU this one is on the name doesn't tell.
        _ => only(inventory, name),
    };
    (name.len() > "MIG-".len()).then(|| Device::Mig {
        name: name.to_owned(),
        gpu,
    })
}

#[cfg(test)]
#[path = "visible_tests.rs"]
mod tests;
