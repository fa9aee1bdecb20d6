//! What one GPU does for the job: works, rests, or spins without working.
//!
//! Owns the reading of power, memory-controller use, PCIe and the profiling counters as
//! activity (DETECTION sections 1 and 2). Knows no other GPU and no progress.

use crate::model::{GpuSample, Reading};

/// Memory on a device that the job's doesn't explain, MiB: beyond it the device's own readings
/// say nothing about the job.
const OTHERS_MIB: f64 = 500.0;
/// Of a job whose processes can't be told apart, so much use of the device is its own, MiB.
const DEVICE_HELD_MIB: f64 = 500.0;
/// A context holds at least so much, MiB.
const HELD_MIB: f64 = 1.0;
/// Above the power of an idle context, as a share of the limit.
const OVER_IDLE: f64 = 0.08;
/// So far above it no average is needed.
const FAR_OVER_IDLE: f64 = 0.20;
/// No idle context draws more, as a share of the limit (T4: 0.36), whatever was learnt.
const MOST_IDLE: f64 = 0.40;
/// What is taken for an idle context before one was seen.
const SUPPOSED_IDLE: f64 = 0.30;
/// From here on training draws power, as a share of the limit (DETECTION section 1: 0.60 to 0.95).
const TRAINING: f64 = 0.70;
/// Samples before what was learnt is believed.
const LEARNT: u32 = 30;
/// How fast averages follow: about five samples.
const FOLLOW: f64 = 0.33;

/// How fast the mean use follows: about ten samples, because little use has to be told from noise
/// around none.
const FOLLOW_USE: f64 = 0.2;
/// A mean use below this is noise around 0, and one reading is none from the other one on, %.
const NO_USE_PCT: f64 = 5.0;
const SURE_USE_PCT: f64 = 15.0;

/// What a GPU does for the job at one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Does {
    /// Nothing is known.
    #[default]
    Unknown,
    /// Nothing.
    Rests,
    /// Its processors are taken and nothing moves: a kernel or a collective that waits.
    Spins,
    /// Something, by a little.
    Works,
    /// Something, beyond doubt.
    WorksHard,
}

/// One GPU over the run.
#[derive(Clone, Debug)]
pub struct Gauge {
    /// NVML's index.
    pub index: u32,
    /// The MIG device on it, by its UUID; None: the whole GPU.
    pub mig: Option<String>,
    /// At this tick.
    pub does: Does,
    /// Whether the job holds memory on it; None: that isn't told.
    pub held: Option<bool>,
    /// What the job holds on it, MiB.
    pub held_mib: Option<f64>,
    /// What others hold on it, MiB.
    pub others_mib: Option<f64>,
    /// The job's own use of it, %; the device's where nobody else is on it.
    pub use_pct: Option<f64>,
    /// How busy the job keeps it, %: its use, else SM activity, else what its power tells.
    pub load_pct: Option<f64>,
    /// Whether its power is low enough that a busy processor core may be its waiting loop.
    pub waits: bool,
    /// The job was told apart from others on it once.
    told_apart: bool,
    first_used_mib: Option<f64>,
    most_used_mib: f64,
    powers: Box<[u32; 101]>,
    powers_n: u32,
    idle: f64,
    power: Option<f64>,
    controller: Option<f64>,
    counters: Option<f64>,
    /// Mean use: the job's, or the device's where nobody else is on it, whichever is more, %.
    used: Option<f64>,
    /// Memory-controller use while the job makes progress, %.
    usual_controller: Option<f64>,
}

impl Gauge {
    /// The GPU of this row, of which nothing was seen.
    pub fn new(gpu: &GpuSample) -> Self {
        Self {
            index: gpu.index,
            mig: gpu.mig.clone(),
            does: Does::Unknown,
            held: None,
            held_mib: None,
            others_mib: None,
            use_pct: None,
            load_pct: None,
            waits: false,
            told_apart: false,
            first_used_mib: None,
            most_used_mib: 0.0,
            powers: Box::new([0; 101]),
            powers_n: 0,
            idle: SUPPOSED_IDLE,
            power: None,
            controller: None,
            counters: None,
            used: None,
            usual_controller: None,
        }
    }

    /// Whether a row is about it.
    pub fn is_of(&self, gpu: &GpuSample) -> bool {
        self.index == gpu.index && self.mig == gpu.mig
    }

