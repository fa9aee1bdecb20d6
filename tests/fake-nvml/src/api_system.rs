//! `nvmlInit`, `nvmlSystemGet*` and what finds devices.

use std::ffi::{CStr, c_char, c_int};
use std::time::Instant;

use crate::abi::{
    Code, Handle, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NO_PERMISSION, NOT_FOUND, SUCCESS,
    UNINITIALIZED,
};
use crate::fault;
use crate::moment::{self, Target, put};
use crate::scenario::Scenario;
use crate::state;

/// Writes a C string; what doesn't fit is `INSUFFICIENT_SIZE`, as in the real library.
///
/// # Safety
/// `out` is null or valid for `size` bytes.
pub unsafe fn put_text(out: *mut c_char, size: u32, text: Result<String, Code>) -> Code {
    let text = match text {
        Ok(text) => text,
        Err(code) => return code,
    };
    if out.is_null() {
        return INVALID_ARGUMENT;
    }
    if text.len() + 1 > size as usize {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: the text and its end fit into `size` bytes, which are valid.
    unsafe {
        out.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        out.add(text.len()).write(0);
    }
    SUCCESS
}

fn init(call: &str) -> Code {
    let mut state = state::lock();
    let scenario = state.scenario();
    state.since.get_or_insert_with(Instant::now);
    let struck = fault::strike(&mut state, &scenario, call, None);
    drop(state);
    if let Err(code) = struck.play() {
        return code;
    }
    state::lock().initialised += 1;
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> Code {
    init("nvmlInit_v2")
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: u32) -> Code {
    init("nvmlInitWithFlags")
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> Code {
    let code = moment::system("nvmlShutdown", |_| SUCCESS);
    if code == SUCCESS {
        let mut state = state::lock();
        state.initialised = state.initialised.saturating_sub(1);
    }
    code
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetDriverVersion(out: *mut c_char, size: u32) -> Code {
    moment::system("nvmlSystemGetDriverVersion", |s| {
        // SAFETY: a buffer of `size` bytes, as nvml.h demands.
        unsafe { put_text(out, size, s.driver_version()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetNVMLVersion(out: *mut c_char, size: u32) -> Code {
    moment::system("nvmlSystemGetNVMLVersion", |s| {
        let text = s.driver_version().map(|v| format!("13.{v}"));
        // SAFETY: a buffer of `size` bytes, as nvml.h demands.
        unsafe { put_text(out, size, text) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(out: *mut c_int) -> Code {
    moment::system("nvmlSystemGetCudaDriverVersion_v2", |s| {
        // SAFETY: a pointer to an int, as nvml.h demands.
        unsafe { put(out, s.cuda.or_derive(|| 13_000)) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: Code) -> *const c_char {
    let text: &'static CStr = match code {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        9 => c"Driver Not Loaded",
        10 => c"Timeout",
        15 => c"GPU is lost",
        18 => c"Driver/library version mismatch",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

impl Scenario {
    /// The driver's version.
    pub fn driver_version(&self) -> Result<String, Code> {
        self.driver.or_derive(|| "580.95.05".to_owned())
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCount_v2(out: *mut u32) -> Code {
    moment::system("nvmlDeviceGetCount_v2", |s| {
        // SAFETY: a pointer to an unsigned int, as nvml.h demands.
        unsafe { put(out, Ok(s.gpus.len() as u32)) }
    })
}

/// Finds a device; a fault may concern the GPU that would have been found.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn find(
    call: &str,
    out: *mut Handle,
    missing: Code,
    which: impl FnOnce(&Scenario) -> Option<Target>,
) -> Code {
    let mut state = state::lock();
    if state.initialised == 0 {
        return UNINITIALIZED;
    }
    let scenario = state.scenario();
    let found = which(&scenario);
    let struck = fault::strike(&mut state, &scenario, call, found.map(|t| t.gpu));
    drop(state);
    if let Err(code) = struck.play() {
        return code;
    }
    let handle = match found {
        None => Err(missing),
        Some(t) if scenario.gpus[t.gpu as usize].no_permission => Err(NO_PERMISSION),
        Some(t) => Ok(t.handle()),
    };
    // SAFETY: as this function's caller promises.
    unsafe { put(out, handle) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: u32, out: *mut Handle) -> Code {
    let whole = |s: &Scenario| {
        ((index as usize) < s.gpus.len()).then_some(Target {
            gpu: index,
            mig: None,
        })
    };
    // SAFETY: a pointer to a handle, as nvml.h demands.
    unsafe {
        find(
            "nvmlDeviceGetHandleByIndex_v2",
            out,
            INVALID_ARGUMENT,
            whole,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, out: *mut Handle) -> Code {
    if uuid.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: a C string, as nvml.h demands.
    let wanted = unsafe { CStr::from_ptr(uuid) }.to_string_lossy();
    let by_uuid = |s: &Scenario| {
        let gpus = (0_u32..).zip(&s.gpus);
        gpus.into_iter().find_map(|(gpu, g)| {
            if g.uuid_text(gpu).is_ok_and(|u| u == wanted) {
                return Some(Target { gpu, mig: None });
            }
            let devices = g.mig.as_ref().map(|m| m.devices.as_slice());
            (0_u32..)
                .zip(devices.unwrap_or_default())
                .find(|(_, d)| d.as_ref().is_some_and(|d| d.uuid == wanted))
                .map(|(mig, _)| Target {
                    gpu,
                    mig: Some(mig),
                })
        })
    };
    // SAFETY: a pointer to a handle, as nvml.h demands.
    unsafe { find("nvmlDeviceGetHandleByUUID", out, NOT_FOUND, by_uuid) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(
    bus_id: *const c_char,
    out: *mut Handle,
) -> Code {
    if bus_id.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: a C string, as nvml.h demands.
    let wanted = unsafe { CStr::from_ptr(bus_id) }.to_string_lossy();
    let by_bus = |s: &Scenario| {
        (0_u32..)
            .zip(&s.gpus)
            .find(|(gpu, g)| g.bus_id(*gpu).eq_ignore_ascii_case(&wanted))
            .map(|(gpu, _)| Target { gpu, mig: None })
    };
    // SAFETY: a pointer to a handle, as nvml.h demands.
    unsafe { find("nvmlDeviceGetHandleByPciBusId_v2", out, NOT_FOUND, by_bus) }
}
