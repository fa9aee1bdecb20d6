//! Multi-instance GPUs.

use crate::abi::{Attributes, Code, Handle, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED};
use crate::moment::{Moment, Target, device, put};
use crate::scenario::Mig;

/// The most instances that a GPU of this kind can have.
const MOST: u32 = 7;

fn mig(m: &Moment) -> Result<&Mig, Code> {
    m.gpu().mig.as_ref().ok_or(NOT_SUPPORTED)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigMode(
    handle: Handle,
    current: *mut u32,
    pending: *mut u32,
) -> Code {
    device("nvmlDeviceGetMigMode", handle, |m| {
        let mode = mig(m).map(|g| u32::from(g.enabled));
        // SAFETY: pointers to unsigned ints, as nvml.h demands.
        unsafe { put(current, mode).max(put(pending, mode)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMaxMigDeviceCount(handle: Handle, out: *mut u32) -> Code {
    device("nvmlDeviceGetMaxMigDeviceCount", handle, |m| {
        // SAFETY: a pointer to an unsigned int, as nvml.h demands.
        unsafe { put(out, Ok(mig(m).map_or(0, |_| MOST))) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceIsMigDeviceHandle(handle: Handle, out: *mut u32) -> Code {
    device("nvmlDeviceIsMigDeviceHandle", handle, |m| {
        // SAFETY: a pointer to an unsigned int, as nvml.h demands.
        unsafe { put(out, Ok(u32::from(m.target.mig.is_some()))) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstanceId(handle: Handle, out: *mut u32) -> Code {
    device("nvmlDeviceGetGpuInstanceId", handle, |m| {
        let id = m.mig_device().map(|d| d.gi).ok_or(NOT_SUPPORTED);
        // SAFETY: a pointer to an unsigned int, as nvml.h demands.
        unsafe { put(out, id) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetComputeInstanceId(handle: Handle, out: *mut u32) -> Code {
    device("nvmlDeviceGetComputeInstanceId", handle, |m| {
        let id = m.mig_device().map(|d| d.ci).ok_or(NOT_SUPPORTED);
        // SAFETY: a pointer to an unsigned int, as nvml.h demands.
        unsafe { put(out, id) }
    })
}

/// MIG indexes have holes, which are `NOT_FOUND`.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    handle: Handle,
    index: u32,
    out: *mut Handle,
) -> Code {
    device("nvmlDeviceGetMigDeviceHandleByIndex", handle, |m| {
        let found = mig(m).and_then(|g| match g.devices.get(index as usize) {
            _ if index >= MOST => Err(INVALID_ARGUMENT),
            Some(Some(_)) => Ok(Target {
                gpu: m.target.gpu,
                mig: Some(index),
            }
            .handle()),
            _ => Err(NOT_FOUND),
        });
        // SAFETY: a pointer to a handle, as nvml.h demands.
        unsafe { put(out, found) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
    handle: Handle,
    out: *mut Handle,
) -> Code {
    device(
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
        handle,
        |m| {
            let parent = match m.target.mig {
                None => Err(INVALID_ARGUMENT),
                Some(_) => Ok(Target {
                    gpu: m.target.gpu,
                    mig: None,
                }
                .handle()),
            };
            // SAFETY: a pointer to a handle, as nvml.h demands.
            unsafe { put(out, parent) }
        },
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetAttributes_v2(handle: Handle, out: *mut Attributes) -> Code {
    device("nvmlDeviceGetAttributes_v2", handle, |m| {
        let attributes = m.mig_device().ok_or(NOT_SUPPORTED).map(|d| Attributes {
            multiprocessors: 14,
            gpu_slices: 1,
            compute_slices: 1,
            memory_mib: d.memory_mib,
            ..Attributes::default()
        });
        // SAFETY: a pointer to nvmlDeviceAttributes_t, as nvml.h demands.
        unsafe { put(out, attributes) }
    })
}