    /// Whether others hold so much of it that its power, traffic and use say nothing of the job.
    pub fn is_shared(&self) -> bool {
        self.others_mib.is_some_and(|mib| mib > OTHERS_MIB)
    }

    /// Takes in one tick.
    pub fn look(
        &mut self,
        gpu: &GpuSample,
        job_mem: Option<&Reading<f64>>,
        job_sm: Option<&Reading<f64>>,
        known_limit_w: Option<f64>,
    ) {
        let job_sm = job_sm.and_then(Reading::get);
        self.memory(gpu.mem_used_mib.get(), job_mem.and_then(Reading::get));
        let limit = gpu
            .power_limit_w
            .get()
            .or(known_limit_w)
            .filter(|w| *w > 0.0);
        let power = gpu.power_w.get().zip(limit).map(|(w, limit)| w / limit);
        follow(&mut self.power, power);
        follow(&mut self.controller, gpu.mem_util_pct.get());
        if let (Some(share), Some(true)) = (power, self.held) {
            self.learn_idle(share);
        }
        let counted = [gpu.tensor_active_pct.get(), gpu.dram_active_pct.get()];
        let counters = counted.into_iter().flatten().reduce(f64::max);
        follow(&mut self.counters, counters);
        let shared = self.is_shared();
        let device = gpu.util_pct.get().filter(|_| !shared);
        self.use_pct = job_sm.or(device);
        let use_pct = job_sm.into_iter().chain(device).reduce(f64::max);
        follow_by(FOLLOW_USE, &mut self.used, use_pct);
        let alone = |pct: &f64| !shared && pct.is_finite();
        self.load_pct = self
            .use_pct
            .or(gpu.sm_active_pct.get().filter(alone))
            .or(power
                .and_then(|share| self.load_by_power(share))
                .filter(alone));
        self.does = if shared {
            self.of_share(job_sm)
        } else {
            self.of_device(gpu, power, counters, job_sm)
        };
        self.waits = !shared
            && (power.is_some() || gpu.pcie_mb_s.get().is_some())
            && match self.does {
                Does::Spins => true,
                // Without its use a spin looks like rest.
                Does::Rests => gpu.util_pct.get().is_none() && self.held == Some(true),
                _ => false,
            };
    }

    /// The job made progress: what the GPU does now is what it usually does.
    pub fn usual(&mut self) {
        if let Some(now) = self.controller {
            let usual = self.usual_controller.get_or_insert(now);
            *usual += 0.05 * (now - *usual);
        }
    }

    /// Memory that appeared since the start and that no process is known to hold, MiB.
    pub fn unexplained_mib(&self) -> f64 {
        let first = self.first_used_mib.unwrap_or(self.most_used_mib);
        (self.most_used_mib - first).max(0.0)
    }

    fn memory(&mut self, used: Option<f64>, job: Option<f64>) {
        self.told_apart |= job.is_some();
        if let Some(used) = used {
            self.first_used_mib.get_or_insert(used);
            self.most_used_mib = self.most_used_mib.max(used);
        }
        self.held_mib = match (job, used) {
            (Some(job), _) => Some(job),
            (None, Some(used)) if !self.told_apart => Some(used).filter(|u| *u > DEVICE_HELD_MIB),
            _ => None,
        };
        // An empty list of processes is a true zero, or a container's driver that hides them:
        // then memory has appeared that nobody explains.
        let hidden = job.is_some_and(|mib| mib < HELD_MIB) && self.unexplained_mib() > 300.0;
        self.held = match (job, used) {
            (Some(_), _) if hidden => None,
            (Some(job), _) => Some(job >= HELD_MIB),
            (None, Some(used)) if !self.told_apart => Some(used > DEVICE_HELD_MIB),
            // A moment without an answer changes nothing.
            _ => self.held,
        };
        self.others_mib = used.zip(job).map(|(used, job)| (used - job).max(0.0));
    }

    /// Between an idle context and the power of training. Of who never rested only his own work
    /// is known: whether it is full.
    fn load_by_power(&self, share: f64) -> Option<f64> {
        let seen = self.idle < MOST_IDLE || share >= TRAINING;
        let over = (share - self.idle) / (TRAINING - self.idle);
        (seen && self.powers_n >= LEARNT).then_some((over * 100.0).clamp(0.0, 100.0))
    }

