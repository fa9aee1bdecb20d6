//! `near-oom`: memory that is nearly full and still grows.
//!
//! Owns how full is nearly full and what growing means here: steadily, over two minutes or over a
//! quarter of an hour, beyond anything that the run has held before. Memory that was taken at
//! once or in a few steps and stays is full by design.

use std::collections::VecDeque;

use crate::model::{Limit, Sample, Severity};

use super::finding::{Book, Claim, Evidence};
use super::leak::{LEAK, host_mib};
use super::signals::Moment;
use super::view::View;

/// The finding's name.
pub const NEAR_OOM: &str = "near-oom";

/// A share of the memory that is worth a warning, and one that is critical.
const WARNING: f64 = 0.92;
const CRITICAL: f64 = 0.97;
/// Below it, it is over.
const OVER: f64 = 0.90;
/// So many blocks are looked at; so many of the seven steps between them rise, or it is a
/// staircase; and a line explains so much of their variance.
const BLOCKS: usize = 8;
const RISING: usize = 6;
const ON_LINE: f64 = 0.95;
/// Lengths of a block, seconds.
const FAST_S: f64 = 15.0;
const SLOW_S: f64 = 120.0;
/// A rise a block that is worth the name: MiB, and share of the limit.
const STEP: (f64, f64) = (4.0, 1e-4);
/// Beyond what was held before, by this share of the limit.
const NEW: f64 = 0.005;
/// What slows down to less than this share of its pace before is about to stay.
const STEADY: f64 = 0.7;
/// At its pace it would be full within so long, seconds.
const NEAR_S: f64 = 12.0 * 3600.0;
/// Without a new maximum for so long it stays, seconds.
const STAYS_S: f64 = 960.0;
/// Allocators and caches fill while training begins, seconds.
const START_S: f64 = 600.0;
/// Use of a GPU that is work, %: loading a model is none.
const WORKS_PCT: f64 = 20.0;

/// The low point of a block.
#[derive(Clone, Copy, Debug)]
struct Low {
    mib: f64,
    /// When the block began, and when it was over.
    began_s: f64,
    over_own_s: f64,
}

/// The low points of the last blocks of one length.
#[derive(Clone, Debug)]
struct Ramp {
    length: f64,
    passed: f64,
    low: Option<f64>,
    began_s: f64,
    lows: VecDeque<Low>,
    /// The highest of those that are no longer remembered.
    before: f64,
}

impl Ramp {
    fn new(length: f64) -> Self {
        Self {
            length,
            passed: 0.0,
            low: None,
            began_s: 0.0,
            lows: VecDeque::with_capacity(BLOCKS),
            before: 0.0,
        }
    }

    /// Whether a block is over.
    fn look(&mut self, dt: f64, mib: f64, now: Moment) -> bool {
        if self.low.is_none() {
            self.began_s = now.elapsed_s;
        }
        self.passed += dt;
        self.low = Some(self.low.map_or(mib, |low| low.min(mib)));
        if self.passed < self.length {
            return false;
        }
        if self.lows.len() == BLOCKS
            && let Some(low) = self.lows.pop_front()
        {
            self.before = self.before.max(low.mib);
        }
        let began_s = self.began_s;
        self.lows.extend(self.low.take().map(|mib| Low {
            mib,
            began_s,
            over_own_s: now.own_s,
        }));
        self.passed = 0.0;
        true
    }

    /// MiB a second, and since when, if it rises steadily to a new maximum.
    fn rises(&self, limit_mib: f64) -> Option<(f64, f64)> {
        let low = |i: usize| self.lows[i].mib;
        let known = self.before + NEW * limit_mib;
        if self.lows.len() < BLOCKS || low(BLOCKS - 1) <= known || self.slows_down() {
            return None;
        }
        let step = STEP.0.max(STEP.1 * limit_mib);
        let steps = (1..BLOCKS).filter(|i| low(*i) > low(i - 1) + step);
        if steps.count() < RISING {
            return None;
        }
        let (per_s, on_line) = self.line();
        (on_line >= ON_LINE).then_some((per_s, self.lows[0].began_s))
    }

