//! `CUDA_VISIBLE_DEVICES`: whatever is written names GPUs that exist, each once; an entry that
//! names nothing ends the list; what was seen, written down again, is seen again. The input's
//! first byte is how many GPUs there are, its second how their UUIDs begin.
#![no_main]

use gpuwatch::model::{GpuInfo, Inventory};
use gpuwatch::place::visible::{Device, visible};
use libfuzzer_sys::fuzz_target;

/// GPUs whose UUIDs share their beginnings, and whose indices have a hole.
fn machine(gpus: u8, kind: u8) -> Inventory {
    let gpu = |place: u32| GpuInfo {
        index: place + u32::from(place > 1 && kind & 1 == 1),
        uuid: match kind >> 1 & 3 {
            0 => Some(format!("GPU-{place:08x}")),
            1 => Some(format!("GPU-aaaa{}", "b".repeat(place as usize))),
            2 if place == 1 => Some("MIG-0aaaa".to_owned()),
            2 => Some(format!("GPU-{}", place % 2)),
            _ => None,
        },
        ..GpuInfo::default()
    };
    Inventory {
        gpus: (0..u32::from(gpus)).map(gpu).collect(),
        ..Inventory::default()
    }
}

/// The number by which CUDA names a device, or its name.
fn written(device: &Device, inventory: &Inventory) -> String {
    match device {
        Device::Gpu(index) => {
            let place = inventory.gpus.iter().position(|g| g.index == *index);
            place.expect("it exists").to_string()
        }
        Device::Mig { name, .. } => name.clone(),
    }
}

fuzz_target!(|data: &[u8]| {
    let [gpus, kind, value @ ..] = data else {
        return;
    };
    let inventory = machine(gpus % 17, *kind);
    // As the supervisor takes it from the environment.
    let value = String::from_utf8_lossy(value);
    let seen = visible(Some(&value), &inventory);

    assert!(seen.len() <= inventory.gpus.len().max(1));
    for (i, device) in seen.iter().enumerate() {
        assert!(!seen[..i].contains(device), "{device:?} twice");
        let known = |index| inventory.gpus.iter().any(|g| g.index == index);
        assert!(device.gpu().is_none_or(known), "{device:?} doesn't exist");
    }
    let migs = seen.iter().filter(|d| matches!(d, Device::Mig { .. }));
    assert!(migs.count() == 0 || seen.len() == 1);

    // What follows an entry that names nothing changes nothing.
    for junk in [",-1", ",", ",x,0", ",-1,0,0"] {
        assert_eq!(visible(Some(&format!("{value}{junk}")), &inventory), seen);
    }
    let entries: Vec<&str> = value.split(',').collect();
    let alone = |entry: &str| !visible(Some(entry), &inventory).is_empty();
    let good = entries.iter().take_while(|entry| alone(entry)).count();
    assert_eq!(visible(Some(&entries[..good].join(",")), &inventory), seen);
    if good == 0 {
        assert!(seen.is_empty());
    }

    let again: Vec<String> = seen.iter().map(|d| written(d, &inventory)).collect();
    assert_eq!(visible(Some(&again.join(",")), &inventory), seen);
});
