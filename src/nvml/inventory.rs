//! Opening NVML and the facts that don't change.
//!
//! Runs on the NVML thread. Owns the words for why there is no driver.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use nvml_wrapper::enum_wrappers::device::TemperatureThreshold;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::desk::Desk;
use super::pci;
use super::refusal;
use crate::model::{GpuInfo, Instance, Inventory};
use crate::sys::nvml_raw;

/// Names the NVML library to load, for odd installations and for tests.
pub const LIBRARY_VARIABLE: &str = "GPUWATCH_NVML_LIBRARY";
/// The name under which the driver installs it.
const LIBRARY: &str = "libnvidia-ml.so.1";
/// Where it is under WSL2, which not every distribution tells its loader.
const WSL_LIBRARY: &str = "/usr/lib/wsl/lib/libnvidia-ml.so.1";
/// More GPUs than any machine has: a count beyond it is garbage.
const MOST_GPUS: u32 = 1024;
/// More MIG devices than any GPU has.
const MOST_PARTS: u32 = 64;

/// Loads and initialises NVML; the error is in plain words.
pub fn open(desk: &Desk) -> Result<Nvml, String> {
    if let Some(path) = env::var_os(LIBRARY_VARIABLE).filter(|p| !p.is_empty()) {
        return load(desk, &path).map_err(|e| match e {
            NvmlError::LibloadingError(e) => {
                format!(
                    "{LIBRARY_VARIABLE} names a library that {}{e}",
                    refusal::UNLOADABLE
                )
            }
            other => words(&other),
        });
    }
    match load(desk, LIBRARY.as_ref()) {
        Err(NvmlError::LibloadingError(_)) if Path::new(WSL_LIBRARY).exists() => {
            load(desk, WSL_LIBRARY.as_ref()).map_err(|e| words(&e))
        }
        other => other.map_err(|e| words(&e)),
    }
}

fn load(desk: &Desk, path: &OsStr) -> Result<Nvml, NvmlError> {
    let path = OsString::from(path);
    desk.during("nvmlInit_v2", None, || {
        Nvml::builder().lib_path(&path).init()
    })
}

/// Why NVML couldn't be initialised, and what to do about it.
fn words(error: &NvmlError) -> String {
    match error {
        NvmlError::LibloadingError(e) => no_library(&e.to_string()),
        NvmlError::DriverNotLoaded => refusal::NOT_LOADED.to_owned(),
        NvmlError::LibRmVersionMismatch => refusal::MISMATCH.to_owned(),
        NvmlError::NoPermission => refusal::NO_PERMISSION.to_owned(),
        NvmlError::GpuLost => refusal::LOST.to_owned(),
        NvmlError::FailedToLoadSymbol(e) => {
            format!("the NVIDIA driver library lacks a function: {e}")
        }
        other => format!("the NVIDIA driver could not be initialised: {other}"),
    }
}

/// The loader names the file once more in what it says.
fn no_library(loader: &str) -> String {
    let said = loader.trim_start_matches(LIBRARY).trim_start_matches(": ");
    if said.starts_with("cannot open shared object file: No such file") {
        return format!("{} ({LIBRARY})", refusal::NO_LIBRARY);
    }
    format!(
        "the NVIDIA driver library ({LIBRARY}) {}{said}",
        refusal::UNLOADABLE
    )
}

/// The driver's and the GPUs' facts; `namespaced` says that we are in a container.
///
/// GPUs that may not be opened are left out; one that fails otherwise (that fell off the bus)
/// is listed without facts, so that somebody notices. The error is in plain words.
pub fn take(desk: &Desk, nvml: &Nvml, namespaced: bool) -> Result<Inventory, String> {
    let count = desk
        .during("nvmlDeviceGetCount_v2", None, || nvml.device_count())
        .map_err(|e| format!("the NVIDIA driver doesn't say how many GPUs there are: {e}"))?;
    let driver = desk.during("nvmlSystemGetDriverVersion", None, || {
        nvml.sys_driver_version()
    });
    let cuda = desk.during("nvmlSystemGetCudaDriverVersion_v2", None, || {
        nvml.sys_cuda_driver_version()
    });
    let host = pci::nvidia_gpus(Path::new(pci::DEVICES));
    let (mut gpus, mut instances) = (Vec::new(), Vec::new());
    for index in 0..count.min(MOST_GPUS) {
        let device = desk.during("nvmlDeviceGetHandleByIndex_v2", Some(index), || {
            nvml.device_by_index(index)
        });
        match device {
            Ok(device) => {
                let gpu = info(desk, index, &device, &host, namespaced);
                if gpu.mig_mode {
                    instances.extend(parts(desk, nvml, &gpu, &device));
                }
                gpus.push(gpu);
            }
            Err(NvmlError::NoPermission) => {}
            Err(_) => gpus.push(GpuInfo {
                index,
                ..GpuInfo::default()
            }),
        }
    }
    Ok(Inventory {
        driver: driver.ok(),
        cuda: cuda.ok().map(|v| format!("{}.{}", v / 1000, v % 1000 / 10)),
        gpus,
        instances,
    })
}

