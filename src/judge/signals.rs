//! What the samples say, computed once for every rule: own time, activity, progress, silence.
//!
//! Owns when the job is active (DETECTION section 2) and how long it has been silent, in the
//! judge's own seconds: gaps of the sampler and time in which the job was stopped or waited
//! for a person don't count. Judges nothing.

use crate::model::{GpuSample, ProgressState, Sample};

use super::advance::{Advances, Seen};
use super::facts::JobFacts;
use super::gauge::{Does, Gauge};
use super::loops::{LEAST_CORES, Loops, MOST_CORES};
use super::silence::Silence;

/// The interval that is expected before one was seen, seconds.
const INTERVAL_S: f64 = 1.0;
/// A gap of so many intervals is the sampler's, and says nothing about the job.
const GAP_INTERVALS: f64 = 5.0;
/// Cores beyond the waiting loops that are work.
const CORES: f64 = 0.3;
/// 10^6 bytes a second that are work.
const IO_MB_S: f64 = 0.5;
/// Growth (or fall) of memory that is work, MiB a second.
const RSS_MIB_S: f64 = 10.0;

/// A flag that a single sample doesn't change: on where two of the last three said so.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steady(u8);

impl Steady {
    /// Takes in one more.
    pub fn push(&mut self, on: bool) {
        self.0 = (self.0 << 1) | u8::from(on);
    }

    /// Whether it is on.
    pub fn is_on(self) -> bool {
        (self.0 & 7).count_ones() >= 2
    }

    /// Whether what was seen with this strength is active: beyond doubt (2), or by a little (1)
    /// for a while.
    pub fn is_active(&mut self, strength: u8) -> bool {
        self.push(strength >= 1);
        strength == 2 || strength == 1 && self.is_on()
    }
}

/// One moment in both times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Seconds since the run's start.
    pub elapsed_s: f64,
    /// The judge's own seconds.
    pub own_s: f64,
}

/// The signals after a sample.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// Now.
    pub now: Moment,
    /// Own seconds that the last sample added.
    pub dt: f64,
    /// Samples so far.
    pub samples: u64,
    /// The GPUs: those of the first sample in their own order, later ones after them.
    pub gpus: Vec<Gauge>,
    /// The display.
    pub advances: Advances,
    /// When progress was last made; the start, before there was any.
    pub progressed: Moment,
    /// Gaps between advances.
    pub steps: Silence,
    /// Own seconds between this advance and the one before, if this sample advanced.
    pub gap: Option<f64>,
    /// Whether this sample advanced.
    pub advanced: bool,
    /// Whether the job is active now.
    pub active: bool,
    /// Whether its GPUs are.
    pub gpu_active: bool,
    /// When the job was last active; the start, before it ever was.
    pub acted: Moment,
    /// Gaps between moments of activity.
    pub acts: Silence,
    /// Seconds of silence of activity that ended, but for gaps between two samples or so.
    rested_s: f64,
    /// Whether more is active than a core a rank.
    pub loops: Loops,
    /// Whether all GPUs of the job spin, and since when.
    pub spinning: Option<Moment>,
    /// The longest spin of all of them that ended, seconds.
    pub longest_spin_s: f64,
    /// Whether the job holds memory on any GPU; None: not told.
    pub held: Option<bool>,
    /// When it first did.
    pub first_held: Option<Moment>,
    /// What it holds, MiB.
    pub held_mib: Option<f64>,
    /// Cores in use.
    pub cores: Option<f64>,
    /// Read and written, 10^6 bytes a second.
    pub io_mb_s: Option<f64>,
    /// Mean of it over about half a minute.
    pub io_mean: f64,
    /// Mean of what is written, likewise.
    pub write_mean: f64,
    /// Step as displayed.
    pub step: Option<f64>,
    /// Epoch as displayed.
    pub epoch: Option<f64>,
    /// When output last came.
    pub printed: Moment,
    /// Time doesn't count now.
    pub frozen: bool,
    interval_s: f64,
    weak: Steady,
    spin: Steady,
    out_bytes: u64,
    rss_mib: Option<f64>,
    /// How fast that grows or falls, MiB a second.
    rss_mib_s: f64,
    /// How often progress went with activity: a job under the floor of activity is never
    /// silent by it.
    busy_share: Option<f64>,
}

impl Signals {
    /// Takes in one sample. `frozen`: the job is stopped, or waits for a person.
    pub fn sample(&mut self, sample: &Sample, facts: &JobFacts, frozen: bool) {
        self.pass_time(sample.stamp.elapsed_s, frozen);
        self.look_at_gpus(sample, facts);
        let strength = self.strength(sample);
        self.active = self.weak.is_active(strength);
        let other = self.gpu_active || self.moves(sample);
        let ranks = self.ours().count();
        self.loops
            .look(self.now, self.cores, ranks, other, strength);
        if self.active {
            self.end_rest();
        }
        self.spin.push(self.all_spin());
        if self.spin.is_on() {
            self.spinning.get_or_insert(self.now);
        } else {
            self.longest_spin_s = self.longest_spin_s.max(self.spins_for());
            self.spinning = None;
        }
        self.look_at_progress(&sample.progress);
        if sample.out_bytes != self.out_bytes || self.samples == 1 {
            self.out_bytes = sample.out_bytes;
            self.printed = self.now;
        }
    }

