//! The C types and constants of `nvml.h` that the functions here speak, with their layouts.

use std::ffi::{c_char, c_void};

/// `nvmlDevice_t`: an opaque, non-null pointer. `moment::Target` says what ours mean.
pub type Handle = *mut c_void;

/// `nvmlReturn_t`.
pub type Code = u32;
pub const SUCCESS: Code = 0;
pub const UNINITIALIZED: Code = 1;
pub const INVALID_ARGUMENT: Code = 2;
pub const NOT_SUPPORTED: Code = 3;
pub const NO_PERMISSION: Code = 4;
pub const NOT_FOUND: Code = 6;
pub const INSUFFICIENT_SIZE: Code = 7;
pub const TIMEOUT: Code = 10;
pub const VERSION_MISMATCH: Code = 25;

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memory {
    pub total: u64,
    pub free: u64,
    pub used: u64,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryV2 {
    pub version: u32,
    pub total: u64,
    pub reserved: u64,
    pub free: u64,
    pub used: u64,
}

/// `NVML_STRUCT_VERSION(Memory, 2)`.
pub const MEMORY_V2: u32 = 0x0200_0028;

/// `nvmlProcessInfo_v2_t`, and `_v3`'s entries except in drivers 535.43 to 535.86.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Process {
    pub pid: u32,
    pub used: u64,
    pub gpu_instance: u32,
    pub compute_instance: u32,
}

/// What drivers 535.43 to 535.86 write for `_v3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct WideProcess {
    pub process: Process,
    pub protected: u64,
}

/// `nvmlProcessUtilizationSample_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessUtilization {
    pub pid: u32,
    pub timestamp: u64,
    pub sm: u32,
    pub mem: u32,
    pub enc: u32,
    pub dec: u32,
}

/// `nvmlPciInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pci {
    pub bus_id_legacy: [c_char; 16],
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
    pub device_id: u32,
    pub subsystem_id: u32,
    pub bus_id: [c_char; 32],
}

/// `nvmlAccountingStats_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Accounting {
    pub gpu: u32,
    pub mem: u32,
    pub max_memory: u64,
    pub time_ms: u64,
    pub start_us: u64,
    pub is_running: u32,
    pub reserved: [u32; 5],
}

/// `nvmlFieldValue_t`; the value is a union that `value_type` tells apart.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Field {
    pub id: u32,
    pub scope: u32,
    pub timestamp_us: i64,
    pub latency_us: i64,
    pub value_type: u32,
    pub code: Code,
    pub value: u64,
}

/// `NVML_VALUE_TYPE_UNSIGNED_LONG_LONG`.
pub const VALUE_U64: u32 = 3;

/// `nvmlEventData_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EventData {
    pub device: Handle,
    pub kind: u64,
    pub data: u64,
    pub gpu_instance: u32,
    pub compute_instance: u32,
}

/// `nvmlEventTypeDoubleBitEccError`.
pub const EVENT_ECC: u64 = 2;
/// `nvmlEventTypeXidCriticalError`.
pub const EVENT_XID: u64 = 8;

/// `nvmlDeviceAttributes_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Attributes {
    pub multiprocessors: u32,
    pub copy_engines: u32,
    pub decoders: u32,
    pub encoders: u32,
    pub jpeg: u32,
    pub ofa: u32,
    pub gpu_slices: u32,
    pub compute_slices: u32,
    pub memory_mib: u64,
}

/// `nvmlGpmSupport_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GpmSupport {
    pub version: u32,
    pub supported: u32,
}

/// `nvmlGpmMetric_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GpmMetric {
    pub id: u32,
    pub code: Code,
    pub value: f64,
    pub names: [*const c_char; 3],
}

/// `nvmlGpmMetricsGet_t` as the bindings have it; newer headers make room for more metrics.
#[repr(C)]
pub struct GpmMetrics {
    pub version: u32,
    pub count: u32,
    pub sample1: Handle,
    pub sample2: Handle,
    pub metrics: [GpmMetric; GPM_METRICS],
}

/// `NVML_GPM_METRIC_MAX`.
pub const GPM_METRICS: usize = 210;

#[cfg(test)]
mod tests {
    use std::mem::{align_of, offset_of, size_of};

    use nvml_wrapper_sys::bindings as c;

    use super::*;

    macro_rules! same_size {
        ($($ours:ty, $theirs:ty, $bytes:expr;)*) => {
            $(
                assert_eq!(size_of::<$ours>(), size_of::<$theirs>(), stringify!($theirs));
                assert_eq!(align_of::<$ours>(), align_of::<$theirs>(), stringify!($theirs));
                assert_eq!(size_of::<$ours>(), $bytes, stringify!($theirs));
            )*
        };
    }

    #[test]
    fn sizes_are_those_of_the_bindings() {
        same_size! {
            Memory, c::nvmlMemory_t, 24;
            MemoryV2, c::nvmlMemory_v2_t, 40;
            Process, c::nvmlProcessInfo_v2_t, 24;
            Process, c::nvmlProcessInfo_t, 24;
            ProcessUtilization, c::nvmlProcessUtilizationSample_t, 32;
            Pci, c::nvmlPciInfo_t, 68;
            Accounting, c::nvmlAccountingStats_t, 56;
            Field, c::nvmlFieldValue_t, 40;
            EventData, c::nvmlEventData_t, 32;
            Attributes, c::nvmlDeviceAttributes_t, 40;
            GpmSupport, c::nvmlGpmSupport_t, 8;
            GpmMetric, c::nvmlGpmMetric_t, 40;
            GpmMetrics, c::nvmlGpmMetricsGet_t, size_of::<c::nvmlGpmMetricsGet_t>();
        }
        assert_eq!(size_of::<WideProcess>(), 32);
    }

    #[test]
    fn fields_lie_where_the_bindings_have_them() {
        assert_eq!(
            offset_of!(MemoryV2, used),
            offset_of!(c::nvmlMemory_v2_t, used)
        );
        assert_eq!(
            offset_of!(Process, used),
            offset_of!(c::nvmlProcessInfo_t, usedGpuMemory)
        );
        assert_eq!(
            offset_of!(ProcessUtilization, sm),
            offset_of!(c::nvmlProcessUtilizationSample_t, smUtil)
        );
        assert_eq!(offset_of!(Pci, bus_id), offset_of!(c::nvmlPciInfo_t, busId));
        assert_eq!(
            offset_of!(Accounting, start_us),
            offset_of!(c::nvmlAccountingStats_t, startTime)
        );
        assert_eq!(
            offset_of!(Field, code),
            offset_of!(c::nvmlFieldValue_t, nvmlReturn)
        );
        assert_eq!(
            offset_of!(Field, value),
            offset_of!(c::nvmlFieldValue_t, value)
        );
        assert_eq!(
            offset_of!(EventData, data),
            offset_of!(c::nvmlEventData_t, eventData)
        );
        assert_eq!(
            offset_of!(GpmMetrics, metrics),
            offset_of!(c::nvmlGpmMetricsGet_t, metrics)
        );
    }
}
