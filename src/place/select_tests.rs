//! Wishes held against a machine of three GPUs.

use super::*;
use crate::model::{GpuInfo, Reading, Why};

fn machine() -> (Inventory, Vec<GpuSample>) {
    let gpu = |index, uuid: &str, name: &str, memory_mib| GpuInfo {
        index,
        uuid: Some(uuid.to_owned()),
        name: Some(name.to_owned()),
        memory_mib: Some(memory_mib),
        ..GpuInfo::default()
    };
    let sample = |index, used, total| GpuSample {
        index,
        mem_used_mib: Reading::Value(used),
        mem_total_mib: Reading::Value(total),
        ..GpuSample::default()
    };
    let inventory = Inventory {
        gpus: vec![
            gpu(0, "GPU-aa11", "NVIDIA A100", 81_920),
            gpu(1, "GPU-aa22", "NVIDIA A100", 81_920),
            gpu(2, "GPU-bb33", "Tesla T4", 15_360),
        ],
        ..Inventory::default()
    };
    let samples = vec![
        sample(0, 500.0, 81_920.0),
        sample(1, 60_000.0, 81_920.0),
        sample(2, 500.0, 15_360.0),
    ];
    (inventory, samples)
}

/// The offer where GPU 1 is busy and these are claimed.
fn held(wish: &GpuWish, allowed: Option<&str>, claimed: &[u32]) -> Result<Offer, String> {
    let (inventory, samples) = machine();
    let standings: Vec<Standing> = (0..3)
        .map(|gpu| Standing {
            device: Device::Gpu(gpu),
            busy: (gpu == 1).then(|| "GPU 1 is busy".to_owned()),
        })
        .collect();
    let claims = |device: &Device| {
        let gpu = device.gpu().filter(|gpu| claimed.contains(gpu))?;
        Some(format!("GPU {gpu} is claimed"))
    };
    offer(
        wish,
        &Machine {
            inventory: &inventory,
            samples: &samples,
            standings: &standings,
            allowed,
            claimed: &claims,
        },
    )
}

fn wish(choice: &str) -> GpuWish {
    GpuWish {
        choice: Some(choice.parse().unwrap()),
        ..GpuWish::default()
    }
}

fn fit(offer: &Result<Offer, String>) -> Vec<u32> {
    let offer = offer.as_ref().unwrap();
    offer.fit.iter().filter_map(Device::gpu).collect()
}

#[test]
fn what_nobody_uses_or_claims_is_free() {
    assert_eq!(fit(&held(&GpuWish::default(), None, &[])), [0, 2]);
    let offer = held(&wish("free"), None, &[0]);
    assert_eq!(fit(&offer), [2]);
    assert_eq!(
        offer.unwrap().because,
        ["GPU 0 is claimed", "GPU 1 is busy"]
    );
    assert_eq!(fit(&held(&wish("free"), Some("1,2"), &[])), [2]);
    assert!(fit(&held(&wish("free"), Some(""), &[])).is_empty());
}

#[test]
fn a_count_needs_that_many_that_fit() {
    let offer = held(&wish("2"), None, &[]).unwrap();
    assert_eq!((offer.fit.len(), offer.need), (2, Some(2)));
    let offer = held(&wish("3"), None, &[]).unwrap();
    assert_eq!(
        (offer.fit.len(), offer.need),
        (2, Some(3)),
        "later, perhaps"
    );
    assert_eq!(
        held(&wish("4"), None, &[]),
        Err("there are 3 GPUs".to_owned())
    );
    let said = held(&wish("2"), Some("0"), &[]).unwrap_err();
    assert_eq!(said, "there is 1 GPU in CUDA_VISIBLE_DEVICES");
    let said = held(&wish("1"), Some("-1"), &[]).unwrap_err();
    assert_eq!(said, "there is no GPU in CUDA_VISIBLE_DEVICES");
}

#[test]
fn type_and_memory_narrow() {
    let mut typed = wish("1");
    typed.gpu_type = Some("t4".to_owned());
    assert_eq!(fit(&held(&typed, None, &[])), [2]);
    typed.gpu_type = Some("H100".to_owned());
    let said = held(&typed, None, &[]).unwrap_err();
    assert!(
        said.starts_with("there is no GPU that fits (GPU 0 is NVIDIA A100; "),
        "{said}"
    );
    let mut large = wish("1");
    large.min_free_mib = 40.0 * 1024.0;
    assert_eq!(fit(&held(&large, None, &[])), [0]);
    large.min_free_mib = 100.0 * 1024.0;
    assert!(held(&large, None, &[]).unwrap_err().contains("in all"));
}

#[test]
fn what_is_not_there_is_not_waited_for() {
    let mut waiting = GpuWish {
        gpu_type: Some("H100".to_owned()),
        wait: Wait::Always,
        asked: true,
        ..GpuWish::default()
    };
    let said = held(&waiting, None, &[]).unwrap_err();
    assert!(said.starts_with("there is no GPU that fits"), "{said}");
    waiting.gpu_type = Some("A100".to_owned());
    let offer = held(&waiting, None, &[0]).unwrap();
    assert_eq!((offer.fit.len(), offer.need), (0, None), "later, perhaps");
}

#[test]
fn unread_memory_is_not_free_memory() {
    let (inventory, mut samples) = machine();
    samples[0].mem_used_mib = Reading::Missing(Why::NotSupported);
    let mut large = wish("1");
    large.min_free_mib = 1.0;
    let standings = [];
    let offer = offer(
        &large,
        &Machine {
            inventory: &inventory,
            samples: &samples,
            standings: &standings,
            allowed: Some("0"),
            claimed: &|_| None,
        },
    );
    assert!(fit(&offer).is_empty());
    assert!(offer.unwrap().because[0].contains("does not tell"));
}

#[test]
fn named_ones_are_those() {
    assert_eq!(fit(&held(&wish("id:2,0"), None, &[])), [2, 0]);
    assert_eq!(fit(&held(&wish("id:GPU-b"), None, &[])), [2]);
    let busy = held(&wish("id:1"), None, &[]);
    assert_eq!(fit(&busy), [1], "who names it may have it");
    assert_eq!(busy.unwrap().because, ["GPU 1 is busy"]);
    let mut waiting = wish("id:1");
    waiting.wait = Wait::Always;
    assert!(fit(&held(&waiting, None, &[])).is_empty());
    assert!(fit(&held(&wish("id:0"), None, &[0])).is_empty(), "claimed");
    for (choice, allowed, said) in [
        ("id:7", None, "there is no GPU 7: there are 0, 1, 2"),
        (
            "id:GPU-aa",
            None,
            "GPU-aa fits GPU 0 and GPU 1: write more of it",
        ),
        (
            "id:GPU-zz",
            None,
            "there is no device GPU-zz: 'gpuwatch gpus' lists those there are",
        ),
        ("id:0", Some("1,2"), "0 is not in CUDA_VISIBLE_DEVICES"),
        ("id:2,GPU-bb33", None, "GPU-bb33 is named twice"),
    ] {
        assert_eq!(
            held(&wish(choice), allowed, &[]),
            Err(said.to_owned()),
            "{choice}"
        );
    }
}

#[test]
fn mig_devices_pass_by_their_names() {
    let offer = held(&wish("id:MIG-GPU-bb33/1/0"), None, &[]).unwrap();
    let [Device::Mig { name, gpu }] = &offer.fit[..] else {
        panic!("{offer:?}");
    };
    assert_eq!((name.as_str(), *gpu), ("MIG-GPU-bb33/1/0", Some(2)));
}
