//! Device memory.

use crate::abi::{Code, Handle, INVALID_ARGUMENT, MEMORY_V2, Memory, MemoryV2, VERSION_MISMATCH};
use crate::moment::{Moment, device, put};

const MIB: u64 = 1024 * 1024;

/// Total, reserved and used bytes.
fn figures(m: &Moment) -> Result<(u64, u64, u64), Code> {
    let reserved = m.gpu().reserved_mib * MIB;
    Ok((m.total_bytes()?, reserved, m.wide(m.used_bytes())?))
}

/// The first version counts what the driver reserves as used.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo(handle: Handle, out: *mut Memory) -> Code {
    device("nvmlDeviceGetMemoryInfo", handle, |m| {
        let memory = figures(m).map(|(total, reserved, used)| {
            let used = used.saturating_add(reserved);
            Memory {
                total,
                free: total.saturating_sub(used),
                used,
            }
        });
        // SAFETY: a pointer to nvmlMemory_t, as nvml.h demands.
        unsafe { put(out, memory) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(handle: Handle, out: *mut MemoryV2) -> Code {
    device("nvmlDeviceGetMemoryInfo_v2", handle, |m| {
        if out.is_null() {
            return INVALID_ARGUMENT;
        }
        // SAFETY: not null, and the caller filled in the version, as nvml.h demands.
        if unsafe { (*out).version } != MEMORY_V2 {
            return VERSION_MISMATCH;
        }
        let memory = figures(m).map(|(total, reserved, used)| MemoryV2 {
            version: MEMORY_V2,
            total,
            reserved,
            free: total.saturating_sub(used.saturating_add(reserved)),
            used,
        });
        // SAFETY: a pointer to nvmlMemory_v2_t, as nvml.h demands.
        unsafe { put(out, memory) }
    })
}
