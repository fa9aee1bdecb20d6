//! The readings of one GPU.
//!
//! Runs on the NVML thread. Owns which calls are made how often, and what each failure
//! means: every reading is a value or the reason why there is none.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::{
    NVML_FI_DEV_PCIE_COUNT_RX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES,
};
use nvml_wrapper::{Device, Nvml};

use super::desk::Desk;
use super::gpm::Gpm;
use super::handles::{Column, Handles};
use super::known::{Doubt, Known};
use super::plausible::{
    FASTEST, HOTTEST, MOST_W, PcieCounters, activity, believable, count, mib, rate, why, within,
};
use super::processes::{self, Read};
use super::quirks::{Quirks, Told};
use crate::model::{GpuInfo, GpuProcess, GpuSample, Reading, Throttle, Why};
use crate::sys::nvml_raw::{self, ProcessList, RawProcess};

/// Ticks for which a reading that isn't supported isn't asked for again.
const RESPITE: u64 = 60;
/// Process lists no faster than once a second; a little less, because ticks jitter.
const LIST_EVERY: Duration = Duration::from_millis(950);
/// What changes rarely or costs much (graphics processes: up to 4.5 ms).
const SLOW_EVERY: Duration = Duration::from_millis(9_950);
/// How far back the first look at process utilisation reaches.
const FIRST_SPAN_US: u64 = 2_000_000;
const MIB: f64 = 1024.0 * 1024.0;

/// Something read now and then, and used in between.
#[derive(Debug)]
struct Kept<T> {
    reading: Reading<T>,
    at: Option<Instant>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self {
            reading: Reading::default(),
            at: None,
        }
    }
}

impl<T> Kept<T> {
    fn is_due(&self, now: Instant, every: Duration) -> bool {
        self.at.is_none_or(|at| now.duration_since(at) >= every)
    }

    fn keep(&mut self, now: Instant, reading: Reading<T>) {
        self.reading = reading;
        self.at = Some(now);
    }
}

/// Reads one GPU, tick after tick.
pub struct Gauge<'n> {
    desk: &'n Desk,
    nvml: &'n Nvml,
    info: GpuInfo,
    quirks: Quirks,
    device: Option<Handles<'n>>,
    /// Set when a call of this tick found the GPU gone: the rest of the tick needn't ask.
    gone: Option<Why>,
    tick: u64,
    respite: [u64; Column::Gpm as usize + 1],
    /// `_v3` lists exist and are safe.
    v3: bool,
    /// Entries that sufficed for the lists so far.
    room: u32,
    limit: Kept<f64>,
    ecc: Kept<u64>,
    graphics: Kept<Vec<RawProcess>>,
    mps: Kept<Vec<RawProcess>>,
    processes: Kept<Vec<GpuProcess>>,
    pcie: Option<PcieCounters>,
    sampled_us: u64,
    known: Known,
    gpm: Gpm<'n>,
    activity: [Reading<f64>; 3],
}

impl<'n> Gauge<'n> {
    /// A gauge of this GPU or MIG device; nothing is read yet.
    pub fn new(desk: &'n Desk, nvml: &'n Nvml, device: &GpuInfo, quirks: Quirks) -> Self {
        Self {
            desk,
            nvml,
            info: device.clone(),
            quirks,
            device: None,
            gone: None,
            tick: 0,
            respite: [0; _],
            v3: quirks.v3_lists,
            room: 32,
            limit: Kept::default(),
            ecc: Kept::default(),
            graphics: Kept::default(),
            mps: Kept::default(),
            processes: Kept::default(),
            pcie: None,
            sampled_us: 0,
            known: Known::default(),
            gpm: Gpm::default(),
            activity: Default::default(),
        }
    }

    /// What it reads.
    pub fn watched(&self) -> GpuInfo {
        self.info.clone()
    }

    /// The driver has reported memory errors: the next look counts them.
    pub fn count_errors_now(&mut self) {
        self.ecc.at = None;
    }

