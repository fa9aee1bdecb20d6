//! The kernel's side of the driver: `/proc/driver/nvidia`, `/dev`, the PCI bus.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::Access;

use crate::doctor::facts::{DeviceFile, Kernel};

/// NVIDIA's number among vendors of PCI devices.
const NVIDIA: &str = "0x10de";
/// The class of display controllers; a switch or an audio device has another.
const DISPLAY: &str = "0x03";

/// Looks below this root.
pub fn look(root: &Path) -> Kernel {
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let release = text("proc/sys/kernel/osrelease").to_ascii_lowercase();
    Kernel {
        version: version(&text("proc/driver/nvidia/version")),
        devices: devices(&root.join("dev")),
        pci: pci(&root.join("sys/bus/pci/devices")),
        wsl: release.contains("microsoft"),
        modprobe: ["usr/bin", "sbin", "usr/sbin"]
            .iter()
            .any(|folder| root.join(folder).join("nvidia-modprobe").exists()),
    }
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue ...`
fn version(text: &str) -> Option<String> {
    let line = text.lines().find(|l| l.starts_with("NVRM version"))?;
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    line.split_whitespace().find(is_version).map(str::to_owned)
}

fn devices(dev: &Path) -> Vec<DeviceFile> {
    let mut found: Vec<DeviceFile> = fs::read_dir(dev)
        .into_iter()
        .flatten()
        .filter_map(|entry| device(&entry.ok()?.path()))
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// One that a program opens to compute; `nvidia-modeset` and `nvidia-caps` aren't.
fn device(path: &Path) -> Option<DeviceFile> {
    let name = path.file_name()?.to_str()?;
    let number = name
        .strip_prefix("nvidia")
        .is_some_and(|n| n.parse::<u32>().is_ok());
    if !number && !["nvidiactl", "nvidia-uvm", "dxg"].contains(&name) {
        return None;
    }
    let meta = fs::metadata(path).ok()?;
    Some(DeviceFile {
        name: name.to_owned(),
        usable: rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK).is_ok(),
        mode: meta.mode(),
        group: meta.gid(),
    })
}

fn pci(devices: &Path) -> Vec<String> {
    let is = |folder: &Path, file: &str, start: &str| {
        fs::read_to_string(folder.join(file)).is_ok_and(|text| text.starts_with(start))
    };
    let mut found: Vec<String> = fs::read_dir(devices)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            let ours = is(&folder, "vendor", NVIDIA) && is(&folder, "class", DISPLAY);
            ours.then(|| folder.file_name()?.to_str().map(str::to_owned))?
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_read_below_its_root() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\nGCC version: gcc 13.2.0\n",
        );
        for name in [
            "nvidia0",
            "nvidia10",
            "nvidiactl",
            "nvidia-uvm",
            "nvidia-modeset",
            "null",
        ] {
            put(&format!("dev/{name}"), "");
        }
        let bus = "sys/bus/pci/devices";
        for (id, vendor, class) in [
            ("0000:41:00.0", "0x10de\n", "0x030200\n"),
            ("0000:41:00.1", "0x10de\n", "0x040300\n"),
            ("0000:05:00.0", "0x1002\n", "0x030000\n"),
        ] {
            put(&format!("{bus}/{id}/vendor"), vendor);
            put(&format!("{bus}/{id}/class"), class);
        }
        let kernel = look(root.path());
        assert_eq!(kernel.version.as_deref(), Some("580.95.05"));
        let names: Vec<&str> = kernel.devices.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["nvidia-uvm", "nvidia0", "nvidia10", "nvidiactl"]);
        assert!(kernel.devices.iter().all(|d| d.usable));
        assert_eq!(kernel.pci, ["0000:41:00.0"]);
        assert!(!kernel.wsl && !kernel.modprobe);
    }

    #[test]
    fn an_empty_root_has_nothing() {
        let root = tempfile::tempdir().unwrap();
        let kernel = look(root.path());
        assert_eq!(kernel.version, None);
        assert!(kernel.devices.is_empty() && kernel.pci.is_empty());
    }
}