fn info(
    desk: &Desk,
    index: u32,
    device: &Device<'_>,
    host: &[pci::Found],
    namespaced: bool,
) -> GpuInfo {
    let gpu = Some(index);
    let bus = desk.during("nvmlDeviceGetPciInfo_v3", gpu, || device.pci_info());
    let bus = bus.ok().map(|bus| bus.bus_id);
    let mig = desk.during("nvmlDeviceGetMigMode", gpu, || device.mig_mode());
    let memory = desk.during("nvmlDeviceGetMemoryInfo_v2", gpu, || device.memory_info());
    let limit = desk.during("nvmlDeviceGetEnforcedPowerLimit", gpu, || {
        device.enforced_power_limit()
    });
    let slowdown = desk.during("nvmlDeviceGetTemperatureThreshold", gpu, || {
        device.temperature_threshold(TemperatureThreshold::Slowdown)
    });
    let minor = desk.during("nvmlDeviceGetMinorNumber", gpu, || device.minor_number());
    GpuInfo {
        index,
        uuid: desk.during("nvmlDeviceGetUUID", gpu, || device.uuid()).ok(),
        name: desk.during("nvmlDeviceGetName", gpu, || device.name()).ok(),
        memory_mib: memory.ok().map(|m| m.total >> 20),
        power_limit_w: limit.ok().map(|mw| f64::from(mw) / 1e3),
        slowdown_c: slowdown.ok(),
        // The bus of a container is the host's. Where it isn't to be seen: GPUs that a cgroup
        // hides leave the rest numbered anew, but with the minor number of their device file.
        host_index: bus
            .as_deref()
            .and_then(|bus| pci::place(host, bus))
            .or_else(|| gpu.filter(|index| !namespaced && minor.ok() == Some(*index))),
        pci_bus: bus,
        mig_mode: mig.is_ok_and(|mode| mode.current == 1),
        instance: None,
    }
}

/// The MIG devices of a GPU, as far as they may be seen. Their numbers have holes.
fn parts(desk: &Desk, nvml: &Nvml, gpu: &GpuInfo, device: &Device<'_>) -> Vec<GpuInfo> {
    let index = Some(gpu.index);
    let most = desk.during("nvmlDeviceGetMaxMigDeviceCount", index, || {
        device.mig_device_count()
    });
    (0..most.unwrap_or(0).min(MOST_PARTS))
        .filter_map(|place| {
            let part = desk.during("nvmlDeviceGetMigDeviceHandleByIndex", index, || {
                device.mig_device_by_index(place)
            });
            let part = part.ok()?;
            let ids = desk.during("nvmlDeviceGetGpuInstanceId", index, || {
                nvml_raw::instance(nvml, &part)
            });
            let (gi, ci) = ids.ok()?;
            let memory = desk.during("nvmlDeviceGetMemoryInfo_v2", index, || part.memory_info());
            let name = desk.during("nvmlDeviceGetName", index, || part.name());
            Some(GpuInfo {
                index: gpu.index,
                // It has no other name, so one without isn't to be had.
                uuid: Some(
                    desk.during("nvmlDeviceGetUUID", index, || part.uuid())
                        .ok()?,
                ),
                name: name.ok().or_else(|| gpu.name.clone()),
                memory_mib: memory.ok().map(|m| m.total >> 20),
                // Of the whole GPU; how much of it is this part's nobody says.
                power_limit_w: None,
                slowdown_c: gpu.slowdown_c,
                pci_bus: gpu.pci_bus.clone(),
                host_index: gpu.host_index,
                mig_mode: false,
                instance: Some(Instance { place, gi, ci }),
            })
        })
        .collect()
}
