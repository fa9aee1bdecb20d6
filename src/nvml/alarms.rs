//! XIDs and memory errors: what the driver reports by itself when something goes wrong on a GPU.
//!
//! Runs on the NVML thread. Owns the event set, which is asked without waiting.

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, EventSet, Nvml};

use super::desk::Desk;
use crate::model::GpuInfo;
use crate::sys::nvml_raw::{RawEvent, next_event};

/// Events taken at one tick at most: a GPU that dies can report them without end.
const MOST: usize = 16;
/// No MIG instance.
const NO_INSTANCE: u32 = u32::MAX;

/// What was reported.
pub enum Alarm {
    /// An XID.
    Xid {
        /// NVML's index.
        gpu: u32,
        /// The MIG device that is watched on it.
        mig: Option<String>,
        /// Its number.
        code: u64,
    },
    /// Memory errors that can't be corrected: it is time to count them.
    Ecc {
        /// NVML's index.
        gpu: u32,
    },
}

/// Listens for what some GPUs report.
pub struct Alarms<'n> {
    desk: &'n Desk,
    nvml: &'n Nvml,
    devices: Vec<(GpuInfo, Device<'n>, EventTypes)>,
    set: Option<EventSet<'n>>,
}

impl<'n> Alarms<'n> {
    /// Listens to these devices, as far as they support it.
    pub fn new(desk: &'n Desk, nvml: &'n Nvml, watched: Vec<GpuInfo>) -> Self {
        let mut devices: Vec<_> = watched
            .into_iter()
            .filter_map(|info| {
                let (device, types) = able(desk, nvml, info.index)?;
                Some((info, device, types))
            })
            .collect();
        let set = loop {
            match register(desk, nvml, &devices) {
                Ok(set) => break set,
                // The set is gone with the GPU that refused: again without it.
                Err(place) => drop(devices.remove(place)),
            }
        };
        Self {
            desk,
            nvml,
            devices,
            set,
        }
    }

    /// What was reported since the last time.
    pub fn take(&self) -> Vec<Alarm> {
        let Some(set) = &self.set else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        for _ in 0..MOST {
            let event = self
                .desk
                .during("nvmlEventSetWait_v2", None, || next_event(self.nvml, set));
            let Ok(event) = event else {
                break;
            };
            taken.extend(self.alarm(&event));
        }
        taken
    }

    fn alarm(&self, event: &RawEvent) -> Option<Alarm> {
        let mut devices = self.devices.iter();
        let (info, ..) = devices.find(|(info, device, _)| {
            // What happens in another part of the GPU isn't ours; what names none is everybody's.
            let part = info.instance.map(|i| i.gi);
            event.is_of(device)
                && (event.instance.0 == NO_INSTANCE || part.is_none_or(|gi| gi == event.instance.0))
        })?;
        let kind = EventTypes::from_bits_truncate(event.kind);
        if kind.contains(EventTypes::CRITICAL_XID_ERROR) {
            return Some(Alarm::Xid {
                gpu: info.index,
                mig: info.mig().map(str::to_owned),
                code: event.data,
            });
        }
        kind.contains(EventTypes::DOUBLE_BIT_ECC_ERROR)
            .then_some(Alarm::Ecc { gpu: info.index })
    }
}

/// The GPU and what of interest it reports, if anything.
fn able<'n>(desk: &Desk, nvml: &'n Nvml, index: u32) -> Option<(Device<'n>, EventTypes)> {
    let gpu = Some(index);
    let device = desk
        .during("nvmlDeviceGetHandleByIndex_v2", gpu, || {
            nvml.device_by_index(index)
        })
        .ok()?;
    let types = desk.during("nvmlDeviceGetSupportedEventTypes", gpu, || {
        device.supported_event_types()
    });
    let wanted = EventTypes::CRITICAL_XID_ERROR | EventTypes::DOUBLE_BIT_ECC_ERROR;
    let types = types.ok()? & wanted;
    (!types.is_empty()).then_some((device, types))
}

/// A set for all of them (None where there is nothing to listen to), or the place of the
/// first that refuses.
fn register<'n>(
    desk: &Desk,
    nvml: &'n Nvml,
    devices: &[(GpuInfo, Device<'n>, EventTypes)],
) -> Result<Option<EventSet<'n>>, usize> {
    if devices.is_empty() {
        return Ok(None);
    }
    let created: Result<_, NvmlError> =
        desk.during("nvmlEventSetCreate", None, || nvml.create_event_set());
    let Ok(mut set) = created else {
        return Ok(None);
    };
    for (place, (info, device, types)) in devices.iter().enumerate() {
        let registered = desk.during("nvmlDeviceRegisterEvents", Some(info.index), || {
            device.register_events(*types, set)
        });
        set = registered.map_err(|_| place)?;
    }
    Ok(Some(set))
}