    /// The clocks jumped: the gap until the next sample isn't the job's.
    pub fn jumped(&mut self) {
        self.frozen = true;
    }

    /// When progress was last made, in seconds of the run; None before there was any.
    pub fn moved_s(&self) -> Option<f64> {
        self.advances.begun.then_some(self.progressed.elapsed_s)
    }

    /// Seconds without progress.
    pub fn progress_age(&self) -> f64 {
        self.now.own_s - self.progressed.own_s
    }

    /// Seconds without activity.
    pub fn quiet(&self) -> f64 {
        self.now.own_s - self.acted.own_s
    }

    /// Seconds for which all GPUs of the job have spun.
    pub fn spins_for(&self) -> f64 {
        self.spinning.map_or(0.0, |at| self.now.own_s - at.own_s)
    }

    /// Which part of the time before this silence was silence, too: 0 to 1.
    pub fn rests(&self) -> f64 {
        self.rested_s / self.acted.own_s.max(1.0)
    }

    /// Whether silence of activity tells anything of this job: it was active when it advanced.
    pub fn tells_by_activity(&self) -> bool {
        self.busy_share.is_none_or(|share| share > 0.2)
    }

    /// Whether nothing is known of a GPU that may be the job's: the rest decides, and not fast.
    pub fn is_blind(&self) -> bool {
        let unknown = |g: &Gauge| g.held != Some(false) && g.does == Does::Unknown;
        self.gpus.iter().any(unknown)
    }

    /// Whether busy cores may be loops that wait for the job's GPUs.
    pub fn may_wait(&self) -> bool {
        self.ours().all(|g| g.waits)
    }

    /// Whether any GPU is watched.
    pub fn has_gpus(&self) -> bool {
        !self.gpus.is_empty()
    }

    /// Own seconds that lie between the last two samples: nothing was seen before the first.
    pub fn seen_s(&self) -> f64 {
        if self.samples > 1 { self.dt } else { 0.0 }
    }

