//! GPU performance monitoring: percentages between two samples.

use crate::abi::{
    Code, GPM_METRICS, GpmMetrics, GpmSupport, Handle, INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS,
    VERSION_MISMATCH,
};
use crate::moment::{Target, device, put, system};
use crate::scenario::Scenario;

/// `nvmlGpmSample_t` points here: which device was sampled.
struct Sample(Option<u32>);

/// `NVML_GPM_METRIC_SM_UTIL`, `_ANY_TENSOR_UTIL`, `_DRAM_BW_UTIL`.
const SM: u32 = 2;
const TENSOR: u32 = 5;
const DRAM: u32 = 10;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmQueryDeviceSupport(handle: Handle, out: *mut GpmSupport) -> Code {
    device("nvmlGpmQueryDeviceSupport", handle, |m| {
        let support = GpmSupport {
            version: 1,
            supported: u32::from(m.gpu().gpm.is_some()),
        };
        // SAFETY: a pointer to nvmlGpmSupport_t, as nvml.h demands.
        unsafe { put(out, Ok(support)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmSampleAlloc(out: *mut Handle) -> Code {
    system("nvmlGpmSampleAlloc", |_| {
        if out.is_null() {
            return INVALID_ARGUMENT;
        }
        let sample = Box::into_raw(Box::new(Sample(None)));
        // SAFETY: a pointer to a sample, as nvml.h demands.
        unsafe { put(out, Ok(sample.cast())) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmSampleFree(sample: Handle) -> Code {
    if sample.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: it came from `nvmlGpmSampleAlloc` and is freed once, as nvml.h demands.
    drop(unsafe { Box::from_raw(sample.cast::<Sample>()) });
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmSampleGet(handle: Handle, sample: Handle) -> Code {
    device("nvmlGpmSampleGet", handle, |m| {
        if sample.is_null() {
            return INVALID_ARGUMENT;
        }
        if m.gpu().gpm.is_none() {
            return NOT_SUPPORTED;
        }
        // SAFETY: it came from `nvmlGpmSampleAlloc`.
        unsafe { sample.cast::<Sample>().write(Sample(Some(m.target.gpu))) };
        SUCCESS
    })
}

fn metric(scenario: &Scenario, gpu: u32, id: u32) -> Result<f64, Code> {
    let gpu = scenario.gpus.get(gpu as usize).ok_or(INVALID_ARGUMENT)?;
    let gpm = gpu.gpm.ok_or(NOT_SUPPORTED)?;
    match id {
        SM => Ok(gpm.sm_active),
        TENSOR => Ok(gpm.tensor_active),
        DRAM => Ok(gpm.dram_active),
        _ => Err(NOT_SUPPORTED),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmMetricsGet(wanted: *mut GpmMetrics) -> Code {
    system("nvmlGpmMetricsGet", |scenario| {
        // SAFETY: null or a filled-in nvmlGpmMetricsGet_t, as nvml.h demands.
        let Some(wanted) = (unsafe { wanted.as_mut() }) else {
            return INVALID_ARGUMENT;
        };
        if wanted.version != 1 {
            return VERSION_MISMATCH;
        }
        // SAFETY: null or from `nvmlGpmSampleAlloc`.
        let sampled = unsafe { wanted.sample2.cast::<Sample>().as_ref() };
        let Some(Target { gpu, .. }) = sampled
            .and_then(|s| s.0)
            .map(|gpu| Target { gpu, mig: None })
        else {
            return INVALID_ARGUMENT;
        };
        let count = (wanted.count as usize).min(GPM_METRICS);
        for entry in &mut wanted.metrics[..count] {
            let value = metric(scenario, gpu, entry.id);
            entry.code = value.err().unwrap_or(SUCCESS);
            entry.value = value.unwrap_or(f64::NAN);
        }
        SUCCESS
    })
}
