//! NVML functions that the safe crate lacks, or calls in a way that costs more or drops something.
//!
//! Process lists are here because the crate asks twice for each (a probe, then the list).

use std::mem;

use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper::{Device, EventSet, Nvml};
use nvml_wrapper_sys::bindings as c;

/// `NVML_ERROR_INSUFFICIENT_SIZE`.
const TOO_SMALL: u32 = 7;
/// How often a list may grow while we ask for it.
const TRIES: usize = 4;
/// An entry of `_v3` in drivers 535.43 to 535.86; elsewhere 24 bytes.
const WIDEST_ENTRY: usize = 32;

/// Which list, and which version of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessList {
    /// Processes with a CUDA context.
    Compute,
    /// A desktop's.
    Graphics,
    /// Clients of MPS, which the compute list leaves out.
    Mps,
}

/// An entry of a process list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawProcess {
    /// As the driver numbers it.
    pub pid: u32,
    /// Bytes; `u64::MAX` where the driver can't tell.
    pub used: u64,
    /// MIG GPU and compute instance; `u32::MAX` where there is none.
    pub instance: (u32, u32),
}

/// An entry of the process-utilisation samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawUtilisation {
    /// As the driver numbers it.
    pub pid: u32,
    /// Microseconds since 1970.
    pub timestamp_us: u64,
    /// %, unchecked.
    pub sm: u32,
}

type ListFn =
    unsafe extern "C" fn(c::nvmlDevice_t, *mut u32, *mut c::nvmlProcessInfo_t) -> c::nvmlReturn_t;

/// The function of one version; all take the same arguments.
fn list_function(nvml: &Nvml, list: ProcessList, v3: bool) -> Result<ListFn, NvmlError> {
    let lib = nvml.lib();
    nvml_sym(match (list, v3) {
        (ProcessList::Compute, true) => lib.nvmlDeviceGetComputeRunningProcesses_v3.as_ref(),
        (ProcessList::Graphics, true) => lib.nvmlDeviceGetGraphicsRunningProcesses_v3.as_ref(),
        (ProcessList::Mps, true) => lib.nvmlDeviceGetMPSComputeRunningProcesses_v3.as_ref(),
        (ProcessList::Compute, false) => lib.nvmlDeviceGetComputeRunningProcesses_v2.as_ref(),
        (ProcessList::Graphics, false) => lib.nvmlDeviceGetGraphicsRunningProcesses_v2.as_ref(),
        (ProcessList::Mps, false) => lib.nvmlDeviceGetMPSComputeRunningProcesses_v2.as_ref(),
    })
    .copied()
}

/// A process list in one call where `room` suffices, more where the list outgrows it;
/// `room` then remembers what sufficed.
///
/// Errors as NVML does; `InsufficientSize` if the list kept growing.
pub fn processes(
    nvml: &Nvml,
    device: &Device<'_>,
    list: ProcessList,
    v3: bool,
    room: &mut u32,
) -> Result<Vec<RawProcess>, NvmlError> {
    let function = list_function(nvml, list, v3)?;
    for _ in 0..TRIES {
        // Room for the widest entries that any driver has written: should one do so
        // unexpectedly, it writes nonsense, but not beyond the buffer.
        let entries = (*room as usize * WIDEST_ENTRY).div_ceil(size_of::<c::nvmlProcessInfo_t>());
        // SAFETY: the structure is four integers, for which zero is a value.
        let mut buffer = vec![unsafe { mem::zeroed::<c::nvmlProcessInfo_t>() }; entries];
        let mut count = *room;
        // SAFETY: the handle belongs to `device`, which `nvml` outlives.
        let handle = unsafe { device.handle() };
        // SAFETY: `count` entries fit into the buffer, and both live through the call.
        let code = unsafe { function(handle, &raw mut count, buffer.as_mut_ptr()) };
        if code == TOO_SMALL {
            *room = count.max(*room).saturating_add(8).min(4096);
            continue;
        }
        nvml_try(code)?;
        buffer.truncate((count.min(*room)) as usize);
        return Ok(buffer.iter().map(RawProcess::from).collect());
    }
    Err(NvmlError::InsufficientSize(None))
}

impl From<&c::nvmlProcessInfo_t> for RawProcess {
    fn from(entry: &c::nvmlProcessInfo_t) -> Self {
        Self {
            pid: entry.pid,
            used: entry.usedGpuMemory,
            instance: (entry.gpuInstanceId, entry.computeInstanceId),
        }
    }
}