    /// The GPUs that this sample has rows of: the place among `gpus`, the row, what is known.
    /// The order is theirs, whatever the rows' is.
    pub fn rows<'a>(
        &'a self,
        sample: &'a Sample,
    ) -> impl Iterator<Item = (usize, &'a GpuSample, &'a Gauge)> {
        self.gpus.iter().enumerate().filter_map(|(at, gauge)| {
            let row = match sample.gpus.get(at) {
                Some(gpu) if gauge.is_of(gpu) => gpu,
                _ => sample.gpus.iter().find(|gpu| gauge.is_of(gpu))?,
            };
            Some((at, row, gauge))
        })
    }

    fn end_rest(&mut self) {
        let rest = self.quiet();
        self.acts.push(rest);
        if rest > GAP_INTERVALS * self.interval_s {
            self.rested_s += rest;
        }
        self.acted = self.now;
    }

    fn pass_time(&mut self, elapsed_s: f64, frozen: bool) {
        let first = self.samples == 0;
        self.samples += 1;
        let passed = (elapsed_s - self.now.elapsed_s).max(0.0);
        self.dt = if first {
            self.interval_s = INTERVAL_S;
            // What came before the first sample is a part of the run like any other.
            passed
        } else if frozen || self.frozen {
            0.0
        } else if passed > GAP_INTERVALS * self.interval_s {
            self.interval_s
        } else {
            passed
        };
        if !first && passed > 0.0 {
            let usual = passed.min(GAP_INTERVALS * self.interval_s);
            self.interval_s += 0.2 * (usual - self.interval_s);
        }
        self.frozen = frozen;
        self.now = Moment {
            elapsed_s,
            own_s: self.now.own_s + self.dt,
        };
    }

    fn look_at_gpus(&mut self, sample: &Sample, facts: &JobFacts) {
        for (i, gpu) in sample.gpus.iter().enumerate() {
            // Rows come in one order as a rule.
            let at = match self.gpus.get(i) {
                Some(gauge) if gauge.is_of(gpu) => i,
                _ => self.place_of(gpu),
            };
            let limit = facts.power_limit_w(gpu.index);
            let (mem, sm) = (sample.job_mem_mib.get(i), sample.job_sm_pct.get(i));
            self.gpus[at].look(gpu, mem, sm, limit);
        }
        if self.samples == 1 {
            self.gpus
                .sort_by(|a, b| (a.index, &a.mig).cmp(&(b.index, &b.mig)));
        }
        let any = |held| self.gpus.iter().any(|g| g.held == held);
        self.held = match (any(Some(true)), any(None)) {
            (true, _) => Some(true),
            (_, true) => None,
            _ => Some(false),
        };
        let held = self.gpus.iter().filter_map(|g| g.held_mib);
        self.held_mib = held.reduce(|a, b| a + b);
        if self.held == Some(true) && self.first_held.is_none() {
            self.first_held = Some(self.now);
        }
    }

    fn place_of(&mut self, gpu: &GpuSample) -> usize {
        let known = self.gpus.iter().position(|g| g.is_of(gpu));
        known.unwrap_or_else(|| {
            self.gpus.push(Gauge::new(gpu));
            self.gpus.len() - 1
        })
    }

    /// 2: active beyond doubt, 1: by a little, 0: not.
    fn strength(&mut self, sample: &Sample) -> u8 {
        let gpu = self.gpus.iter().map(|g| match g.does {
            Does::WorksHard => 2,
            Does::Works => 1,
            _ => 0,
        });
        let by_gpu = gpu.max().unwrap_or(0);
        self.gpu_active = by_gpu > 0;
        let job = &sample.job;
        self.cores = job.cpu_cores.get();
        let loops = self.waiting_loops();
        let cores = self.cores.unwrap_or_default() - MOST_CORES * loops;
        let (read, written) = (job.read_mb_s.get(), job.write_mb_s.get());
        let io = [read, written].into_iter().flatten();
        self.io_mb_s = io.reduce(|a, b| a + b);
        let mb_s = self.io_mb_s.unwrap_or_default();
        self.io_mean += (mb_s - self.io_mean) / 30.0;
        self.write_mean += (written.unwrap_or_default() - self.write_mean) / 30.0;
        let rss = job.rss_mib.get();
        self.rss_mib_s = match (rss, self.rss_mib) {
            (Some(now), Some(before)) if self.dt > 0.0 => (now - before).abs() / self.dt,
            _ => 0.0,
        };
        let change = self.rss_mib_s;
        self.rss_mib = rss.or(self.rss_mib);
        let hard = cores >= 1.0 || mb_s > 10.0 * IO_MB_S || change > 10.0 * RSS_MIB_S;
        let little = cores >= CORES || self.moves(sample);
        by_gpu.max(if hard { 2 } else { u8::from(little) })
    }

    /// Whether bytes move, memory grows or falls, or processes start.
    fn moves(&self, sample: &Sample) -> bool {
        let forks = sample.job.forks.get().is_some_and(|n| n > 0);
        forks || self.rss_mib_s > RSS_MIB_S || self.io_mb_s.is_some_and(|mb| mb > IO_MB_S)
    }

    /// Busy cores that may be loops which wait for the GPUs: those of peers that show no use
    /// as well, once one spins (nccl#1550). Where use isn't told, one loop looks like any work
    /// on one core; that every rank of several has one is no chance.
    fn waiting_loops(&self) -> f64 {
        let count = |wanted: &dyn Fn(&&Gauge) -> bool| self.ours().filter(wanted).count();
        let spins = count(&|g| g.does == Does::Spins);
        let waits = count(&|g| g.waits);
        let loops = if spins > 0 {
            count(&|g| matches!(g.does, Does::Spins | Does::Rests))
        } else if waits >= 2 {
            waits
        } else {
            0
        };
        loops as f64
    }

    /// Whether all that the job does is to wait in loops.
    fn all_spin(&self) -> bool {
        let n = self.ours().count() as f64;
        let loops = LEAST_CORES * n..=MOST_CORES * n;
        let one_core_each = n >= 2.0 && self.cores.is_some_and(|c| loops.contains(&c));
        let all = |fits: &dyn Fn(&Gauge) -> bool| n > 0.0 && self.ours().all(fits);
        let one_spins = self.ours().any(|g| g.does == Does::Spins);
        all(&|g| g.does == Does::Spins)
            || one_core_each
                && (all(&|g| g.waits)
                    || one_spins && all(&|g| matches!(g.does, Does::Spins | Does::Rests)))
    }

    /// The GPUs that may be the job's.
    fn ours(&self) -> impl Iterator<Item = &Gauge> {
        self.gpus.iter().filter(|g| g.held != Some(false))
    }

    fn look_at_progress(&mut self, progress: &ProgressState) {
        self.step = progress.step.map(|step| step as f64);
        self.epoch = progress.epoch;
        let seen = self.advances.look(progress, self.now.own_s);
        self.advanced = seen != Seen::Same;
        let gap = self.now.own_s - self.progressed.own_s;
        self.gap = (seen == Seen::Advance).then_some(gap);
        match seen {
            Seen::Same => return,
            Seen::First => self.steps.begin(self.now.own_s),
            Seen::Advance => self.steps.push(gap),
        }
        self.loops.end(self.now);
        let busy = f64::from(u8::from(self.quiet() <= 5.0 * self.interval_s));
        let share = self.busy_share.get_or_insert(busy);
        *share += 0.05 * (busy - *share);
        self.progressed = self.now;
        self.gpus.iter_mut().for_each(Gauge::usual);
    }
}
