//! Event sets: the scenario's XIDs, each delivered once.

use std::thread;
use std::time::{Duration, Instant};

use crate::abi::{
    Code, EVENT_ECC, EVENT_XID, EventData, Handle, INVALID_ARGUMENT, SUCCESS, TIMEOUT,
};
use crate::moment::{Target, device, put, system};
use crate::state;

/// How often a waiting call looks whether an event is due.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The one event set that there is.
fn the_set() -> Handle {
    std::ptr::without_provenance_mut(0x5e7)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlEventSetCreate(out: *mut Handle) -> Code {
    system("nvmlEventSetCreate", |_| {
        // SAFETY: a pointer to a set, as nvml.h demands.
        unsafe { put(out, Ok(the_set())) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetFree(set: Handle) -> Code {
    system("nvmlEventSetFree", |_| {
        if set.is_null() {
            INVALID_ARGUMENT
        } else {
            SUCCESS
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetSupportedEventTypes(handle: Handle, out: *mut u64) -> Code {
    device("nvmlDeviceGetSupportedEventTypes", handle, |m| {
        let types = m.gpu().event_types.or_derive(|| EVENT_XID | EVENT_ECC);
        // SAFETY: a pointer to an unsigned long long, as nvml.h demands.
        unsafe { put(out, types) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceRegisterEvents(handle: Handle, _types: u64, set: Handle) -> Code {
    device("nvmlDeviceRegisterEvents", handle, |_| {
        if set.is_null() {
            INVALID_ARGUMENT
        } else {
            SUCCESS
        }
    })
}

/// The next XID that is due and was not delivered.
fn next_xid() -> Option<EventData> {
    let mut state = state::lock();
    let scenario = state.scenario();
    let elapsed_s = state.elapsed_s();
    let (place, xid) = scenario
        .events
        .iter()
        .enumerate()
        .find(|(place, e)| e.after_s <= elapsed_s && !state.delivered.contains(place))?;
    state.delivered.push(place);
    Some(EventData {
        device: Target {
            gpu: xid.gpu,
            mig: None,
        }
        .handle(),
        kind: xid.xid.map_or(EVENT_ECC, |_| EVENT_XID),
        data: xid.xid.unwrap_or(0),
        gpu_instance: xid.gi.unwrap_or(u32::MAX),
        compute_instance: xid.gi.map_or(u32::MAX, |_| 0),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlEventSetWait_v2(
    set: Handle,
    out: *mut EventData,
    timeout_ms: u32,
) -> Code {
    system("nvmlEventSetWait_v2", |_| {
        if set.is_null() || out.is_null() {
            return INVALID_ARGUMENT;
        }
        let deadline = Instant::now() + Duration::from_millis(timeout_ms.into());
        loop {
            if let Some(event) = next_xid() {
                // SAFETY: a pointer to nvmlEventData_t, as nvml.h demands.
                return unsafe { put(out, Ok(event)) };
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return TIMEOUT;
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    })
}
