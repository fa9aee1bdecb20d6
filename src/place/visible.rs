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
mod tests {
    use super::*;
    use crate::model::GpuInfo;

    fn machine() -> Inventory {
        let gpu = |index, uuid: &str| GpuInfo {
            index,
            uuid: Some(uuid.to_owned()),
            name: Some("A100".to_owned()),
            ..GpuInfo::default()
        };
        Inventory {
            gpus: vec![
                gpu(0, "GPU-aaaa1111"),
                gpu(1, "GPU-aaaa2222"),
                gpu(2, "GPU-bbbb3333"),
            ],
            ..Inventory::default()
        }
    }

    #[test]
    fn as_cuda_reads_it() {
        let none: &[u32] = &[];
        for (value, sees) in [
            (None, &[0, 1, 2][..]),
            (Some(""), none),
            (Some("-1"), none),
            (Some("0"), &[0]),
            (Some("2,0"), &[2, 0]),
            (Some("0,2,-1,1"), &[0, 2]),
            (Some("0,7,1"), &[0]),
            (Some("0,,1"), &[0]),
            (Some("0,x,1"), &[0]),
            (Some("0,0"), none),
            (Some("0,1,0"), none),
            (Some("0,-1,0"), &[0]),
            (Some("1gpu2"), &[1]),
            (Some("1 , 2"), &[1, 2]),
            (Some(" +1,2"), &[1, 2]),
            (Some("NoDevFiles"), none),
            (Some("all"), none),
            (Some("99999999999999999999"), none),
            (Some("GPU-bbbb3333"), &[2]),
            (Some("GPU-b"), &[2]),
            (Some("GPU-aaaa2,GPU-aaaa1"), &[1, 0]),
            (Some("GPU-bbbb,GPU-aaaa,0"), &[2]),
            (Some("GPU-cccc"), none),
            (Some("0,GPU-aaaa1111"), none),
            (Some("gpu-aaaa1111"), none),
        ] {
            let seen: Vec<_> = visible(value, &machine())
                .iter()
                .filter_map(Device::gpu)
                .collect();
            assert_eq!(seen, sees, "{value:?}");
        }
    }

    #[test]
    fn at_most_one_mig_device_is_visible() {
        let mig = |name: &str, gpu| {
            vec![Device::Mig {
                name: name.to_owned(),
                gpu,
            }]
        };
        for (value, sees) in [
            ("MIG-1234", mig("MIG-1234", None)),
            ("MIG-1234,MIG-5678", mig("MIG-1234", None)),
            ("MIG-GPU-bbbb3333/1/0", mig("MIG-GPU-bbbb3333/1/0", Some(2))),
            (
                "MIG-GPU-bbbb3333/1/0,0",
                mig("MIG-GPU-bbbb3333/1/0", Some(2)),
            ),
            ("MIG-GPU-cccc/1/0", vec![]),
            ("MIG-GPU-bbbb3333/1", vec![]),
            ("MIG-", vec![]),
        ] {
            assert_eq!(visible(Some(value), &machine()), sees, "{value}");
        }
    }

    #[test]
    fn numbers_count_what_may_be_opened() {
        let mut inventory = machine();
        inventory.gpus.remove(1);
        assert_eq!(visible(Some("1"), &inventory), [Device::Gpu(2)]);
        assert_eq!(visible(Some("2"), &inventory), []);
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_written_names_existing_gpus_once(value in "[-+0-9, GPUMIabx/]{0,24}|.*") {
            let seen = visible(Some(&value), &machine());
            let mut indexes: Vec<_> = seen.iter().filter_map(Device::gpu).collect();
            assert!(indexes.iter().all(|i| *i < 3));
            indexes.sort_unstable();
            indexes.dedup();
            assert!(seen.len() <= indexes.len() + 1);
        }
    }

    #[test]
    fn equal_gpus_leave_no_doubt_about_numbers() {
        let mut inventory = machine();
        assert!(numbers_are_certain(None, &inventory));
        inventory.gpus[2].name = Some("T4".to_owned());
        assert!(!numbers_are_certain(None, &inventory));
        assert!(!numbers_are_certain(Some("FASTEST_FIRST"), &inventory));
        assert!(numbers_are_certain(Some("PCI_BUS_ID"), &inventory));
        inventory.gpus.truncate(1);
        assert!(numbers_are_certain(None, &inventory));
    }
}