    /// The line of least squares: MiB a second, and how much of the variance it explains.
    fn line(&self) -> (f64, f64) {
        let n = self.lows.len() as f64;
        let mean = |of: &dyn Fn(&Low) -> f64| self.lows.iter().map(of).sum::<f64>() / n;
        let (t, y) = (mean(&|l| l.over_own_s), mean(&|l| l.mib));
        let (mut tt, mut ty, mut yy) = (0.0, 0.0, 0.0);
        for low in &self.lows {
            let (dt, dy) = (low.over_own_s - t, low.mib - y);
            tt += dt * dt;
            ty += dt * dy;
            yy += dy * dy;
        }
        if tt <= 0.0 || yy <= 0.0 {
            return (0.0, 0.0);
        }
        (ty / tt, ty * ty / (tt * yy))
    }

    /// Whether it grows ever more slowly: in the second half of it, or at its end.
    fn slows_down(&self) -> bool {
        if self.lows.len() < BLOCKS {
            return false;
        }
        let low = |i: usize| self.lows[i].mib;
        let (first, middle, last) = (low(0), low(BLOCKS / 2 - 1), low(BLOCKS - 1));
        let late = low(BLOCKS - 3);
        // Three steps before the middle, four after it; five, and the last two.
        (last - middle) / 4.0 < STEADY * (middle - first) / 3.0
            || (last - late) / 2.0 < STEADY * (late - first) / 5.0
    }
}

/// One memory.
#[derive(Clone, Debug)]
struct Store {
    fast: Ramp,
    slow: Ramp,
    /// The highest reading of the block before and of this one, MiB.
    peaks: (f64, f64),
    most: f64,
    rose: Moment,
}

impl Store {
    fn new(fast_s: f64) -> Self {
        Self {
            fast: Ramp::new(fast_s),
            slow: Ramp::new(SLOW_S),
            peaks: (0.0, 0.0),
            most: 0.0,
            rose: Moment::default(),
        }
    }

    /// `mib`: what may grow; `used_mib`: all that is taken.
    fn look(&mut self, dt: f64, mib: f64, used_mib: f64, now: Moment) {
        self.peaks.1 = self.peaks.1.max(used_mib);
        if self.fast.look(dt, mib, now) {
            self.peaks = (self.peaks.1, 0.0);
            let low = self.fast.lows.back().map_or(0.0, |l| l.mib);
            if low > self.most {
                self.most = low;
                self.rose = now;
            }
        }
        self.slow.look(dt, mib, now);
    }

    fn peak(&self) -> f64 {
        self.peaks.0.max(self.peaks.1)
    }

    /// Whether more than this share of the limit is taken, and it grows.
    fn is_near(&self, limit_mib: f64, least: f64, trains: bool) -> Option<Found> {
        let peak_mib = self.peak();
        if limit_mib <= 0.0 || peak_mib <= least * limit_mib {
            return None;
        }
        // Who shows no progress may be loading: that takes minutes. What rises now may be
        // about to stay, as seen over longer.
        let fast = trains && !self.slow.slows_down();
        let fast = fast.then(|| self.fast.rises(limit_mib)).flatten();
        let (per_s, since_s) = fast.or_else(|| self.slow.rises(limit_mib))?;
        let near = limit_mib - peak_mib <= NEAR_S * per_s;
        near.then_some(Found {
            whose: Whose::Host,
            limit_mib,
            peak_mib,
            per_s,
            since_s,
            others_mib: None,
        })
    }
}

/// Whose memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Gpu(usize),
    Host,
}

/// A memory that is nearly full and grows.
#[derive(Clone, Copy, Debug)]
struct Found {
    whose: Whose,
    limit_mib: f64,
    peak_mib: f64,
    per_s: f64,
    since_s: f64,
    others_mib: Option<f64>,
}

impl Found {
    fn share(&self) -> f64 {
        self.peak_mib / self.limit_mib
    }
}

