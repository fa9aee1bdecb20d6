//! The driver: its files, its library, its answer, its GPUs.

use std::collections::BTreeSet;

use super::{Check, State};
use crate::doctor::facts::{Asked, DeviceFile, Facts, Kernel};
use crate::model::{GpuSample, Inventory};
use crate::nvml::refusal;
use crate::place::choose;
use crate::place::visible::{Device, visible};

pub fn checks(facts: &Facts) -> Vec<Check> {
    let mut found = vec![module(facts)];
    found.extend(device_files(facts));
    found.push(answer(facts));
    if let Asked::Answered { inventory, samples } = &facts.asked {
        found.push(devices(facts, inventory, samples));
        found.extend(free(facts, inventory, samples));
    }
    found
}

fn answers(facts: &Facts) -> bool {
    matches!(facts.asked, Asked::Answered { .. })
}

/// What gives a container its GPUs.
const CONTAINER: &str = "start the container with its GPUs: docker run --gpus all (NVIDIA Container Toolkit), podman run --device nvidia.com/gpu=all, or a GPU in the pod's resources";

fn module(facts: &Facts) -> Check {
    let name = "driver";
    let Kernel { version, wsl, .. } = &facts.kernel;
    if let Some(version) = version {
        return Check::ok(
            name,
            format!("the NVIDIA driver {version} is in the kernel"),
        );
    }
    let has_dxg = facts.kernel.devices.iter().any(|d| d.name == "dxg");
    // What the library says of a driver that it has met tells more than a file that is missing.
    let met = match &facts.asked {
        Asked::Silent(_) => true,
        Asked::Refused(why) => {
            let told = [refusal::MISMATCH, refusal::NO_PERMISSION, refusal::LOST];
            told.iter().any(|known| why.contains(known))
        }
        Asked::Answered { .. } | Asked::Not => false,
    };
    if met {
        return Check::note(
            name,
            "/proc/driver/nvidia/version isn't there; see what NVML says",
        );
    }
    match (answers(facts), wsl, has_dxg) {
        (_, true, true) => Check::ok(name, "WSL's /dev/dxg is there; the driver is Windows'"),
        (true, ..) => Check::note(
            name,
            "/proc/driver/nvidia/version isn't there, but the driver's library answers",
        ),
        (false, true, false) => Check::bad(
            name,
            "this is WSL without /dev/dxg: Windows lends it no GPU",
            "install NVIDIA's driver in Windows (never in WSL) and run 'wsl --update', then 'wsl --shutdown'; WSL 1 has no GPU",
        ),
        (false, false, _) if facts.machine.container => Check::bad(
            name,
            "the NVIDIA driver isn't loaded, or this container can't see it (no /proc/driver/nvidia/version)",
            CONTAINER,
        ),
        (false, false, _) if facts.kernel.pci.is_empty() => Check::bad(
            name,
            "the NVIDIA driver isn't loaded, and no NVIDIA GPU is plugged in (/sys/bus/pci)",
            "use a machine with an NVIDIA GPU, or pass one through to this virtual machine",
        ),
        (false, false, _) => Check::bad(
            name,
            "the NVIDIA driver isn't loaded (no /proc/driver/nvidia/version)",
            "install NVIDIA's driver, then 'modprobe nvidia'; if that fails, 'dmesg' says why (Secure Boot, nouveau, a kernel newer than the module)",
        ),
    }
}