    /// One look.
    pub fn read(&mut self) -> GpuSample {
        let now = Instant::now();
        self.tick += 1;
        self.gone = None;
        self.open();
        let mut sample = GpuSample {
            index: self.info.index,
            mig: self.info.mig().map(str::to_owned),
            ..GpuSample::default()
        };
        self.read_device(now, &mut sample);
        self.gone = self.gone.take().or_else(|| nothing_works(&sample));
        self.read_slow(now, &mut sample);
        self.read_activity(now, &mut sample);
        let total = sample.mem_total_mib.get().map(|mib| (mib * MIB) as u64);
        if self.processes.is_due(now, LIST_EVERY) || self.gone.is_some() {
            let list = self.read_processes(now, total);
            self.processes.keep(now, list);
        }
        sample.processes = self.processes.reading.clone();
        if self.gone.is_some() {
            // All is asked again as soon as the GPU is back.
            self.device = None;
            (self.limit.at, self.ecc.at, self.processes.at) = (None, None, None);
        }
        sample
    }

    /// Gets the handle, again after the GPU was gone.
    fn open(&mut self) {
        if self.device.is_some() {
            return;
        }
        let (nvml, index) = (self.nvml, self.info.index);
        let found = self
            .desk
            .during("nvmlDeviceGetHandleByIndex_v2", Some(index), || {
                nvml.device_by_index(index)
            });
        match found.and_then(|gpu| self.part(gpu)) {
            Ok(handles) => self.device = Some(handles),
            // A MIG device that was taken away: its GPU is as well as ever.
            Err(NvmlError::NotFound) => self.gone = Some(Why::Lost),
            Err(error) => self.gone = Some(why(&error)),
        }
    }