/// The family.
#[derive(Clone, Debug)]
pub struct NearOom {
    on: bool,
    fast_s: f64,
    start_s: f64,
    /// Since when it is looked at, in own seconds: since it trains, if it does.
    began: Option<f64>,
    trains: bool,
    /// The epoch that was shown first: caches fill while it lasts.
    first_epoch: Option<f64>,
    gpus: Vec<Store>,
    host: Store,
    /// More than its limit was counted: pages that processes share were counted for each.
    overcounted: bool,
    told: Option<Found>,
}

impl NearOom {
    /// With the settings in this book.
    pub fn new(book: &Book) -> Self {
        let settings = book.settings(NEAR_OOM);
        let (fast_s, start_s) = match settings.after {
            Limit::Auto => (FAST_S, START_S),
            Limit::After(d) => (d.as_secs_f64() / BLOCKS as f64, 0.0),
        };
        Self {
            on: settings.on,
            fast_s,
            start_s,
            began: None,
            trains: false,
            first_epoch: None,
            gpus: Vec::new(),
            host: Store::new(fast_s),
            overcounted: false,
            told: None,
        }
    }

    /// Takes in one sample.
    pub fn sample(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        if !self.on || v.s.frozen {
            return;
        }
        if v.s.advances.trains && !self.trains {
            // What was loaded before isn't growth.
            self.trains = true;
            self.began = None;
            self.gpus.clear();
            self.host = Store::new(self.fast_s);
        }
        let fast_s = self.fast_s;
        self.gpus.resize_with(v.s.gpus.len(), || Store::new(fast_s));
        let epoch = v.s.epoch.map(f64::floor);
        self.first_epoch = self.first_epoch.or(epoch);
        let begins = epoch.is_some() && epoch == self.first_epoch;
        let began = *self.began.get_or_insert(v.s.now.own_s);
        let least = match begins {
            _ if v.s.now.own_s - began < self.start_s => f64::INFINITY,
            true => CRITICAL,
            false => WARNING,
        };
        let on_gpu = self.look_at_gpus(least, sample, v);
        let on_host = self.look_at_host(least, sample, v);
        let found = on_gpu.into_iter().chain(on_host);
        let worst = found.reduce(|a, b| if b.share() > a.share() { b } else { a });
        self.look_at_told(v, book);
        if let Some(found) = worst {
            self.tell(found, sample, v, book);
        }
    }

    /// The fullest of those that are too full and grow.
    fn look_at_gpus(&mut self, least: f64, sample: &Sample, v: &View<'_>) -> Option<Found> {
        let mut worst: Option<Found> = None;
        for (at, gpu, gauge) in v.s.rows(sample) {
            let works = gauge.use_pct.is_some_and(|pct| pct >= WORKS_PCT);
            let Some(mib) = gauge.held_mib.filter(|_| self.trains || works) else {
                continue;
            };
            let store = &mut self.gpus[at];
            let used = gpu.mem_used_mib.get().unwrap_or(mib);
            store.look(v.s.seen_s(), mib, used, v.s.now);
            let total = gpu.mem_total_mib.get().or_else(|| v.facts.memory_mib(gpu));
            let others_mib = gauge.others_mib.filter(|_| gauge.is_shared());
            let found = total.and_then(|total| store.is_near(total, least, self.trains));
            let found = found.map(|found| Found {
                whose: Whose::Gpu(at),
                others_mib,
                ..found
            });
            let share = worst.map_or(0.0, |f| f.share());
            worst = found.filter(|f| f.share() > share).or(worst);
        }
        worst
    }

    fn look_at_host(&mut self, least: f64, sample: &Sample, v: &View<'_>) -> Option<Found> {
        let limit = sample.host.mem_limit_mib.get()?;
        let mib = host_mib(sample)?;
        self.overcounted |= mib > limit;
        self.host.look(v.s.seen_s(), mib, mib, v.s.now);
        let found = self.host.is_near(limit, least, self.trains);
        found.filter(|_| !self.overcounted)
    }

