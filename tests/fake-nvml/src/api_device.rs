//! What a device is and how it does: one function a reading.

use std::ffi::{c_char, c_int};

use crate::abi::{Code, Field, Handle, INVALID_ARGUMENT, NOT_SUPPORTED, Pci, SUCCESS, VALUE_U64};
use crate::api_system::put_text;
use crate::moment::{Moment, device, put};
use crate::scenario::Gpu;

impl Gpu {
    /// The UUID; derived ones are told apart by the index.
    pub fn uuid_text(&self, index: u32) -> Result<String, Code> {
        self.uuid
            .or_derive(|| format!("GPU-5c1e0f7a-0000-4000-8000-{index:012x}"))
    }

    fn bus(&self, index: u32) -> u32 {
        self.pci_bus.unwrap_or(0x1a + index)
    }

    /// `00000000:1A:00.0`
    pub fn bus_id(&self, index: u32) -> String {
        format!("00000000:{:02X}:00.0", self.bus(index))
    }
}

macro_rules! texts {
    ($($name:ident => $text:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(handle: Handle, out: *mut c_char, size: u32) -> Code {
            let text: fn(&Moment) -> Result<String, Code> = $text;
            // SAFETY: a buffer of `size` bytes, as nvml.h demands.
            device(stringify!($name), handle, |m| unsafe { put_text(out, size, text(m)) })
        }
    )* };
}

texts! {
    nvmlDeviceGetName => |m| {
        let name = m.gpu().name.or_derive(|| "NVIDIA A100-SXM4-80GB".to_owned())?;
        Ok(match m.mig_device() {
            Some(_) => format!("{name} MIG 1g.10gb"),
            None => name,
        })
    };
    nvmlDeviceGetUUID => |m| match m.mig_device() {
        Some(mig) => Ok(mig.uuid.clone()),
        None => m.gpu().uuid_text(m.target.gpu),
    };
    nvmlDeviceGetSerial => |m| m.gpu().serial.or_derive(|| format!("1320{:09}", m.target.gpu));
}

/// Functions `(device, *out)`.
macro_rules! readings {
    ($($name:ident: $type:ty => $value:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(handle: Handle, out: *mut $type) -> Code {
            let value: fn(&Moment) -> Result<$type, Code> = $value;
            // SAFETY: a pointer to the type that nvml.h names.
            device(stringify!($name), handle, |m| unsafe { put(out, value(m)) })
        }
    )* };
}

readings! {
    nvmlDeviceGetIndex: u32 => |m| Ok(m.target.mig.unwrap_or(m.target.gpu));
    nvmlDeviceGetMinorNumber: u32 => |m| m.whole().map(|_| m.target.gpu);
    nvmlDeviceGetArchitecture: u32 => |m| m.gpu().architecture.or_derive(|| 7);
    nvmlDeviceGetUtilizationRates: [u32; 2] => |m| {
        Ok([m.percent(m.util())?, m.percent(m.mem_util())?])
    };
    nvmlDeviceGetPowerUsage: u32 => |m| m.number(m.power_w().map(milli));
    nvmlDeviceGetPowerManagementLimit: u32 => |m| m.number(m.power_limit_w().map(milli));
    nvmlDeviceGetEnforcedPowerLimit: u32 => |m| m.number(m.power_limit_w().map(milli));
    nvmlDeviceGetPerformanceState: u32 => |m| Ok(if m.util()? > 0 { 0 } else { 8 });
    nvmlDeviceGetPersistenceMode: u32 => |_| Ok(1);
    nvmlDeviceGetComputeMode: u32 => |_| Ok(0);
    // A counter that didn't start at zero, as seen on an idle H100.
    nvmlDeviceGetPcieReplayCounter: u32 => |_| Ok(150);
    nvmlDeviceGetCurrPcieLinkGeneration: u32 => |_| Ok(4);
    nvmlDeviceGetMaxPcieLinkGeneration: u32 => |_| Ok(4);
    nvmlDeviceGetCurrPcieLinkWidth: u32 => |_| Ok(16);
    nvmlDeviceGetMaxPcieLinkWidth: u32 => |_| Ok(16);
    nvmlDeviceGetTotalEnergyConsumption: u64 => |m| {
        m.wide(m.energy_j().map(|j| (j * 1e3) as u64))
    };
    nvmlDeviceGetCurrentClocksThrottleReasons: u64 => |m| m.wide(m.throttle());
    nvmlDeviceGetCurrentClocksEventReasons: u64 => |m| m.wide(m.throttle());
}

fn milli(value: f64) -> u32 {
    (value * 1e3).round() as u32
}

/// Functions `(device, selector, *out)`.
macro_rules! selected {
    ($($name:ident => $value:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(handle: Handle, which: u32, out: *mut u32) -> Code {
            let value: fn(&Moment, u32) -> Result<u32, Code> = $value;
            // SAFETY: a pointer to an unsigned int, as nvml.h demands.
            device(stringify!($name), handle, |m| unsafe { put(out, value(m, which)) })
        }
    )* };
}

