//! The kernel's side of a machine, one thing wrong at a time.

use super::*;

fn loaded(names: &[&str]) -> Facts {
    let file = |name: &&str| DeviceFile {
        name: (*name).to_owned(),
        usable: true,
        mode: 0o666,
        group: 0,
    };
    Facts {
        kernel: Kernel {
            version: Some("580.95.05".to_owned()),
            devices: names.iter().map(file).collect(),
            pci: vec!["0000:1a:00.0".to_owned()],
            ..Kernel::default()
        },
        ..Facts::default()
    }
}

fn wrong(facts: &Facts) -> (String, String) {
    let mut found = vec![module(facts)];
    found.extend(device_files(facts));
    let wrong: Vec<Check> = found.into_iter().filter(Check::is_wrong).collect();
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    (wrong[0].found.clone(), wrong[0].cure.clone().unwrap())
}

#[test]
fn a_whole_driver_is_fine() {
    let facts = loaded(&["nvidia0", "nvidiactl", "nvidia-uvm"]);
    assert_eq!(module(&facts).state, State::Ok);
    assert_eq!(device_files(&facts)[0].state, State::Ok);
}

#[test]
fn without_uvm_cuda_does_not_start() {
    let mut facts = loaded(&["nvidia0", "nvidiactl"]);
    let (found, cure) = wrong(&facts);
    assert!(found.contains("/dev/nvidia-uvm"), "{found}");
    assert!(cure.contains("modprobe nvidia_uvm"), "{cure}");
    facts.machine.container = true;
    assert!(wrong(&facts).1.contains("--gpus all"));
    facts.machine.container = false;
    facts.kernel.modprobe = true;
    assert_eq!(device_files(&facts)[0].state, State::Note);
}

#[test]
fn files_that_this_user_may_not_use_are_named() {
    let mut facts = loaded(&["nvidia0", "nvidiactl", "nvidia-uvm"]);
    facts.kernel.devices[0] = DeviceFile {
        name: "nvidia0".to_owned(),
        usable: false,
        mode: 0o20_660,
        group: 44,
    };
    let (found, cure) = wrong(&facts);
    assert!(
        found.contains("/dev/nvidia0 (mode 660, group 44)"),
        "{found}"
    );
    assert!(cure.contains("usermod -aG"), "{cure}");
}

#[test]
fn no_driver_is_told_apart_from_no_gpu_and_no_share_of_one() {
    let mut facts = loaded(&[]);
    facts.kernel.version = None;
    assert!(wrong(&facts).1.contains("modprobe nvidia"));
    facts.machine.container = true;
    assert!(wrong(&facts).1.contains("--gpus all"));
    facts.machine.container = false;
    facts.kernel.pci.clear();
    assert!(wrong(&facts).0.contains("no NVIDIA GPU is plugged in"));
    facts.kernel.wsl = true;
    assert!(wrong(&facts).1.contains("wsl --update"));
    facts.kernel.devices.push(DeviceFile {
        name: "dxg".to_owned(),
        usable: true,
        ..DeviceFile::default()
    });
    assert_eq!(module(&facts).state, State::Ok);
    assert_eq!(device_files(&facts), []);
}