    /// Whether what was told is over: there is room again, or it stays where it is.
    fn look_at_told(&mut self, v: &View<'_>, book: &mut Book) {
        let Some(told) = self.told else { return };
        let store = match told.whose {
            Whose::Gpu(at) => self.gpus.get(at),
            Whose::Host => Some(&self.host),
        };
        let holds = |s: &Store| {
            v.s.now.own_s - s.rose.own_s <= STAYS_S && s.peak() >= OVER * told.limit_mib
        };
        if !store.is_some_and(holds) {
            self.told = None;
            book.clear(NEAR_OOM);
        }
    }

    fn tell(&mut self, found: Found, sample: &Sample, v: &View<'_>, book: &mut Book) {
        match self.told {
            None => book.raise(claim(&found, sample, v, book)),
            Some(told) if found.share() > CRITICAL && told.share() <= CRITICAL => {
                book.worsen(claim(&found, sample, v, book));
            }
            Some(_) => return,
        }
        self.told = Some(found);
    }
}

fn claim(found: &Found, sample: &Sample, v: &View<'_>, book: &Book) -> Claim {
    let cause = cause(found, v);
    let label = match found.whose {
        Whose::Gpu(at) => v.s.rows(sample).find(|(place, ..)| *place == at),
        Whose::Host => None,
    };
    let evidence = match label {
        Some((_, gpu, _)) => Evidence::new().gpu("gpu", &gpu.label()),
        None => Evidence::new(),
    };
    let left_s = (found.limit_mib - found.peak_mib).max(0.0) / found.per_s;
    let evidence = evidence
        .num("mem_pct", 100.0 * found.share())
        .num("mem_mib", found.peak_mib)
        .num("limit_mib", found.limit_mib)
        .num("mib_per_min", 60.0 * found.per_s)
        .num("minutes_to_limit", left_s / 60.0)
        .num("others_mib", found.others_mib);
    let severity = if found.share() > CRITICAL {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let on_gpu = cause == "gpu";
    let leak = book
        .told(LEAK)
        .filter(|f| (f.cause.as_deref() == Some("gpu")) == on_gpu);
    Claim::new(NEAR_OOM, severity, found.since_s)
        .cause(cause)
        .because(leak.map(|f| f.name.clone()))
        .evidence(evidence)
        .advice(advice(cause, v.framework()))
}

fn cause(found: &Found, v: &View<'_>) -> &'static str {
    let of_host = v
        .facts
        .host_mem_mib
        .is_none_or(|mib| found.limit_mib >= 0.999 * mib);
    match found.whose {
        Whose::Gpu(_) => "gpu",
        Whose::Host if of_host => "host",
        Whose::Host => "cgroup",
    }
}

fn advice(cause: &str, framework: Option<&str>) -> &'static str {
    match (cause, framework) {
        ("gpu", Some("pytorch")) => {
            "Save a checkpoint now. A smaller batch with gradient accumulation, bf16 or activation checkpointing makes room; PYTORCH_ALLOC_CONF=expandable_segments:True helps where shapes vary."
        }
        ("gpu", Some("tensorflow")) => {
            "Save a checkpoint now. A smaller batch, mixed_float16 or recompute_grad makes room; inputs of fixed shapes (padded_batch with a bound) keep it from growing."
        }
        ("gpu", Some("jax")) => {
            "Save a checkpoint now. A smaller batch, jax.checkpoint, bf16 or donated buffers (donate_argnums) make room."
        }
        ("gpu", _) => {
            "Save a checkpoint now. A smaller batch, mixed precision or activation checkpointing makes room."
        }
        ("cgroup", _) => {
            "Save a checkpoint now: the kernel kills a process of the job at its memory limit. Fewer loader workers, a smaller prefetch or cache, or a higher limit (--mem, --memory) make room."
        }
        _ => {
            "Save a checkpoint now: the kernel kills a process when the machine's memory is full. Fewer loader workers, a smaller prefetch or cache make room."
        }
    }
}