selected! {
    nvmlDeviceGetTemperature => |m, sensor| match sensor {
        0 => m.number(m.temp_c()),
        _ => Err(INVALID_ARGUMENT),
    };
    nvmlDeviceGetClockInfo => |m, clock| match clock {
        0..=3 => m.number(m.clock_mhz()),
        _ => Err(INVALID_ARGUMENT),
    };
    nvmlDeviceGetMaxClockInfo => |m, clock| match clock {
        0..=3 => m.number(m.max_clock_mhz()),
        _ => Err(INVALID_ARGUMENT),
    };
    // 0 shutdown, 1 slowdown.
    nvmlDeviceGetTemperatureThreshold => |m, threshold| {
        let slowdown = m.whole()?.slowdown_c.or_derive(|| 89)?;
        match threshold {
            0 => Ok(slowdown + 5),
            1 => Ok(slowdown),
            _ => Err(NOT_SUPPORTED),
        }
    };
    // KiB/s; the real one measures for 20 ms.
    nvmlDeviceGetPcieThroughput => |m, _direction| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        m.number(m.pcie_mb_s().map(|mb| (mb * 1e6 / 2.0 / 1024.0) as u32))
    };
}

/// Functions `(device, *out, *out)`.
macro_rules! pairs {
    ($($name:ident: $type:ty => $value:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(handle: Handle, one: *mut $type, two: *mut $type) -> Code {
            let value: fn(&Moment) -> Result<($type, $type), Code> = $value;
            device(stringify!($name), handle, |m| match value(m) {
                Err(code) => code,
                Ok((a, b)) => {
                    // SAFETY: pointers to the type that nvml.h names.
                    unsafe { put(one, Ok(a)).max(put(two, Ok(b))) }
                }
            })
        }
    )* };
}

pairs! {
    nvmlDeviceGetEncoderUtilization: u32 => |m| m.whole().map(|_| (0, 167_000));
    nvmlDeviceGetDecoderUtilization: u32 => |m| m.whole().map(|_| (0, 167_000));
    nvmlDeviceGetEccMode: u32 => |m| m.whole()?.ecc_uncorrected.or_derive(|| 0).map(|_| (1, 1));
    nvmlDeviceGetCudaComputeCapability: c_int => |m| {
        Ok(m.gpu().compute_capability.unwrap_or((8, 0)))
    };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(handle: Handle, out: *mut Pci) -> Code {
    device("nvmlDeviceGetPciInfo_v3", handle, |m| {
        let index = m.target.gpu;
        let text = m.gpu().bus_id(index);
        let mut pci = Pci {
            bus_id_legacy: [0; 16],
            domain: 0,
            bus: m.gpu().bus(index),
            device: 0,
            device_id: 0x20b2_10de,
            subsystem_id: 0x1463_10de,
            bus_id: [0; 32],
        };
        fill(&mut pci.bus_id, &text);
        // The legacy form has a domain of four digits.
        fill(&mut pci.bus_id_legacy, &text[4..]);
        // SAFETY: a pointer to nvmlPciInfo_t, as nvml.h demands.
        unsafe { put(out, Ok(pci)) }
    })
}

/// Copies a text and leaves a zero at the end.
fn fill(to: &mut [c_char], text: &str) {
    let room = to.len().saturating_sub(1);
    for (to, from) in to.iter_mut().take(room).zip(text.bytes()) {
        *to = from as c_char;
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTotalEccErrors(
    handle: Handle,
    kind: u32,
    _counter: u32,
    out: *mut u64,
) -> Code {
    device("nvmlDeviceGetTotalEccErrors", handle, |m| {
        let uncorrected = m.whole().and_then(|g| g.ecc_uncorrected.or_derive(|| 0));
        let value = uncorrected.map(|n| if kind == 1 { n } else { 0 });
        // SAFETY: a pointer to an unsigned long long, as nvml.h demands.
        unsafe { put(out, m.wide(value)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetRemappedRows(
    handle: Handle,
    corrected: *mut u32,
    uncorrected: *mut u32,
    pending: *mut u32,
    failed: *mut u32,
) -> Code {
    device("nvmlDeviceGetRemappedRows", handle, |_| {
        [corrected, uncorrected, pending, failed]
            .into_iter()
            // SAFETY: pointers to unsigned ints, as nvml.h demands.
            .map(|out| unsafe { put(out, Ok(0)) })
            .max()
            .unwrap_or(SUCCESS)
    })
}

/// `NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION`, `NVML_FI_DEV_PCIE_COUNT_TX_BYTES`, `.._RX_BYTES`.
const FIELD_ENERGY: u32 = 83;
const FIELD_PCIE_SENT: u32 = 197;
const FIELD_PCIE_RECEIVED: u32 = 198;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetFieldValues(
    handle: Handle,
    count: c_int,
    fields: *mut Field,
) -> Code {
    device("nvmlDeviceGetFieldValues", handle, |m| {
        let Ok(count) = usize::try_from(count) else {
            return INVALID_ARGUMENT;
        };
        if fields.is_null() {
            return INVALID_ARGUMENT;
        }
        // SAFETY: `count` entries, as nvml.h demands.
        for field in unsafe { std::slice::from_raw_parts_mut(fields, count) } {
            let half = |n: Result<f64, Code>| n.map(|_| (m.counters.pcie_bytes / 2.0) as u64);
            let value = match field.id {
                FIELD_ENERGY => m.energy_j().map(|j| (j * 1e3) as u64),
                FIELD_PCIE_SENT | FIELD_PCIE_RECEIVED => half(m.pcie_mb_s()),
                _ => Err(NOT_SUPPORTED),
            };
            field.timestamp_us = crate::api_processes::now_us() as i64;
            field.value_type = VALUE_U64;
            field.code = value.err().unwrap_or(SUCCESS);
            field.value = m.wide(value).unwrap_or(0);
        }
        SUCCESS
    })
}
