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
    /// `free`, `claimed` (and used by nobody yet), `busy`, `lost`, or `unknown` where too little
    /// can be read.
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
    let visible = visible(setting.as_deref(), inventory);
    let standings = choose::standings(inventory, samples, &BTreeSet::new(), &|_| None);
    let claims = Claims::look();
    let gpus = inventory
        .gpus
        .iter()
        .zip(&standings)
        .map(|(info, standing)| {
            let sample = samples.iter().find(|s| s.index == info.index);
            let claimed = claims.as_ref().and_then(|c| c.claimed(&key(info)));
            gpu(info, standing, sample, &visible, claimed.map(claim))
        });
    Document {
        schema: 1,
        driver: inventory.driver.clone(),
        cuda: inventory.cuda.clone(),
        gpus: gpus.collect(),
    }
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

fn gpu(
    info: &GpuInfo,
    standing: &Standing,
    sample: Option<&GpuSample>,
    visible: &[Device],
    claim: Option<Claim>,
) -> Gpu {
    let unread = GpuSample::default();
    let read = sample.unwrap_or(&unread);
    let processes = read.processes.value().map_or(&[][..], Vec::as_slice);
    Gpu {
        index: info.index,
        cuda_index: visible.iter().position(|d| d.gpu() == Some(info.index)),
        uuid: info.uuid.clone(),
        name: info.name.clone(),
        util_pct: number(&read.util_pct, 1.0),
        mem_used_mib: number(&read.mem_used_mib, 1.0),
        mem_total_mib: number(&read.mem_total_mib, 1.0)
            .or_else(|| info.memory_mib.map(Number::from)),
        temp_c: number(&read.temp_c, 1.0),
        power_w: number(&read.power_w, 10.0),
        state: state(standing, read, claim.is_some()),
        claim,
        processes: processes.iter().map(process).collect(),
    }
}

fn state(standing: &Standing, read: &GpuSample, claimed: bool) -> &'static str {
    match (&standing.busy, &read.processes, &read.mem_used_mib) {
        (None, ..) if claimed => "claimed",
        (None, ..) => "free",
        (_, Reading::Missing(Why::Lost), _) => "lost",
        (_, Reading::Missing(_), Reading::Missing(_)) => "unknown",
        _ => "busy",
    }
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