/// Process-utilisation samples newer than `since_us`, in one call.
///
/// An empty list where there are none (NVML's `NotFound`: all are idle). Errors as NVML does.
pub fn process_utilisation(
    nvml: &Nvml,
    device: &Device<'_>,
    since_us: u64,
) -> Result<Vec<RawUtilisation>, NvmlError> {
    let function = *nvml_sym(nvml.lib().nvmlDeviceGetProcessUtilization.as_ref())?;
    // The probe announces 100 whatever there is.
    let mut room = 100;
    for _ in 0..TRIES {
        // SAFETY: the structure is integers, for which zero is a value.
        let empty = unsafe { mem::zeroed::<c::nvmlProcessUtilizationSample_t>() };
        let mut buffer = vec![empty; room as usize];
        let mut count = room;
        // SAFETY: the handle belongs to `device`, which `nvml` outlives.
        let handle = unsafe { device.handle() };
        // SAFETY: `count` entries fit into the buffer, and both live through the call.
        let code = unsafe { function(handle, buffer.as_mut_ptr(), &raw mut count, since_us) };
        if code == TOO_SMALL {
            room = count.max(room).saturating_add(28).min(4096);
            continue;
        }
        return match nvml_try(code) {
            Err(NvmlError::NotFound) => Ok(Vec::new()),
            Err(error) => Err(error),
            Ok(()) => {
                buffer.truncate(count.min(room) as usize);
                Ok(buffer.iter().map(RawUtilisation::from).collect())
            }
        };
    }
    Err(NvmlError::InsufficientSize(None))
}

impl From<&c::nvmlProcessUtilizationSample_t> for RawUtilisation {
    fn from(entry: &c::nvmlProcessUtilizationSample_t) -> Self {
        Self {
            pid: entry.pid,
            timestamp_us: entry.timeStamp,
            sm: entry.smUtil,
        }
    }
}

/// Why the clocks are held back: the bits as they are, where the crate drops unknown ones.
///
/// The newer name of the function first, then the one that drivers before 535 have.
pub fn clock_reasons(nvml: &Nvml, device: &Device<'_>) -> Result<u64, NvmlError> {
    let lib = nvml.lib();
    let function = *nvml_sym(
        lib.nvmlDeviceGetCurrentClocksEventReasons
            .as_ref()
            .or(lib.nvmlDeviceGetCurrentClocksThrottleReasons.as_ref()),
    )?;
    let mut reasons = 0;
    // SAFETY: the handle belongs to `device`, which `nvml` outlives.
    let handle = unsafe { device.handle() };
    // SAFETY: a pointer to a number that lives through the call.
    nvml_try(unsafe { function(handle, &raw mut reasons) })?;
    Ok(reasons)
}

/// What an event set delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEvent {
    /// The GPU's handle, to be compared with `is_device`.
    device: c::nvmlDevice_t,
    /// Bits of `nvmlEventType*`.
    pub kind: u64,
    /// The XID.
    pub data: u64,
    /// MIG GPU and compute instance; `u32::MAX` where there is none.
    pub instance: (u32, u32),
}

impl RawEvent {
    /// Whether it is about this GPU, without asking the driver: one that just died can't be.
    pub fn is_of(&self, device: &Device<'_>) -> bool {
        // SAFETY: the handle is only compared.
        self.device == unsafe { device.handle() }
    }
}

/// The next event, without waiting: the crate leaves out the MIG instance. Errors as NVML does.
pub fn next_event(nvml: &Nvml, set: &EventSet<'_>) -> Result<RawEvent, NvmlError> {
    let function = *nvml_sym(nvml.lib().nvmlEventSetWait_v2.as_ref())?;
    // SAFETY: a handle and integers, for which zero is a value.
    let mut event = unsafe { mem::zeroed::<c::nvmlEventData_t>() };
    // SAFETY: the handle belongs to `set`, which lives through the call.
    let handle = unsafe { set.handle() };
    // SAFETY: a pointer to the structure that `nvml.h` names, which lives through the call.
    nvml_try(unsafe { function(handle, &raw mut event, 0) })?;
    Ok(RawEvent {
        device: event.device,
        kind: event.eventType,
        data: event.eventData,
        instance: (event.gpuInstanceId, event.computeInstanceId),
    })
}

/// The ids of a MIG device. Errors as NVML does.
pub fn instance(nvml: &Nvml, device: &Device<'_>) -> Result<(u32, u32), NvmlError> {
    let lib = nvml.lib();
    let of_gpu = *nvml_sym(lib.nvmlDeviceGetGpuInstanceId.as_ref())?;
    let of_compute = *nvml_sym(lib.nvmlDeviceGetComputeInstanceId.as_ref())?;
    let (mut gi, mut ci) = (0, 0);
    // SAFETY: the handle belongs to `device`, which `nvml` outlives.
    let handle = unsafe { device.handle() };
    // SAFETY: a pointer to a number that lives through the call.
    nvml_try(unsafe { of_gpu(handle, &raw mut gi) })?;
    // SAFETY: as above.
    nvml_try(unsafe { of_compute(handle, &raw mut ci) })?;
    Ok((gi, ci))
}

/// Total and used bytes as drivers before 510 tell them, reserved memory counted as used.
pub fn memory_v1(nvml: &Nvml, device: &Device<'_>) -> Result<(u64, u64), NvmlError> {
    let function = *nvml_sym(nvml.lib().nvmlDeviceGetMemoryInfo.as_ref())?;
    let mut memory = c::nvmlMemory_t {
        total: 0,
        free: 0,
        used: 0,
    };
    // SAFETY: the handle belongs to `device`, which `nvml` outlives.
    let handle = unsafe { device.handle() };
    // SAFETY: a pointer to the structure that `nvml.h` names, which lives through the call.
    nvml_try(unsafe { function(handle, &raw mut memory) })?;
    Ok((memory.total, memory.used))
}
