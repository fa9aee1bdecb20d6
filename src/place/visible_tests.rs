//! `CUDA_VISIBLE_DEVICES`, string by string.

use super::*;
use crate::model::{GpuInfo, Instance};

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

/// Nothing is seen.
const NONE: &[u32] = &[];

/// What is written, and which GPUs a program sees.
const TABLE: &[(Option<&str>, &[u32])] = &[
    (None, &[0, 1, 2]),
    (Some(""), NONE),
    (Some("-1"), NONE),
    (Some("0"), &[0]),
    (Some("2,0"), &[2, 0]),
    (Some("0,2,-1,1"), &[0, 2]),
    (Some("0,7,1"), &[0]),
    (Some("0,,1"), &[0]),
    (Some("0,x,1"), &[0]),
    (Some("0,0"), NONE),
    (Some("0,1,0"), NONE),
    (Some("0,-1,0"), &[0]),
    (Some("1gpu2"), &[1]),
    (Some("1 , 2"), &[1, 2]),
    (Some(" +1,2"), &[1, 2]),
    (Some("NoDevFiles"), NONE),
    (Some("all"), NONE),
    (Some("99999999999999999999"), NONE),
    (Some("GPU-bbbb3333"), &[2]),
    (Some("GPU-b"), &[2]),
    (Some("GPU-aaaa2,GPU-aaaa1"), &[1, 0]),
    (Some("GPU-bbbb,GPU-aaaa,0"), &[2]),
    (Some("GPU-cccc"), NONE),
    (Some("0,GPU-aaaa1111"), NONE),
    (Some("gpu-aaaa1111"), NONE),
    // Numbers in odd dress.
    (Some("00"), &[0]),
    (Some("02"), &[2]),
    (Some("+0"), &[0]),
    (Some("++0"), NONE),
    (Some("+-0"), NONE),
    (Some("0 "), &[0]),
    (Some("\t1"), &[1]),
    (Some("1\n"), &[1]),
    (Some("2.9"), &[2]),
    (Some("1e1"), &[1]),
    (Some("1x,2y"), &[1, 2]),
    (Some("0:1"), &[0]),
    (Some("1-2"), &[1]),
    (Some("0;1"), &[0]),
    (Some("0 1 2"), &[0]),
    (Some("3"), NONE),
    (Some("1000000"), NONE),
    (Some("-2"), NONE),
    (Some("١"), NONE),
    // The end of the list.
    (Some(","), NONE),
    (Some(",0"), NONE),
    (Some("0,"), &[0]),
    (Some("0,1,"), &[0, 1]),
    (Some(" "), NONE),
    (Some("0, ,1"), &[0]),
    (Some("-1,0"), NONE),
    (Some("2,-1"), &[2]),
    (Some("1,-1,1"), &[1]),
    (Some("0,3,1"), &[0]),
    (Some("none"), NONE),
    (Some("\"0\""), NONE),
    // Twice.
    (Some("1,1"), NONE),
    (Some("0,1,2,0"), NONE),
    (Some("1,01"), NONE),
    (Some("GPU-bbbb3333,GPU-bbbb"), NONE),
    (Some("2,GPU-bbbb3333"), NONE),
    (Some("0,9,0"), &[0]),
    // By UUID.
    (Some("GPU-aaaa1111,GPU-aaaa2222,GPU-bbbb3333"), &[0, 1, 2]),
    (Some("GPU-aaaa"), NONE),
    (Some("GPU-"), NONE),
    (Some("GPU"), NONE),
    (Some(" GPU-bbbb3333"), &[2]),
    (Some("GPU-bbbb3333 "), &[2]),
    (Some("GPU-bbbb3333x"), NONE),
    (Some("GPU-BBBB3333"), NONE),
    (Some("GPU-bbbb3333,1"), &[2, 1]),
    (Some("1,GPU-bbbb3333"), &[1, 2]),
    (Some("GPU-cccc,0"), NONE),
    (Some("0,GPU-cccc,1"), &[0]),
    (Some("bbbb3333"), NONE),
];

