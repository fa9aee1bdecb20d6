//! `CUDA_VISIBLE_DEVICES`, string by string.

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