    /// The handle of the MIG device that is read, if one is.
    fn part(&self, gpu: Device<'n>) -> Result<Handles<'n>, NvmlError> {
        let Some(instance) = self.info.instance else {
            return Ok(Handles { gpu, part: None });
        };
        let call = "nvmlDeviceGetMigDeviceHandleByIndex";
        let part = self.desk.during(call, Some(self.info.index), || {
            let part = gpu.mig_device_by_index(instance.place)?;
            // Another one may have been made in its place.
            if Some(part.uuid()?) == self.info.uuid {
                Ok(part)
            } else {
                Err(NvmlError::NotFound)
            }
        })?;
        let part = Some(part);
        Ok(Handles { gpu, part })
    }

    /// Asks for one reading, unless it is known to be unsupported or the GPU is gone.
    fn ask<T>(
        &mut self,
        column: Column,
        call: &'static str,
        f: impl FnOnce(&Device<'n>) -> Result<T, NvmlError>,
    ) -> Reading<T> {
        if let Some(why) = &self.gone {
            return Reading::Missing(why.clone());
        }
        if self.tick < self.respite[column as usize] {
            return Reading::Missing(Why::NotSupported);
        }
        let Some(handles) = &self.device else {
            return Reading::Missing(Why::NotYet);
        };
        let Some(device) = handles.of(column) else {
            return Reading::Missing(Why::NotSupported);
        };
        match self.desk.during(call, Some(self.info.index), || f(device)) {
            Ok(value) => Reading::Value(value),
            Err(error) => {
                let why = why(&error);
                match why {
                    Why::NotSupported => self.respite[column as usize] = self.tick + RESPITE,
                    Why::Lost => self.gone = Some(Why::Lost),
                    _ => {}
                }
                Reading::Missing(why)
            }
        }
    }

    /// What is read at each tick.
    fn read_device(&mut self, now: Instant, sample: &mut GpuSample) {
        let used = self.ask(Column::Utilisation, "nvmlDeviceGetUtilizationRates", |d| {
            d.utilization_rates()
        });
        sample.util_pct = within(used.clone().map(|u| f64::from(u.gpu)), 100.0);
        sample.mem_util_pct = within(used.map(|u| f64::from(u.memory)), 100.0);
        let nvml = self.nvml;
        let memory = self.ask(Column::Memory, "nvmlDeviceGetMemoryInfo_v2", |d| {
            match d.memory_info() {
                Ok(m) => Ok((m.total, m.used)),
                Err(NvmlError::FailedToLoadSymbol(_)) => nvml_raw::memory_v1(nvml, d),
                Err(error) => Err(error),
            }
        });
        (sample.mem_total_mib, sample.mem_used_mib) = mib(memory);
        let temp = self.ask(Column::Temperature, "nvmlDeviceGetTemperature", |d| {
            d.temperature(TemperatureSensor::Gpu)
        });
        sample.temp_c = within(temp.map(f64::from), HOTTEST);
        let power = self.ask(
            Column::Power,
            "nvmlDeviceGetPowerUsage",
            Device::power_usage,
        );
        sample.power_w = within(power.map(|mw| f64::from(mw) / 1e3), MOST_W);
        let energy = self.ask(
            Column::Energy,
            "nvmlDeviceGetTotalEnergyConsumption",
            Device::total_energy_consumption,
        );
        sample.energy_total_j = believable(energy).map(|mj| mj as f64 / 1e3);
        let clock = self.ask(Column::Clock, "nvmlDeviceGetClockInfo", |d| {
            d.clock_info(Clock::SM)
        });
        sample.sm_clock_mhz = within(clock.map(f64::from), FASTEST);
        let reasons = self.ask(
            Column::Throttle,
            "nvmlDeviceGetCurrentClocksEventReasons",
            |d| nvml_raw::clock_reasons(nvml, d),
        );
        sample.throttle = believable(reasons).map(Throttle);
        sample.pcie_mb_s = self.read_pcie(now);
    }

    /// What is read now and then.
    fn read_slow(&mut self, now: Instant, sample: &mut GpuSample) {
        if self.limit.is_due(now, SLOW_EVERY) || self.gone.is_some() {
            let limit = self.ask(Column::PowerLimit, "nvmlDeviceGetEnforcedPowerLimit", |d| {
                d.enforced_power_limit()
            });
            let limit = within(limit.map(|mw| f64::from(mw) / 1e3), MOST_W);
            self.limit.keep(now, limit);
        }
        if self.ecc.is_due(now, SLOW_EVERY) || self.gone.is_some() {
            let ecc = self.ask(Column::Ecc, "nvmlDeviceGetTotalEccErrors", |d| {
                d.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile)
            });
            self.ecc.keep(now, believable(ecc));
        }
        sample.power_limit_w = self.limit.reading.clone();
        sample.ecc_uncorrected_total = self.ecc.reading.clone();
    }

    /// SM, tensor and DRAM activity over the last few seconds.
    fn read_activity(&mut self, now: Instant, sample: &mut GpuSample) {
        if self.gpm.is_due(now) || self.gone.is_some() {
            let (nvml, mut gpm) = (self.nvml, std::mem::take(&mut self.gpm));
            let part = self.info.instance.map(|i| i.gi);
            let found = self.ask(Column::Gpm, "nvmlGpmSampleGet", |d| {
                gpm.sample(nvml, d, part, now)
            });
            match found {
                Reading::Value(None) => {}
                Reading::Value(Some(found)) => self.activity = found.map(activity),
                Reading::Missing(why) => {
                    self.activity = std::array::from_fn(|_| Reading::Missing(why.clone()));
                    // What is told between this sample and the next wouldn't be true.
                    gpm = Gpm::default();
                }
            }
            self.gpm = gpm;
        }
        let [sm, tensor, dram] = self.activity.clone();
        sample.sm_active_pct = sm;
        sample.tensor_active_pct = tensor;
        sample.dram_active_pct = dram;
    }

    /// Traffic since the last tick, from the byte counters: `nvmlDeviceGetPcieThroughput`
    /// would block for 20 ms a call.
    fn read_pcie(&mut self, now: Instant) -> Reading<f64> {
        let counters = self.ask(Column::Pcie, "nvmlDeviceGetFieldValues", |d| {
            let fields = [
                FieldId(NVML_FI_DEV_PCIE_COUNT_TX_BYTES),
                FieldId(NVML_FI_DEV_PCIE_COUNT_RX_BYTES),
            ];
            let mut counts = d.field_values_for(&fields)?.into_iter().map(|f| f?.value);
            match (counts.next(), counts.next()) {
                (Some(sent), Some(received)) => Ok((sent?, received?)),
                _ => Err(NvmlError::NoData),
            }
        });
        let (sent, received) = match counters {
            Reading::Value((sent, received)) => (count(&sent), count(&received)),
            Reading::Missing(why) => {
                self.pcie = None;
                return Reading::Missing(why);
            }
        };
        let (Some(sent), Some(received)) = (sent, received) else {
            return Reading::Missing(Why::Garbage);
        };
        let new = PcieCounters {
            sent,
            received,
            at: now,
        };
        match self.pcie.replace(new) {
            Some(old) => rate(&old, &new),
            None => Reading::Missing(Why::NotYet),
        }
    }

    fn list(
        &mut self,
        column: Column,
        call: &'static str,
        list: ProcessList,
    ) -> Reading<Vec<RawProcess>> {
        let (nvml, mut v3, mut room) = (self.nvml, self.v3, self.room);
        let read = self.ask(column, call, |d| {
            match nvml_raw::processes(nvml, d, list, v3, &mut room) {
                Err(NvmlError::FailedToLoadSymbol(_)) if v3 => {
                    v3 = false;
                    nvml_raw::processes(nvml, d, list, v3, &mut room)
                }
                other => other,
            }
        });
        (self.v3, self.room) = (v3, room);
        let Some(part) = self.info.instance else {
            return read;
        };
        // Whatever the list of a MIG device has, what is on another one isn't on this.
        let here = |p: &RawProcess| p.instance.0 == u32::MAX || p.instance == (part.gi, part.ci);
        read.map(|list| list.into_iter().filter(here).collect())
    }

    fn read_processes(&mut self, now: Instant, total: Option<u64>) -> Reading<Vec<GpuProcess>> {
        if self.quirks.told < Told::Lists {
            return Reading::Missing(Why::HostPids);
        }
        let compute = self.list(
            Column::Compute,
            "nvmlDeviceGetComputeRunningProcesses",
            ProcessList::Compute,
        );
        let mut compute = match compute {
            Reading::Value(list) => list,
            Reading::Missing(why) => return Reading::Missing(why),
        };
        if self.graphics.is_due(now, SLOW_EVERY) {
            let list = self.list(
                Column::Graphics,
                "nvmlDeviceGetGraphicsRunningProcesses",
                ProcessList::Graphics,
            );
            self.graphics.keep(now, list);
        }
        // Clients of MPS come and go like others, but most machines have none.
        let any = self.mps.reading.value().is_some_and(|l| !l.is_empty());
        if any || self.mps.is_due(now, SLOW_EVERY) {
            let list = self.list(
                Column::Mps,
                "nvmlDeviceGetMPSComputeRunningProcesses",
                ProcessList::Mps,
            );
            self.mps.keep(now, list);
        }
        compute.extend(self.mps.reading.value().into_iter().flatten());
        let graphics = self.graphics.reading.value().into_iter().flatten();
        let pids: BTreeSet<u32> = compute.iter().chain(graphics).map(|p| p.pid).collect();
        if self.quirks.namespaced {
            match self.known.doubt(&pids) {
                Some(Doubt::Settled) => {
                    self.quirks.told = Told::Nothing;
                    return Reading::Missing(Why::HostPids);
                }
                Some(Doubt::Once) => return Reading::Missing(Why::NotYet),
                None => {}
            }
        }
        self.known.look(&pids);
        self.describe(&compute, total)
    }

    /// What the listed processes hold and use.
    fn describe(&mut self, compute: &[RawProcess], total: Option<u64>) -> Reading<Vec<GpuProcess>> {
        let now_us = now_us();
        let since_us = match self.sampled_us {
            0 => now_us.saturating_sub(FIRST_SPAN_US),
            last => last,
        };
        let nvml = self.nvml;
        let samples = if self.quirks.told < Told::Everything {
            Reading::Missing(Why::HostPids)
        } else if compute.is_empty() {
            Reading::Value(Vec::new())
        } else {
            self.ask(Column::Usage, "nvmlDeviceGetProcessUtilization", |d| {
                nvml_raw::process_utilisation(nvml, d, since_us)
            })
        };
        let taken = samples.value().map_or(&[][..], Vec::as_slice);
        let (usage, newest_us) = processes::usage(taken, since_us, now_us);
        self.sampled_us = newest_us;
        let read = Read {
            compute,
            graphics: self.graphics.reading.value().map_or(&[], Vec::as_slice),
            samples: samples.clone().map(|_| taken),
            total,
            servers: &self.known.servers,
        };
        Reading::Value(processes::processes(&read, &usage, self.quirks))
    }
}

/// Why none of what is read at each tick could be read: then what was read earlier isn't true
/// any more either. Being unsupported is no such reason.
fn nothing_works(sample: &GpuSample) -> Option<Why> {
    let readings = [
        &sample.util_pct,
        &sample.mem_used_mib,
        &sample.temp_c,
        &sample.power_w,
        &sample.energy_total_j,
        &sample.sm_clock_mhz,
    ];
    let failed = |why: &&Why| matches!(why, Why::Failed(_) | Why::NoPermission | Why::TimedOut);
    let none = sample.throttle.why().is_some() && readings.iter().all(|r| r.why().is_some());
    let mut whys = readings.iter().filter_map(|r| r.why());
    whys.find(failed).filter(|_| none).cloned()
}

/// Microseconds since 1970: the clock of process-utilisation samples.
fn now_us() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_micros() as u64)
}