#[test]
fn as_cuda_reads_it() {
    for (value, sees) in TABLE {
        let seen: Vec<_> = visible(*value, &machine())
            .iter()
            .filter_map(Device::gpu)
            .collect();
        assert_eq!(seen, *sees, "{value:?}");
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

/// GPU 1 is split in two, GPU 2 into nothing.
fn split() -> Inventory {
    let mut inventory = machine();
    let part = |uuid: &str, gi| GpuInfo {
        index: 1,
        uuid: Some(uuid.to_owned()),
        instance: Some(Instance {
            gi,
            ..Instance::default()
        }),
        ..GpuInfo::default()
    };
    inventory.gpus[1].mig_mode = true;
    inventory.gpus[2].mig_mode = true;
    inventory.instances = vec![part("MIG-1234", 3), part("MIG-1256", 5)];
    inventory
}

/// What is written on a machine with MIG, and the one device that a program sees.
const SPLIT: &[(Option<&str>, Option<&str>)] = &[
    // CUDA shows one MIG device, and no GPU beside it.
    (None, Some("MIG-1234")),
    (Some("MIG-1234"), Some("MIG-1234")),
    (Some("MIG-1256"), Some("MIG-1256")),
    (Some(" MIG-1256 "), Some("MIG-1256")),
    (Some("MIG-1256,MIG-1234"), Some("MIG-1256")),
    (Some("MIG-125"), Some("MIG-1256")),
    (Some("MIG-12"), None),
    (Some("MIG-9"), None),
    (Some("MIG-"), None),
    (Some("mig-1234"), None),
    (Some("MIG-1234,MIG-1234"), None),
    (Some("MIG-1234,MIG-123"), None),
    (Some("MIG-9,MIG-1234"), None),
    (Some("0"), Some("0")),
    (Some("0,MIG-1256"), Some("MIG-1256")),
    (Some("MIG-1256,0"), Some("MIG-1256")),
    (Some("0,-1,MIG-1256"), Some("0")),
    // By GPU and instances, as drivers before 470 have it.
    (Some("MIG-GPU-aaaa2222/3/0"), Some("MIG-1234")),
    (Some("MIG-GPU-aaaa2222/5/0"), Some("MIG-1256")),
    (Some("MIG-GPU-aaaa2/5/0"), Some("MIG-1256")),
    (Some("MIG-GPU-aaaa2222/5/1"), None),
    (Some("MIG-GPU-aaaa2222/4/0"), None),
    (Some("MIG-GPU-aaaa2222/5"), None),
    (Some("MIG-GPU-aaaa2222/x/0"), None),
    (Some("MIG-GPU-aaaa/5/0"), None),
    (Some("MIG-GPU-aaaa1111/5/0"), None),
    (Some("MIG-GPU-aaaa2222/5/0,MIG-1256"), None),
    // A split GPU is its first part, one split into nothing is none.
    (Some("1"), Some("MIG-1234")),
    (Some("GPU-aaaa2222"), Some("MIG-1234")),
    (Some("1,MIG-1234"), None),
    (Some("2"), None),
    (Some("0,2"), Some("0")),
];

#[test]
fn as_cuda_reads_it_on_split_gpus() {
    for (value, sees) in SPLIT {
        let seen: Vec<_> = visible(*value, &split())
            .iter()
            .map(|device| device.shown().replace("GPU ", ""))
            .collect();
        assert_eq!(seen, sees.iter().copied().collect::<Vec<_>>(), "{value:?}");
    }
}

#[test]
fn all_devices_are_whole_gpus_and_parts() {
    let shown: Vec<_> = all(&split()).iter().map(Device::shown).collect();
    assert_eq!(shown, ["GPU 0", "MIG-1234", "MIG-1256"]);
    let listed: Vec<_> = listed("MIG-1256,0", &split());
    assert_eq!(listed.len(), 2, "one of them is chosen by name");
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

#[test]
fn a_value_that_shows_less_than_it_names_is_doubted() {
    for (value, said) in [
        (
            "GPU-aaaa",
            "GPU-aaaa fits GPUs 0 and 1, and CUDA ends the list there",
        ),
        (
            "2,GPU-aaaa,0",
            "GPU-aaaa fits GPUs 0 and 1, and CUDA ends the list there",
        ),
        ("0,7", "7 names no device, and CUDA ends the list there"),
        (
            "GPU-cccc",
            "GPU-cccc names no device, and CUDA ends the list there",
        ),
        ("0,0", "it names a device twice, and so CUDA shows none"),
    ] {
        assert_eq!(doubt(value, &machine()).as_deref(), Some(said), "{value}");
    }
    for value in ["", "-1", "0", "0,1", "2,0", "GPU-bbbb", "0,-1,1", "1,"] {
        assert_eq!(doubt(value, &machine()), None, "{value}");
    }
}