    /// The 5th percentile of power while memory is held.
    fn learn_idle(&mut self, share: f64) {
        let bin = (share * 100.0).clamp(0.0, 100.0) as usize;
        self.powers[bin] += 1;
        self.powers_n += 1;
        if self.powers_n < LEARNT || !self.powers_n.is_multiple_of(16) {
            return;
        }
        let wanted = self.powers_n / 20;
        let mut seen = 0;
        let bin = self.powers.iter().position(|n| {
            seen += n;
            seen > wanted
        });
        self.idle = bin.map_or(SUPPOSED_IDLE, |bin| (bin as f64 / 100.0).min(MOST_IDLE));
    }

    fn of_device(
        &self,
        gpu: &GpuSample,
        power: Option<f64>,
        counters: Option<f64>,
        job_sm: Option<f64>,
    ) -> Does {
        let strength = match (counters, self.counters) {
            // What the tensor cores and the memory do beats every other sign.
            (Some(now), Some(mean)) => strength(now >= 5.0, mean >= 2.0),
            _ => self.signs(gpu, power, job_sm).max(self.partly(job_sm)),
        };
        let known = counters.is_some() || power.is_some() || gpu.mem_util_pct.get().is_some();
        let full = job_sm.or(gpu.util_pct.get()).is_some_and(|pct| pct >= 95.0);
        match (strength, known) {
            (2, _) => Does::WorksHard,
            (1, _) => Does::Works,
            (_, true) if full && self.held != Some(false) => Does::Spins,
            (_, true) => Does::Rests,
            _ => self.of_share(job_sm.or(gpu.util_pct.get())),
        }
    }

    fn signs(&self, gpu: &GpuSample, power: Option<f64>, job_sm: Option<f64>) -> u8 {
        // A job that keeps the memory busy when it works isn't working at a few percent.
        let usual = self.usual_controller.unwrap_or_default();
        let least = (0.15 * usual).clamp(2.0, 8.0);
        // Without use there is nothing that it could be busy with: a reading is noise.
        let told = job_sm.into_iter().chain(gpu.util_pct.get());
        let unused = told.reduce(f64::max).is_some_and(|now| !self.is_used(now));
        let controller = gpu.mem_util_pct.get().zip(self.controller);
        let controller = controller.filter(|_| !unused);
        let by_memory = controller.map_or(0, |(now, mean)| {
            // What it does now counts too, or the mean would outlast the work.
            strength(
                now >= (3.0 * least).max(10.0),
                mean >= least && now >= least / 2.0,
            )
        });
        let by_power = power.zip(self.power).map_or(0, |(now, mean)| {
            strength(
                now > self.idle + FAR_OVER_IDLE,
                mean > self.idle + OVER_IDLE && now > self.idle + OVER_IDLE / 2.0,
            )
        });
        let by_bus = gpu
            .pcie_mb_s
            .get()
            .map_or(0, |mb| strength(mb > 50.0, mb > 5.0));
        by_memory.max(by_power).max(by_bus)
    }

    /// Kernels that start and end: one that hangs takes all of the processors.
    fn partly(&self, job_sm: Option<f64>) -> u8 {
        u8::from(job_sm.is_some_and(|now| self.is_used(now) && now < 90.0))
    }

    /// What the job's use alone tells: a full one may be work or a spin.
    fn of_share(&self, use_pct: Option<f64>) -> Does {
        match use_pct {
            Some(now) if now >= 90.0 => Does::Unknown,
            Some(now) if self.is_used(now) => Does::Works,
            Some(_) => Does::Rests,
            None => Does::Unknown,
        }
    }

    /// Whether this much use is some. The mean decides; it may not outlast the work.
    fn is_used(&self, now: f64) -> bool {
        let mean = self.used.unwrap_or_default();
        now >= SURE_USE_PCT || mean >= NO_USE_PCT && now >= NO_USE_PCT / 2.0
    }
}

/// 2: beyond doubt, 1: by a little, 0: no.
fn strength(hard: bool, little: bool) -> u8 {
    if hard { 2 } else { u8::from(little) }
}

/// Lets a mean of about five samples follow a reading, if there is one.
pub fn follow(mean: &mut Option<f64>, now: Option<f64>) {
    follow_by(FOLLOW, mean, now);
}

fn follow_by(part: f64, mean: &mut Option<f64>, now: Option<f64>) {
    if let Some(now) = now {
        let mean = mean.get_or_insert(now);
        *mean += part * (now - *mean);
    }
}