fn device_files(facts: &Facts) -> Vec<Check> {
    let name = "device files";
    let kernel = &facts.kernel;
    let barred: Vec<&DeviceFile> = kernel.devices.iter().filter(|d| !d.usable).collect();
    if let Some(first) = barred.first() {
        let list: Vec<String> = barred.iter().map(|d| format!("/dev/{}", d.name)).collect();
        return vec![Check::bad(
            name,
            format!(
                "this user may not read and write {} (mode {:o}, group {})",
                list.join(", "),
                first.mode & 0o7777,
                first.group
            ),
            "ask for membership of the files' group ('usermod -aG GROUP USER', then log in again), or for mode 0666 (nvidia-modprobe, NVreg_DeviceFileMode); in a container and a Slurm job the device must be allowed, too",
        )];
    }
    // Without a driver in the kernel that has been said; WSL has other files.
    if kernel.version.is_none() || kernel.wsl {
        return Vec::new();
    }
    let has = |wanted: &str| kernel.devices.iter().any(|d| d.name == wanted);
    let numbered = |d: &&DeviceFile| {
        let number = d.name.strip_prefix("nvidia");
        number.is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let gpus = kernel.devices.iter().filter(numbered).count();
    if gpus == 0 || !has("nvidiactl") {
        let cure = if facts.machine.container {
            CONTAINER
        } else {
            "make them: 'nvidia-modprobe -c 0', or 'nvidia-smi' as root"
        };
        let what = "the driver is loaded, but /dev/nvidiactl and /dev/nvidia0 aren't all there";
        return vec![Check::bad(name, what, cure)];
    }
    if has("nvidia-uvm") {
        return vec![Check::ok(
            name,
            format!("/dev has {gpus} of GPUs and nvidia-uvm, and this user may use them"),
        )];
    }
    let what = "/dev/nvidia-uvm isn't there, without which CUDA doesn't start";
    vec![if kernel.modprobe && !facts.machine.container {
        Check::note(name, format!("{what}; nvidia-modprobe makes it when asked"))
    } else if facts.machine.container {
        Check::bad(name, what, CONTAINER)
    } else {
        Check::bad(
            name,
            what,
            "'modprobe nvidia_uvm' and 'nvidia-modprobe -u -c 0', as root",
        )
    }]
}

fn answer(facts: &Facts) -> Check {
    let name = "driver's answer";
    match &facts.asked {
        Asked::Answered { inventory, .. } => Check::ok(
            name,
            format!(
                "NVML answers: driver {}, CUDA up to {}",
                inventory.driver.as_deref().unwrap_or("unknown"),
                inventory.cuda.as_deref().unwrap_or("unknown")
            ),
        ),
        Asked::Refused(why) => Check::bad(name, why.clone(), cure(why, facts.machine.container)),
        Asked::Silent(why) => Check::bad(
            name,
            why.clone(),
            "'dmesg | grep -iE \"nvrm|xid\"' says more; processes in state D on a GPU (ps -eo pid,stat,cmd) hold it; usually a reboot is needed",
        ),
        Asked::Not => Check::note(name, "the driver was not asked"),
    }
}

/// What helps against what the driver said.
fn cure(why: &str, container: bool) -> String {
    let text = if why.contains(refusal::MISMATCH) {
        "reboot; or, with no program on the GPUs, 'rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia' and 'modprobe nvidia'; an old container needs a restart"
    } else if why.contains(refusal::NO_PERMISSION) {
        "look at 'ls -l /dev/nvidia*': this user needs to read and write them (their group), and a container or Slurm job must be given the devices"
    } else if why.contains(refusal::LOST) {
        "'dmesg | grep -i xid' names the GPU; reboot, and have it looked at if it comes back (power, slot, heat)"
    } else if why.contains(refusal::NOT_LOADED) {
        "'modprobe nvidia' (on the host of a container); if that fails, 'dmesg' says why (Secure Boot, nouveau, a kernel newer than the module)"
    } else if why.contains(refusal::UNLOADABLE) {
        "the loader's reason stands above: name the driver's own libnvidia-ml.so.1, reinstall it, or take what shadows it out of LD_LIBRARY_PATH"
    } else if why.contains(refusal::NO_LIBRARY) && container {
        CONTAINER
    } else if why.contains(refusal::NO_LIBRARY) {
        "install NVIDIA's driver with its libraries (libnvidia-ml.so.1 and libcuda.so.1; Debian: libnvidia-ml1, libcuda1), then 'ldconfig'"
    } else {
        "'nvidia-smi' and 'dmesg | grep -iE \"nvrm|xid\"' say more; a reboot may help"
    };
    text.to_owned()
}

fn devices(facts: &Facts, inventory: &Inventory, samples: &[GpuSample]) -> Check {
    let name = "GPUs";
    if inventory.gpus.is_empty() {
        let cure = if facts.machine.container {
            CONTAINER
        } else {
            "'nvidia-smi -L' and 'dmesg | grep -i nvrm' say more; a Slurm job needs --gres=gpu:1"
        };
        let what = "the driver answers and shows no GPU that may be used";
        return Check::bad(name, what, cure);
    }
    let lost: Vec<String> = inventory
        .gpus
        .iter()
        .filter(|gpu| gpu.uuid.is_none() && gpu.name.is_none())
        .map(|gpu| gpu.index.to_string())
        .collect();
    if !lost.is_empty() {
        return Check::warning(
            name,
            format!("GPU {} doesn't answer", lost.join(" and ")),
            "'dmesg | grep -i xid' says why; leave it out with CUDA_VISIBLE_DEVICES until a reboot",
        );
    }
    let has_no_part = |gpu: &&crate::model::GpuInfo| {
        gpu.mig_mode && inventory.instances_of(gpu.index).next().is_none()
    };
    if inventory.gpus.iter().all(|gpu| has_no_part(&gpu)) {
        return Check::bad(
            name,
            "MIG mode is on and there is no MIG device, so CUDA sees none",
            "make some ('nvidia-smi mig -cgi ... -C'), or turn the mode off ('nvidia-smi -mig 0')",
        );
    }
    let shown: Vec<String> = inventory
        .devices()
        .map(|gpu| {
            let sample = samples.iter().find(|s| s.is_of(gpu));
            let used = sample.and_then(|s| s.mem_used_mib.get());
            let total = gpu.memory_mib.map(|m| m as f64);
            let memory = match (used, total) {
                (Some(used), Some(total)) => format!(", {used:.0} of {total:.0} MiB used"),
                (None, Some(total)) => format!(", {total:.0} MiB"),
                _ => String::new(),
            };
            let what = gpu.name.as_deref().unwrap_or("unknown");
            format!("{} {what}{memory}", gpu.label())
        })
        .collect();
    Check::ok(name, shown.join("; "))
}

/// Whether those that the command would see are free.
fn free(facts: &Facts, inventory: &Inventory, samples: &[GpuSample]) -> Option<Check> {
    let name = "free GPUs";
    if samples.is_empty() {
        return (!inventory.gpus.is_empty()).then(|| {
            Check::warning(
                name,
                "the driver told no readings in time, so nobody knows which GPUs are free",
                "'gpuwatch gpus' again; if it stays so, 'dmesg | grep -iE \"nvrm|xid\"'",
            )
        });
    }
    let setting = facts.variables.get("CUDA_VISIBLE_DEVICES");
    let seen: Vec<Device> = visible(setting.map(String::as_str), inventory);
    let standings = choose::standings(inventory, samples, &BTreeSet::new(), &|_| None);
    let busy: Vec<&str> = standings
        .iter()
        .filter(|s| seen.contains(&s.device))
        .filter_map(|s| s.busy.as_deref())
        .collect();
    if seen.is_empty() {
        return None;
    }
    let state = match busy.len() {
        0 => {
            return Some(Check::ok(
                name,
                "nobody uses those that the command would see",
            ));
        }
        n if n < seen.len() => State::Note,
        _ => State::Warning,
    };
    let cure = "'gpuwatch gpus' says who; 'gpuwatch run --gpus auto --wait' waits for a free one";
    Some(Check {
        check: name,
        state,
        found: busy.join("; "),
        cure: Some(cure.to_owned()),
    })
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
