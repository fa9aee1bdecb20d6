//! What `gpuwatch gpus` shows, as the JSON document has it.
//!
//! From readings to people's terms: who holds a GPU, whether it is free, which number CUDA
//! gives it here.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;
use serde_json::Number;

use crate::model::{GpuInfo, GpuProcess, GpuSample, Inventory, Reading, Why};
use crate::place::choose::{self, Standing};
use crate::place::claims::{Claimed, Claims, key};
use crate::place::holder::{Holder, claimant, holder};
use crate::place::visible::{Device, visible};

/// The document of `--json`.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: u32,
    /// Driver version.
    pub driver: Option<String>,
    /// The newest CUDA that it supports.
    pub cuda: Option<String>,
    /// By NVML index.
    pub gpus: Vec<Gpu>,
}

/// One GPU of the document; null is a reading that there isn't.
#[derive(Debug, Serialize)]
pub struct Gpu {
    /// NVML's.
    pub index: u32,
    /// CUDA's for a program started here with `CUDA_DEVICE_ORDER=PCI_BUS_ID`; null: hidden from it.
    pub cuda_index: Option<usize>,
    /// `GPU-...`
    pub uuid: Option<String>,
    /// The product.
    pub name: Option<String>,
    /// %
    pub util_pct: Option<Number>,
    /// MiB
    pub mem_used_mib: Option<Number>,
    /// MiB
    pub mem_total_mib: Option<Number>,
    /// °C
    pub temp_c: Option<Number>,
    /// W
    pub power_w: Option<Number>,
    /// `free`, `claimed` (and used by nobody yet), `busy`, `mig` (its MIG devices are for use),
    /// `lost`, or `unknown` where too little can be read.
    pub state: &'static str,
    /// Who claimed it.
    pub claim: Option<Claim>,
    /// Compute and graphics processes, but for those on its MIG devices.
    pub processes: Vec<Process>,
    /// Where it is plugged in.
    pub pci_bus: Option<String>,
    /// NVML's index on the host, where that is known.
    pub host_index: Option<u32>,
    /// Its MIG devices.
    pub mig: Vec<MigDevice>,
}

/// A MIG device; null is a reading that there isn't.
#[derive(Debug, Serialize)]
pub struct MigDevice {
    /// `MIG-...`
    pub uuid: Option<String>,
    /// The product and its profile.
    pub name: Option<String>,
    /// The GPU instance's id.
    pub gi: u32,
    /// The compute instance's id.
    pub ci: u32,
    /// As that of a GPU.
    pub cuda_index: Option<usize>,
    /// MiB
    pub mem_used_mib: Option<Number>,
    /// MiB
    pub mem_total_mib: Option<Number>,
    /// As that of a GPU.
    pub state: &'static str,
    /// Who claimed it.
    pub claim: Option<Claim>,
    /// Compute and graphics processes.
    pub processes: Vec<Process>,
}

/// A run's claim. Null is what can't be seen from here.
#[derive(Debug, Serialize)]
pub struct Claim {
    /// Its id.
    pub run: Option<String>,
    /// Its user.
    pub user: Option<String>,
    /// The gpuwatch that holds it.
    pub pid: Option<u32>,
    /// When that was started.
    pub since: Option<String>,
}

/// A process on a GPU.
#[derive(Debug, Serialize)]
pub struct Process {
    /// Its PID.
    pub pid: u32,
    /// Its user.
    pub user: Option<String>,
    /// Its command line.
    pub command: Option<String>,
    /// MiB on this GPU.
    pub mem_mib: Option<Number>,
    /// % of SM time.
    pub sm_pct: Option<Number>,
    /// When it was started.
    pub since: Option<String>,
    /// The gpuwatch run that it belongs to.
    pub run: Option<String>,
}

/// The document of what was read; without samples all readings are null.
pub fn document(inventory: &Inventory, samples: &[GpuSample]) -> Document {
    let setting = std::env::var_os("CUDA_VISIBLE_DEVICES");
    let setting = setting.as_ref().map(|v| v.to_string_lossy());
    let look = Look {
        inventory,
        samples,
        visible: visible(setting.as_deref(), inventory),
        standings: choose::standings(inventory, samples, &BTreeSet::new(), &|_| None),
        claims: Claims::look(),
    };
    Document {
        schema: 1,
        driver: inventory.driver.clone(),
        cuda: inventory.cuda.clone(),
        gpus: inventory.gpus.iter().map(|info| look.gpu(info)).collect(),
    }
}

/// What was read, and what follows from all of it.
struct Look<'a> {
    inventory: &'a Inventory,
    samples: &'a [GpuSample],
    visible: Vec<Device>,
    standings: Vec<Standing>,
    claims: Option<Claims>,
}

fn claim(claimed: Claimed) -> Claim {
    let holder = claimed.pid.map(|pid| claimant(Path::new("/proc"), pid));
    let holder = holder.unwrap_or_default();
    Claim {
        run: holder.run,
        user: holder.user,
        pid: claimed.pid,
        since: holder.since.and_then(local_time),
    }
}

