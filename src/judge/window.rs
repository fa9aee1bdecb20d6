//! The last minutes of training, tick by tick: how busy the GPUs were, and what else was.
//!
//! Owns which ticks count as steady training, and the sums, shares and rhythm that several
//! families ask for. Claims nothing.

use std::collections::VecDeque;

use crate::model::Sample;

use super::view::View;

/// A load below this is rest, above the other one work at full speed, %.
pub const RESTS_PCT: f64 = 10.0;
/// As above.
pub const FULL_PCT: f64 = 70.0;
/// A window spans so many seconds, and so many ticks where they are far apart.
const SPAN_S: f64 = 120.0;
const LEAST: usize = 30;
/// No more ticks are kept, however close they are.
const MOST: usize = 256;
/// So many rests come after full speed.
const OFTEN: u32 = 4;
/// A rhythm shows in so many ticks, and repeats after so many at the most.
const RHYTHM: usize = 60;
const LAGS: usize = 30;
/// Silence beyond so many median gaps is an evaluation, a checkpoint, anything but training.
const USUAL_MEDIANS: f64 = 3.0;

/// What counted at one tick. NaN stands for what is missing.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    /// The judge's own seconds.
    pub own_s: f64,
    /// Mean load of the GPUs that the job holds, %.
    pub load: f64,
    /// Cores of the tree.
    pub cores: f64,
    /// Cores of the main process.
    pub main: f64,
    /// Processes besides the main one that take over 0.85 core.
    pub workers: f64,
    /// Processes that wait for storage.
    pub disk: f64,
    /// I/O pressure, %.
    pub pressure: f64,
    /// Held back by a quota of processor time, %.
    pub held_back: f64,
    /// Use of the machine's processors, %.
    pub host: f64,
    /// PCIe traffic of all these GPUs, 10^6 bytes a second.
    pub pcie: f64,
    /// Advances of progress so far.
    pub advances: u64,
}

/// The ticks that count.
#[derive(Clone, Debug, Default)]
pub struct Window {
    ticks: VecDeque<Tick>,
}

impl Window {
    /// Takes in one sample; the tick, if it is one of steady training.
    pub fn push(&mut self, sample: &Sample, v: &View<'_>) -> Option<Tick> {
        let tick = steady(sample, v)?;
        let old = |t: &Tick| t.own_s <= tick.own_s - SPAN_S;
        while self.ticks.len() >= LEAST && self.ticks.front().is_some_and(old)
            || self.ticks.len() >= MOST
        {
            self.ticks.pop_front();
        }
        self.ticks.push_back(tick);
        Some(tick)
    }

    /// Whether it spans what a window should. Ticks that don't count are no part of it.
    pub fn is_full(&self) -> bool {
        let span = self.ticks.front().zip(self.ticks.back());
        let span = span.map_or(0.0, |(first, last)| last.own_s - first.own_s);
        self.ticks.len() >= LEAST && (span >= SPAN_S - 5.0 || self.ticks.len() >= MOST)
    }

    /// The run's second at which it begins is this many own seconds ago.
    pub fn age_s(&self) -> f64 {
        let span = self.ticks.front().zip(self.ticks.back());
        span.map_or(0.0, |(first, last)| last.own_s - first.own_s)
    }

    /// How often progress advanced in it.
    pub fn advances(&self) -> u64 {
        let ends = self.ticks.front().zip(self.ticks.back());
        ends.map_or(0, |(first, last)| last.advances - first.advances)
    }

    /// The mean of what is known; None where less than half is.
    pub fn mean(&self, of: impl Fn(&Tick) -> f64) -> Option<f64> {
        self.mean_where(|_| true, of)
    }

    /// The same of the ticks that fit.
    pub fn mean_where(
        &self,
        fits: impl Fn(&Tick) -> bool,
        of: impl Fn(&Tick) -> f64,
    ) -> Option<f64> {
        let (mut sum, mut known, mut all) = (0.0, 0_u32, 0_u32);
        for tick in self.ticks.iter().filter(|t| fits(t)) {
            let value = of(tick);
            all += 1;
            if value.is_finite() {
                sum += value;
                known += 1;
            }
        }
        (known > 0 && 2 * known >= all).then(|| sum / f64::from(known))
    }

    /// The share of ticks that fit, 0 to 1.
    pub fn share(&self, fits: impl Fn(&Tick) -> bool) -> f64 {
        if self.ticks.is_empty() {
            return 0.0;
        }
        let n = self.ticks.iter().filter(|t| fits(t)).count();
        n as f64 / self.ticks.len() as f64
    }

