//! What the helper and its supervisor say to each other: JSON lines over a socket pair.
//!
//! Owns the messages. Both ends are the same executable, so there are no versions.

use serde::{Deserialize, Serialize};

use crate::model::{GpuInfo, GpuSample, Inventory};

/// From the helper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromHelper {
    /// NVML answers; said once, before any tick.
    Inventory(Inventory),
    /// There are no GPUs to be had from here; said instead of an inventory, or later if the
    /// library misbehaved beyond repair. No tick follows.
    Failed {
        /// In plain words.
        why: String,
    },
    /// One look at the watched GPUs.
    Tick {
        /// When it began: milliseconds of `CLOCK_MONOTONIC`.
        mono_ms: u64,
        /// In the order of the inventory.
        gpus: Vec<GpuSample>,
    },
    /// The driver reported an error of a GPU.
    Xid {
        /// NVML's index.
        gpu: u32,
        /// The MIG device that is watched on it, by its UUID.
        mig: Option<String>,
        /// Its number.
        code: u64,
    },
    /// A call has not returned for over three seconds; said once a hang.
    Stuck {
        /// NVML's name of it.
        call: String,
        /// The GPU that it is about.
        gpu: Option<u32>,
        /// Seconds so far.
        for_s: f64,
    },
    /// The call that was stuck returned after all.
    Unstuck,
}

/// To the helper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToHelper {
    /// Look at these GPUs from now on, the first time at once; replaces what was watched.
    Watch {
        /// Which.
        gpus: Watched,
        /// Milliseconds from tick to tick.
        interval_ms: u64,
    },
    /// No more ticks.
    Stop,
    /// Take this pending signal away from the helper's process, so that the next one of
    /// its kind shows again.
    Consume {
        /// Its number.
        signal: i32,
    },
    /// Close this descriptor of those that are held open: its relay has ended, and a child
    /// that writes on must notice.
    Release {
        /// Its number.
        fd: i32,
    },
    /// The supervisor is being stopped as this child was: continue it once the child goes
    /// on. None: it was continued.
    Follow {
        /// The main child.
        child: Option<u32>,
    },
    /// Exit now.
    Bye,
}

/// Which GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// All that the inventory has.
    All,
    /// By NVML index; one that isn't in the inventory is left out.
    These(Vec<u32>),
    /// One MIG device, by its UUID.
    Instance(String),
}

impl Watched {
    /// These devices of the inventory: whole GPUs, or one MIG device, beside which a process
    /// has no other.
    pub fn of(devices: &[GpuInfo]) -> Self {
        match devices.iter().find_map(GpuInfo::mig) {
            Some(uuid) => Self::Instance(uuid.to_owned()),
            None => Self::These(devices.iter().map(|d| d.index).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GpuProcess, Reading, Throttle, Why};

    fn there_and_back<T>(message: &T)
    where
        T: Serialize + for<'de> Deserialize<'de> + PartialEq + std::fmt::Debug,
    {
        let line = serde_json::to_string(message).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(&serde_json::from_str::<T>(&line).unwrap(), message);
    }

    #[test]
    fn every_message_survives_the_socket() {
        let sample = GpuSample {
            index: 1,
            util_pct: Reading::Value(0.0),
            power_w: Reading::Missing(Why::NotSupported),
            throttle: Reading::Value(Throttle(0x4)),
            processes: Reading::Value(vec![GpuProcess {
                pid: 7,
                mem_mib: Reading::Missing(Why::Failed("odd".into())),
                sm_pct: Reading::Value(12.5),
                compute: true,
                mps_server: false,
            }]),
            ..GpuSample::default()
        };
        for message in [
            FromHelper::Inventory(Inventory {
                driver: Some("580.95.05".into()),
                cuda: None,
                gpus: vec![GpuInfo::default()],
                instances: vec![GpuInfo::default()],
            }),
            FromHelper::Failed { why: "none".into() },
            FromHelper::Tick {
                mono_ms: 5,
                gpus: vec![sample],
            },
            FromHelper::Stuck {
                call: "nvmlInit_v2".into(),
                gpu: None,
                for_s: 3.5,
            },
            FromHelper::Unstuck,
            FromHelper::Xid {
                gpu: 0,
                mig: None,
                code: 79,
            },
        ] {
            there_and_back(&message);
        }
    }

    #[test]
    fn every_order_survives_the_socket() {
        for message in [
            ToHelper::Watch {
                gpus: Watched::All,
                interval_ms: 1000,
            },
            ToHelper::Watch {
                gpus: Watched::These(vec![0, 2]),
                interval_ms: 200,
            },
            ToHelper::Watch {
                gpus: Watched::Instance("MIG-1".into()),
                interval_ms: 200,
            },
            ToHelper::Stop,
            ToHelper::Consume { signal: 15 },
            ToHelper::Release { fd: 5 },
            ToHelper::Follow { child: Some(7) },
            ToHelper::Follow { child: None },
            ToHelper::Bye,
        ] {
            there_and_back(&message);
        }
    }
}
