//! XIDs: what the driver reports by itself when something goes wrong on a GPU.
//!
//! Runs on the NVML thread. Owns the event set, which is asked without waiting.

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, EventSet, Nvml};

use super::desk::Desk;
use crate::sys::nvml_raw::same_device;

/// XIDs taken at one tick at most: a GPU that dies can report them without end.
const MOST: usize = 16;
/// What NVML says for an XID that it doesn't know (`XidError::Unknown`).
const UNKNOWN_XID: u64 = 999;

/// Listens for the XIDs of some GPUs.
pub struct Alarms<'n> {
    desk: &'n Desk,
    devices: Vec<(u32, Device<'n>)>,
    set: Option<EventSet<'n>>,
}

impl<'n> Alarms<'n> {
    /// Listens to these GPUs, as far as they support it.
    pub fn new(desk: &'n Desk, nvml: &'n Nvml, gpus: &[u32]) -> Self {
        let mut devices: Vec<_> = gpus
            .iter()
            .filter_map(|&index| Some((index, able(desk, nvml, index)?)))
            .collect();
        loop {
            match register(desk, nvml, &devices) {
                Ok(set) => return Self { desk, devices, set },
                // The set is gone with the GPU that refused: again without it.
                Err(place) => drop(devices.remove(place)),
            }
        }
    }

    /// The XIDs since the last time, with the GPU that each is about.
    pub fn take(&self) -> Vec<(u32, u64)> {
        let Some(set) = &self.set else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        for _ in 0..MOST {
            let event = self
                .desk
                .during("nvmlEventSetWait_v2", None, || set.wait(0));
            let Ok(event) = event else {
                break;
            };
            // By its handle: a GPU that just died can't be asked for its index.
            let known = self.devices.iter();
            let gpu = known
                .filter(|(_, d)| same_device(d, &event.device))
                .map(|(index, _)| *index)
                .next();
            let xid = match event.event_data {
                Some(XidError::Value(xid)) => xid,
                Some(XidError::Unknown) => UNKNOWN_XID,
                None => continue,
            };
            taken.extend(gpu.map(|gpu| (gpu, xid)));
        }
        taken
    }
}

/// The GPU, if it reports XIDs.
fn able<'n>(desk: &Desk, nvml: &'n Nvml, index: u32) -> Option<Device<'n>> {
    let gpu = Some(index);
    let device = desk
        .during("nvmlDeviceGetHandleByIndex_v2", gpu, || {
            nvml.device_by_index(index)
        })
        .ok()?;
    let types = desk.during("nvmlDeviceGetSupportedEventTypes", gpu, || {
        device.supported_event_types()
    });
    types
        .is_ok_and(|t| t.contains(EventTypes::CRITICAL_XID_ERROR))
        .then_some(device)
}

/// A set for all of them (None where there is nothing to listen to), or the place of the
/// first that refuses.
fn register<'n>(
    desk: &Desk,
    nvml: &'n Nvml,
    devices: &[(u32, Device<'n>)],
) -> Result<Option<EventSet<'n>>, usize> {
    if devices.is_empty() {
        return Ok(None);
    }
    let created: Result<_, NvmlError> =
        desk.during("nvmlEventSetCreate", None, || nvml.create_event_set());
    let Ok(mut set) = created else {
        return Ok(None);
    };
    for (place, (index, device)) in devices.iter().enumerate() {
        let registered = desk.during("nvmlDeviceRegisterEvents", Some(*index), || {
            device.register_events(EventTypes::CRITICAL_XID_ERROR, set)
        });
        set = registered.map_err(|_| place)?;
    }
    Ok(Some(set))
}