    /// Whether the load comes and goes: often at rest and often at full speed, or in a rhythm.
    pub fn swings(&self) -> bool {
        let rests = self.share(|t| t.load < RESTS_PCT);
        let full = self.share(|t| t.load > FULL_PCT);
        // One rest alone is a pause, or the end; and what was slow before it became fast hasn't
        // rested because a reading lies now here, now there of the line.
        let often = self.falls() >= OFTEN;
        often && rests >= 0.2 && full >= 0.2 || self.rhythm().is_some_and(|r| r > 0.3)
    }

    /// How long the GPUs rest at a stretch, mean in seconds.
    pub fn rest_s(&self) -> f64 {
        let rests = self.share(|t| t.load < RESTS_PCT);
        rests * self.age_s() / f64::from(self.rests().max(1))
    }

    /// Whether they rest at its last tick.
    pub fn rests_now(&self) -> bool {
        self.ticks.back().is_some_and(|t| t.load < RESTS_PCT)
    }

    /// How often they rest.
    pub fn rests(&self) -> u32 {
        let (mut stretches, mut before) = (0, false);
        for tick in &self.ticks {
            let rest = tick.load < RESTS_PCT;
            stretches += u32::from(rest && !before);
            before = rest;
        }
        stretches
    }

    /// How often they rest after full speed.
    fn falls(&self) -> u32 {
        let (mut falls, mut full) = (0, false);
        for tick in &self.ticks {
            if tick.load > FULL_PCT {
                full = true;
            } else if tick.load < RESTS_PCT {
                falls += u32::from(full);
                full = false;
            }
        }
        falls
    }

    /// The highest peak of the load's autocorrelation at lags of up to 30 ticks: where it rises
    /// again after a trough. A drift has none, and what moves by less than noise isn't asked.
    fn rhythm(&self) -> Option<f64> {
        let n = self.ticks.len();
        if n < RHYTHM {
            return None;
        }
        let mean = self.mean(|t| t.load)?;
        let off: Vec<f64> = self.ticks.iter().map(|t| t.load - mean).collect();
        let power: f64 = off.iter().map(|x| x * x).sum();
        // The standard deviation of what comes and goes is well over the noise of a reading.
        if (power / n as f64).sqrt() < 8.0 {
            return None;
        }
        let at = |lag: usize| -> f64 {
            let pairs = off.iter().zip(&off[lag..]);
            pairs.map(|(a, b)| a * b).sum::<f64>() / power
        };
        let (mut lowest, mut peak) = (1.0_f64, None::<f64>);
        for lag in 1..=LAGS.min(n / 3) {
            let r = at(lag);
            if r > lowest + 0.2 {
                peak = Some(peak.map_or(r, |p| p.max(r)));
            }
            lowest = lowest.min(r);
        }
        peak
    }
}

/// The tick, where the job trains, holds a GPU of which something is known, and is within its
/// usual gap between two steps.
fn steady(sample: &Sample, v: &View<'_>) -> Option<Tick> {
    let s = v.s;
    if !s.advances.trains || v.may_be_silent() || s.dt <= 0.0 || s.held == Some(false) {
        return None;
    }
    let usual = (USUAL_MEDIANS * s.steps.median()).max(s.steps.median() + 3.0);
    if s.steps.gaps() >= 3 && s.progress_age() > usual {
        return None;
    }
    let (mut load, mut pcie, mut n) = (0.0, 0.0, 0_u32);
    for (gauge, gpu) in s.gpus.iter().zip(&sample.gpus) {
        let (Some(pct), true) = (gauge.load_pct, gauge.held != Some(false)) else {
            continue;
        };
        load += pct;
        pcie += gpu.pcie_mb_s.get().unwrap_or(f64::NAN);
        n += 1;
    }
    if n == 0 {
        return None;
    }
    let (job, host) = (&sample.job, &sample.host);
    let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let main = known(job.main_cores.get());
    let busy = known(job.n_busy.get().map(f64::from));
    Some(Tick {
        own_s: s.now.own_s,
        load: load / f64::from(n),
        cores: known(job.cpu_cores.get()),
        main,
        workers: busy - f64::from(u8::from(main > 0.85)),
        disk: known(job.n_disk.get().map(f64::from)),
        pressure: known(host.io_pressure_pct.get()),
        held_back: known(host.cpu_throttled_pct.get()),
        host: known(host.cpu_pct.get()),
        pcie,
        advances: s.advances.count,
    })
}
