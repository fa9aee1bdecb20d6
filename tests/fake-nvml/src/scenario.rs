//! The scenario file: what the simulated machine looks like, and what goes wrong with it.

use serde::{Deserialize, Deserializer};

/// Absent (derive it), null (the device doesn't support it), or given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Setting<T> {
    #[default]
    Derived,
    Unsupported,
    Given(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Setting<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(d)?.map_or(Self::Unsupported, Self::Given))
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    pub driver: Setting<String>,
    pub cuda: Setting<i32>,
    pub gpus: Vec<Gpu>,
    pub faults: Vec<Fault>,
    pub events: Vec<Xid>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gpu {
    pub uuid: Setting<String>,
    pub name: Setting<String>,
    pub serial: Setting<String>,
    pub pci_bus: Option<u32>,
    pub architecture: Setting<u32>,
    pub compute_capability: Option<(i32, i32)>,
    pub memory_mib: Setting<u64>,
    pub base_mib: u64,
    pub reserved_mib: u64,
    pub util: Setting<u32>,
    pub mem_util: Option<u32>,
    pub power_w: Setting<f64>,
    pub power_limit_w: Setting<f64>,
    pub temp_c: Setting<u32>,
    pub slowdown_c: Setting<u32>,
    pub clock_mhz: Setting<u32>,
    pub max_clock_mhz: Setting<u32>,
    pub throttle: Setting<u64>,
    pub energy_j: Setting<f64>,
    pub pcie_mb_s: Setting<f64>,
    pub ecc_uncorrected: Setting<u64>,
    pub processes: Setting<Vec<Process>>,
    pub graphics: Setting<Vec<Process>>,
    /// Clients of MPS.
    pub mps: Setting<Vec<Process>>,
    /// The kinds of events that are supported.
    pub event_types: Setting<u64>,
    pub process_util: Setting<bool>,
    pub samples: Vec<RawSample>,
    pub no_permission: bool,
    pub mig: Option<Mig>,
    pub gpm: Option<Gpm>,
}

/// A process on a GPU. Its own memory null is what the driver says when it can't tell.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    pub pid: u32,
    #[serde(default)]
    pub mem_mib: Option<u64>,
    #[serde(default)]
    pub sm: u32,
    #[serde(default)]
    pub mem: u32,
    #[serde(default)]
    pub gi: Option<u32>,
    #[serde(default)]
    pub ci: Option<u32>,
}

/// An entry put into the process-utilisation samples as it is, however wrong.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawSample {
    pub pid: u32,
    pub sm: u32,
    #[serde(default)]
    pub mem: u32,
    /// Microseconds before now.
    #[serde(default)]
    pub age_us: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mig {
    pub enabled: bool,
    /// By MIG index; null is a hole.
    pub devices: Vec<Option<MigDevice>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigDevice {
    pub uuid: String,
    pub gi: u32,
    pub ci: u32,
    #[serde(default)]
    pub memory_mib: u64,
}

/// GPM percentages; a GPU without `gpm` doesn't support it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gpm {
    pub sm_active: f64,
    pub tensor_active: f64,
    pub dram_active: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Xid {
    pub gpu: u32,
    /// Absent: an uncorrectable memory error.
    #[serde(default)]
    pub xid: Option<u64>,
    /// The MIG GPU instance in which it happens.
    #[serde(default)]
    pub gi: Option<u32>,
    /// Seconds after the library was initialised.
    #[serde(default)]
    pub after_s: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    /// A function's name; `*` at its end stands for any rest.
    pub call: String,
    pub gpu: Option<u32>,
    /// Spare this many calls first.
    pub after_calls: u64,
    /// Then strike this many times (absent: for ever).
    pub times: Option<u64>,
    /// Seconds after the library was initialised.
    pub from_s: Option<f64>,
    pub until_s: Option<f64>,
    pub code: Option<u32>,
    pub hang: Option<Hang>,
    pub slow_ms: u64,
    pub garbage: bool,
    /// The count that a process list announces is too small by this many.
    pub race: u32,
}

/// How a call hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hang {
    /// For ever, in an interruptible sleep.
    Forever,
    /// For ever, in state D (only a fatal signal ends it).
    Uninterruptible,
    /// Until the scenario no longer has this fault.
    UntilRemoved,
}

impl Fault {
    /// Whether this fault is about this call on this GPU.
    pub fn concerns(&self, call: &str, gpu: Option<u32>) -> bool {
        let named = match self.call.strip_suffix('*') {
            Some(start) => call.starts_with(start),
            None => call == self.call,
        };
        named && (self.gpu.is_none() || self.gpu == gpu)
    }

    /// Whether it may strike this many seconds after initialisation.
    pub fn is_due(&self, elapsed_s: f64) -> bool {
        self.from_s.is_none_or(|from| elapsed_s >= from)
            && self.until_s.is_none_or(|until| elapsed_s < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_null_and_given_differ() {
        let gpu: Gpu = serde_json::from_str(r#"{"power_w": null, "temp_c": 40}"#).unwrap();
        assert_eq!(gpu.util, Setting::Derived);
        assert_eq!(gpu.power_w, Setting::Unsupported);
        assert_eq!(gpu.temp_c, Setting::Given(40));
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        assert!(serde_json::from_str::<Scenario>(r#"{"gpu": []}"#).is_err());
    }

    #[test]
    fn a_fault_names_calls_by_their_start_gpus_by_number_and_a_time() {
        let lost: Fault = serde_json::from_str(
            r#"{"call": "nvmlDevice*", "gpu": 1, "code": 15, "from_s": 2, "until_s": 5}"#,
        )
        .unwrap();
        assert!(lost.concerns("nvmlDeviceGetName", Some(1)));
        assert!(!lost.concerns("nvmlDeviceGetName", Some(0)));
        assert!(!lost.concerns("nvmlSystemGetDriverVersion", None));
        assert!(!lost.is_due(1.9));
        assert!(lost.is_due(2.0));
        assert!(!lost.is_due(5.0));
    }
}
