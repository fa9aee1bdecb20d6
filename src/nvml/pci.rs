//! NVIDIA's GPUs as the bus knows them, without waking one or asking the driver.
//!
//! Owns reading that from sysfs, which shows the host's bus inside a container too.

use std::fs;
use std::path::Path;

/// Where the bus lists its devices.
pub const DEVICES: &str = "/sys/bus/pci/devices";
/// NVIDIA's, and the first digits of the class of what shows or computes.
const VENDOR: &str = "0x10de";
const CLASS: &str = "0x03";

/// A GPU that its driver is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// `0000:1a:00.0`
    bus: String,
    /// Powered down until somebody uses it (a laptop's).
    pub asleep: bool,
}

/// All of them, in the order in which NVML numbers them.
pub fn nvidia_gpus(devices: &Path) -> Vec<Found> {
    let Ok(entries) = fs::read_dir(devices) else {
        return Vec::new();
    };
    let mut found: Vec<(u32, Found)> = entries
        .flatten()
        .filter_map(|entry| look(&entry.path(), entry.file_name().to_str()?))
        .collect();
    found.sort_by(|(a, x), (b, y)| (a, &x.bus).cmp(&(b, &y.bus)));
    found.into_iter().map(|(_, gpu)| gpu).collect()
}

/// The GPU with its domain, by which it is sorted first.
fn look(folder: &Path, name: &str) -> Option<(u32, Found)> {
    let says = |file: &str, start: &str| {
        fs::read_to_string(folder.join(file)).is_ok_and(|text| text.starts_with(start))
    };
    let driver = fs::read_link(folder.join("driver")).ok()?;
    let ours = says("vendor", VENDOR) && says("class", CLASS) && driver.ends_with("nvidia");
    let (domain, _) = name.split_once(':')?;
    ours.then_some((
        u32::from_str_radix(domain, 16).ok()?,
        Found {
            bus: name.to_owned(),
            asleep: says("power/runtime_status", "suspended"),
        },
    ))
}

/// Whether there are some and every one sleeps. They would be woken by initialising NVML.
pub fn all_asleep(gpus: &[Found]) -> bool {
    !gpus.is_empty() && gpus.iter().all(|gpu| gpu.asleep)
}

/// Which of them is at this place of the bus, written as NVML does (`00000000:1A:00.0`).
pub fn place(gpus: &[Found], bus: &str) -> Option<u32> {
    let (domain, rest) = bus.split_once(':')?;
    let domain = u32::from_str_radix(domain, 16).ok()?;
    let bus = format!("{domain:04x}:{}", rest.to_ascii_lowercase());
    let place = gpus.iter().position(|gpu| gpu.bus == bus)?;
    u32::try_from(place).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_bus_tells_which_gpu_is_the_hosts_second_and_which_sleeps() {
        let root = tempfile::tempdir().unwrap();
        for (bus, vendor, class, driver, power) in [
            ("10000:01:00.0", "0x10de", "0x030200", "nvidia", "active"),
            ("0000:c1:00.0", "0x10de", "0x030200", "nvidia", "suspended"),
            ("0000:1a:00.0", "0x10de", "0x030000", "nvidia", "suspended"),
            (
                "0000:1a:00.1",
                "0x10de",
                "0x040300",
                "snd_hda_intel",
                "active",
            ),
            ("0000:02:00.0", "0x8086", "0x030000", "i915", "active"),
            ("0000:03:00.0", "0x10de", "0x030000", "vfio-pci", "active"),
        ] {
            let folder = root.path().join(bus);
            fs::create_dir_all(folder.join("power")).unwrap();
            fs::write(folder.join("vendor"), vendor).unwrap();
            fs::write(folder.join("class"), class).unwrap();
            fs::write(folder.join("power/runtime_status"), power).unwrap();
            symlink(format!("../drivers/{driver}"), folder.join("driver")).unwrap();
        }
        let found = nvidia_gpus(root.path());
        assert_eq!(place(&found, "00000000:1A:00.0"), Some(0));
        assert_eq!(place(&found, "00000000:C1:00.0"), Some(1));
        assert_eq!(place(&found, "00010000:01:00.0"), Some(2));
        assert_eq!(place(&found, "00000000:03:00.0"), None);
        assert!(!all_asleep(&found));
        fs::write(
            root.path().join("10000:01:00.0/power/runtime_status"),
            "suspended",
        )
        .unwrap();
        assert!(all_asleep(&nvidia_gpus(root.path())));
        assert!(!all_asleep(&nvidia_gpus(&root.path().join("nothing"))));
    }
}