impl Look<'_> {
    fn gpu(&self, info: &GpuInfo) -> Gpu {
        let unread = GpuSample::default();
        let read = self.read(info).unwrap_or(&unread);
        let parts: Vec<&GpuInfo> = self.inventory.instances_of(info.index).collect();
        let claim = self.claim(info);
        Gpu {
            index: info.index,
            cuda_index: self.cuda_index(info),
            uuid: info.uuid.clone(),
            name: info.name.clone(),
            util_pct: number(&read.util_pct, 1.0),
            mem_used_mib: number(&read.mem_used_mib, 1.0),
            mem_total_mib: total(read, info),
            temp_c: number(&read.temp_c, 1.0),
            power_w: number(&read.power_w, 10.0),
            state: self.state(info, read, claim.is_some()),
            claim,
            processes: listed(read)
                .iter()
                .filter(|p| !parts.iter().any(|part| self.is_on(p, part)))
                .map(process)
                .collect(),
            pci_bus: info.pci_bus.clone(),
            host_index: info.host_index,
            mig: parts.into_iter().map(|part| self.part(part)).collect(),
        }
    }

    fn part(&self, info: &GpuInfo) -> MigDevice {
        let unread = GpuSample::default();
        let read = self.read(info).unwrap_or(&unread);
        let claim = self.claim(info);
        let ids = info.instance.unwrap_or_default();
        MigDevice {
            uuid: info.uuid.clone(),
            name: info.name.clone(),
            gi: ids.gi,
            ci: ids.ci,
            cuda_index: self.cuda_index(info),
            mem_used_mib: number(&read.mem_used_mib, 1.0),
            mem_total_mib: total(read, info),
            state: self.state(info, read, claim.is_some()),
            claim,
            processes: listed(read).iter().map(process).collect(),
        }
    }

    fn read(&self, info: &GpuInfo) -> Option<&GpuSample> {
        self.samples.iter().find(|sample| sample.is_of(info))
    }

    fn cuda_index(&self, info: &GpuInfo) -> Option<usize> {
        let device = Device::from(info);
        self.visible.iter().position(|seen| *seen == device)
    }

    fn claim(&self, info: &GpuInfo) -> Option<Claim> {
        self.claims.as_ref()?.claimed(&key(info)).map(claim)
    }

    fn is_on(&self, process: &GpuProcess, part: &GpuInfo) -> bool {
        let list = self.read(part).map_or(&[][..], listed);
        list.iter().any(|p| p.pid == process.pid)
    }

    fn state(&self, info: &GpuInfo, read: &GpuSample, claimed: bool) -> &'static str {
        let device = Device::from(info);
        let standing = self.standings.iter().find(|s| s.device == device);
        let busy = standing.is_none_or(|s| s.busy.is_some());
        match (busy, &read.processes, &read.mem_used_mib) {
            (_, Reading::Missing(Why::Lost), _) => "lost",
            _ if info.mig_mode => "mig",
            (false, ..) if claimed => "claimed",
            (false, ..) => "free",
            (_, Reading::Missing(_), Reading::Missing(_)) => "unknown",
            _ => "busy",
        }
    }
}

fn listed(read: &GpuSample) -> &[GpuProcess] {
    read.processes.value().map_or(&[], Vec::as_slice)
}

fn total(read: &GpuSample, info: &GpuInfo) -> Option<Number> {
    number(&read.mem_total_mib, 1.0).or_else(|| info.memory_mib.map(Number::from))
}

fn process(listed: &GpuProcess) -> Process {
    let Holder {
        user,
        command,
        since,
        run,
        ..
    } = holder(Path::new("/proc"), listed.pid);
    Process {
        pid: listed.pid,
        user,
        command,
        mem_mib: number(&listed.mem_mib, 1.0),
        sm_pct: number(&listed.sm_pct, 1.0),
        since: since.and_then(local_time),
        run,
    }
}

/// RFC 3339 with milliseconds and the local offset.
pub fn local_time(seconds: f64) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond((seconds * 1e3) as i64).ok()?;
    let zoned = at.to_zoned_datetime(jiff::tz::TimeZone::system());
    Some(zoned.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string())
}

/// A reading rounded to whole `1 / parts`; whole numbers are written without a fraction.
pub fn number(reading: &Reading<f64>, parts: f64) -> Option<Number> {
    let rounded = (reading.get()? * parts).round() / parts;
    if rounded.fract() == 0.0 {
        Some(Number::from(rounded as i64))
    } else {
        Number::from_f64(rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_are_exact() {
        let shown = |value, parts| number(&Reading::Value(value), parts).map(|n| n.to_string());
        assert_eq!(shown(95.0, 1.0).as_deref(), Some("95"));
        assert_eq!(shown(310.24, 10.0).as_deref(), Some("310.2"));
        assert_eq!(shown(0.0, 1.0).as_deref(), Some("0"));
        assert_eq!(number(&Reading::Missing(Why::Lost), 1.0), None);
    }
}
