//! `throttled` and `overheating`: a GPU that is held back by heat or power, or too hot.
//!
//! Owns which of the driver's reasons hold a job back: a power cap, a clock that was asked for
//! and an idle GPU are normal. A reason that isn't told is unknown, and nothing is said of it.

use crate::model::{GpuSample, Limit, Sample, Severity, Throttle};

use super::finding::{Book, Claim, Evidence, Finding};
use super::gauge::{Does, Gauge};
use super::mean::Mean;
use super::view::View;

/// The names of the findings.
pub const THROTTLED: &str = "throttled";
const OVERHEATING: &str = "overheating";

/// Bits of `model::Throttle`: thermal slowdown by hardware, by software, and the power brake.
const BY_HEAT: u64 = 0x40 | 0x20;
const BY_BRAKE: u64 = 0x80;
const IDLE: u64 = 0x1;

/// The window of both, seconds.
const WINDOW_S: f64 = 60.0;
/// So much of the window is held back; below the second it is over.
const SHARE: (f64, f64) = (0.30, 0.10);
/// The clock below this share of its own 90th percentile; above the second it is over.
const CLOCK: (f64, f64) = (0.85, 0.92);
/// A step takes so many times its usual time; below the second it is over.
const PACE: (f64, f64) = (1.2, 1.1);
/// With fewer steps in the window its pace isn't known.
const STEPS: f64 = 20.0;
/// The usual pace is that of so many seconds at the least, and follows so slowly, seconds.
const PACE_KNOWN_S: f64 = 180.0;
const PACE_FOLLOWS_S: f64 = 600.0;
/// Of the temperature at which the hardware slows down, so much below is too hot, and so much
/// below is no longer, degrees Celsius.
const BELOW_C: (f64, f64) = (2.0, 5.0);
/// So much of the window is too hot; below the second it is over.
const HOT: (f64, f64) = (0.9, 0.1);
/// Clocks that are counted before their percentile is known.
const CLOCKS: u32 = 60;
/// Others that join are told at most so often, seconds.
const UPDATE_S: f64 = 600.0;

/// How often each clock was seen, in bins of 16 MHz up to 4 GHz.
#[derive(Clone, Debug)]
struct Clocks {
    bins: Box<[u32; 256]>,
    n: u32,
}

impl Clocks {
    fn push(&mut self, mhz: f64) {
        self.bins[((mhz / 16.0) as usize).min(255)] += 1;
        self.n += 1;
    }

    /// The 90th percentile: the middle of its bin, MHz.
    fn usual(&self) -> Option<f64> {
        let mut above = 0;
        let bin = self.bins.iter().rposition(|n| {
            above += n;
            above > self.n / 10
        });
        let known = self.n >= CLOCKS / 2;
        bin.filter(|_| known).map(|bin| bin as f64 * 16.0 + 8.0)
    }
}

/// One GPU.
#[derive(Clone, Debug)]
struct Card {
    held_back: Mean,
    clock: Mean,
    hot: Mean,
    clocks: Clocks,
    label: String,
    reasons: Throttle,
    temp_c: Option<f64>,
    /// Since when, in seconds of the run.
    back_since: Option<f64>,
    hot_since: Option<f64>,
    throttled: bool,
    overheats: bool,
}

impl Default for Card {
    fn default() -> Self {
        Self {
            held_back: Mean::default(),
            clock: Mean::default(),
            hot: Mean::default(),
            clocks: Clocks {
                bins: Box::new([0; 256]),
                n: 0,
            },
            label: String::new(),
            reasons: Throttle::default(),
            temp_c: None,
            back_since: None,
            hot_since: None,
            throttled: false,
            overheats: false,
        }
    }
}

/// What the windows are.
#[derive(Clone, Copy, Debug)]
struct Windows {
    throttled_s: f64,
    hot_s: f64,
}

impl Card {
    fn look(&mut self, dt: f64, gpu: &GpuSample, gauge: &Gauge, slows_c: Option<f64>, w: Windows) {
        if self.label.is_empty() {
            self.label = gpu.label();
        }
        self.temp_c = gpu.temp_c.get().or(self.temp_c);
        let reasons = gpu.throttle.get();
        let idle = reasons.is_some_and(|t| t.0 & IDLE != 0);
        let back = reasons.map(|t| t.0 & (BY_HEAT | BY_BRAKE) != 0 && !idle);
        if let Some(reasons) = reasons.filter(|_| back == Some(true)) {
            self.reasons = Throttle(reasons.0 & (BY_HEAT | BY_BRAKE));
        }
        self.held_back.push(dt, back.map(share), w.throttled_s);
        if !idle && gauge.does != Does::Rests {
            let clock = gpu.sm_clock_mhz.get();
            self.clock.push(dt, clock, w.throttled_s);
            let usual = back != Some(true) || self.clocks.n < CLOCKS;
            if let Some(mhz) = clock.filter(|_| usual) {
                self.clocks.push(mhz);
            }
        }
        let least = if self.overheats { BELOW_C.1 } else { BELOW_C.0 };
        let hot = gpu
            .temp_c
            .get()
            .zip(slows_c)
            .map(|(now, at)| now > at - least);
        self.hot.push(dt, hot.map(share), w.hot_s);
    }

    fn judge(&mut self, pace: f64, now_s: f64, w: Windows) {
        let back = self.held_back.mean(w.throttled_s);
        since(&mut self.back_since, self.held_back.partial(0.0), now_s);
        let pick = |(begins, over): (f64, f64)| if self.throttled { over } else { begins };
        self.throttled = back.is_some_and(|part| part >= pick(SHARE))
            && (self.slow_clock().is_some_and(|part| part < pick(CLOCK)) || pace > pick(PACE));
        let hot = self.hot.mean(w.hot_s);
        since(&mut self.hot_since, self.hot.partial(0.0), now_s);
        let least = if self.overheats { HOT.1 } else { HOT.0 };
        self.overheats = hot.is_some_and(|part| part >= least);
    }

    /// The clock as a share of the usual one.
    fn slow_clock(&self) -> Option<f64> {
        let now = self.clock.partial(WINDOW_S / 6.0)?;
        self.clocks.usual().map(|usual| now / usual)
    }
}

/// A number for a mean.
fn share(on: bool) -> f64 {
    f64::from(u8::from(on))
}

/// Since when a window isn't empty of it.
fn since(began: &mut Option<f64>, part: Option<f64>, now_s: f64) {
    *began = part.filter(|p| *p > 0.0).map(|_| began.unwrap_or(now_s));
}

/// How fast steps are made, compared with the run's own usual pace.
#[derive(Clone, Debug, Default)]
struct Pace {
    steps: Mean,
    last: Option<f64>,
    usual: f64,
    known_s: f64,
}

impl Pace {
    /// How many times the usual time a step takes; 1 where that isn't known.
    fn look(&mut self, dt: f64, step: Option<f64>, free: bool, window_s: f64) -> f64 {
        let made = step
            .zip(self.last)
            .map(|(now, before)| (now - before).max(0.0));
        self.last = step.or(self.last);
        let (Some(made), true) = (made, dt > 0.0) else {
            return 1.0;
        };
        self.steps.push(dt, Some(made / dt), window_s);
        let Some(rate) = self.steps.mean(window_s).filter(|r| r * window_s >= STEPS) else {
            return 1.0;
        };
        if free {
            self.known_s += dt;
            self.usual += (rate - self.usual) * (dt / self.known_s.min(PACE_FOLLOWS_S));
        }
        if self.known_s < PACE_KNOWN_S {
            return 1.0;
        }
        self.usual / rate
    }
}

/// The family.
#[derive(Clone, Debug)]
pub struct Heat {
    windows: Windows,
    cards: Vec<Card>,
    pace: Pace,
    said_s: f64,
    names: [String; 2],
}

impl Heat {
    /// With the settings in this book.
    pub fn new(book: &Book) -> Self {
        let window = |name| match book.settings(name).after {
            Limit::Auto => WINDOW_S,
            Limit::After(d) => d.as_secs_f64(),
        };
        Self {
            windows: Windows {
                throttled_s: window(THROTTLED),
                hot_s: window(OVERHEATING),
            },
            cards: Vec::new(),
            pace: Pace::default(),
            said_s: 0.0,
            names: [String::new(), String::new()],
        }
    }

    /// Takes in one sample.
    pub fn sample(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        let dt = v.s.seen_s();
        self.cards.resize_with(v.s.gpus.len(), Card::default);
        let free = |card: &Card| card.held_back.partial(0.0).is_none_or(|part| part < 0.05);
        let free = self.cards.iter().all(free);
        let pace = self.pace.look(dt, v.s.step, free, self.windows.throttled_s);
        let mut any = false;
        for (at, gpu, gauge) in v.s.rows(sample) {
            let card = &mut self.cards[at];
            // What the job doesn't use is somebody else's.
            if gauge.held == Some(false) {
                card.throttled = false;
                card.overheats = false;
                continue;
            }
            card.look(dt, gpu, gauge, v.facts.slowdown_c(gpu.index), self.windows);
            card.judge(pace, v.s.now.elapsed_s, self.windows);
            any |= card.throttled || card.overheats;
        }
        if any || book.holds(THROTTLED) || book.holds(OVERHEATING) {
            self.overheating(v, book);
            self.throttled(pace, v, book);
        }
    }

    fn overheating(&mut self, v: &View<'_>, book: &mut Book) {
        let those = |card: &&Card| card.overheats;
        let temp = |card: &Card| card.temp_c.unwrap_or_default();
        let Some(worst) = most(self.cards.iter().filter(those), temp) else {
            self.names[0].clear();
            book.clear(OVERHEATING);
            return;
        };
        let names = labels(self.cards.iter().filter(those));
        let at = self.cards.iter().position(|c| c.label == worst.label);
        let index = at.and_then(|at| v.s.gpus.get(at)).map(|g| g.index);
        let evidence = Evidence::new()
            .num("temp_c", worst.temp_c)
            .num("slowdown_c", index.and_then(|i| v.facts.slowdown_c(i)))
            .gpu("gpu", &worst.label)
            .text("gpus", names.clone());
        let since_s = worst.hot_since.unwrap_or(v.s.now.elapsed_s);
        let throttled = book.told(THROTTLED).filter(|f| is_about(f, &worst.label));
        let claim = Claim::new(OVERHEATING, Severity::Warning, since_s)
            .because(throttled.map(|f| f.name.clone()))
            .evidence(evidence.clone())
            .advice("The GPU is about to slow itself down: see to fans, air flow and dust (`nvidia-smi -q -d TEMPERATURE`), or lower its power limit (`nvidia-smi -pl WATTS`).");
        book.raise(claim);
        self.others(0, OVERHEATING, names, evidence, v, book);
    }

    fn throttled(&mut self, pace: f64, v: &View<'_>, book: &mut Book) {
        let those = |card: &&Card| card.throttled;
        let slow = |card: &Card| -card.slow_clock().unwrap_or(1.0);
        let Some(worst) = most(self.cards.iter().filter(those), slow) else {
            self.names[1].clear();
            book.clear(THROTTLED);
            return;
        };
        let names = labels(self.cards.iter().filter(those));
        let by_heat = worst.reasons.0 & BY_HEAT != 0;
        let held_back = worst.held_back.mean(self.windows.throttled_s);
        let evidence = Evidence::new()
            .text("reason", worst.reasons.text())
            .num("throttled_pct", held_back.map(|part| 100.0 * part))
            .num("clock_mhz", worst.clock.partial(0.0))
            .num("usual_clock_mhz", worst.clocks.usual())
            .num("step_time_ratio", (pace > PACE.1).then_some(pace))
            .num("temp_c", worst.temp_c)
            .gpu("gpu", &worst.label)
            .text("gpus", names.clone());
        let hot = book
            .told(OVERHEATING)
            .filter(|f| by_heat && is_about(f, &worst.label));
        let since_s = worst.back_since.unwrap_or(v.s.now.elapsed_s);
        let claim = Claim::new(THROTTLED, Severity::Warning, since_s)
            .because(hot.map(|f| f.name.clone()))
            .evidence(evidence.clone())
            .advice(if by_heat {
                "The GPU slows down because it is too hot: see to fans, air flow and the room, or lower its power limit (`nvidia-smi -pl WATTS`), which costs less speed than the slowdown."
            } else {
                "The GPU slows down because its power supply asks for it: check cables, power supplies and the rack's limit (`nvidia-smi -q -d PERFORMANCE`)."
            });
        book.raise(claim);
        self.others(1, THROTTLED, names, evidence, v, book);
    }

    /// Others have joined, or some are well again.
    fn others(
        &mut self,
        which: usize,
        name: &str,
        names: String,
        evidence: Evidence,
        v: &View<'_>,
        book: &mut Book,
    ) {
        let now_s = v.s.now.own_s;
        if self.names[which].is_empty() {
            self.said_s = now_s;
        } else if self.names[which] == names || now_s - self.said_s < UPDATE_S {
            return;
        } else {
            self.said_s = now_s;
            book.update(name, evidence);
        }
        self.names[which] = names;
    }
}

/// The first of those of which this is greatest.
fn most<'a>(cards: impl Iterator<Item = &'a Card>, of: impl Fn(&Card) -> f64) -> Option<&'a Card> {
    cards.reduce(|a, b| if of(b) > of(a) { b } else { a })
}

fn labels<'a>(cards: impl Iterator<Item = &'a Card>) -> String {
    let labels: Vec<&str> = cards.map(|card| card.label.as_str()).collect();
    labels.join(",")
}

/// Whether this finding, which holds, is about this GPU.
pub fn is_about(finding: &Finding, label: &str) -> bool {
    let gpus = finding.evidence.get("gpus").and_then(|gpus| gpus.as_str());
    gpus.is_some_and(|gpus| gpus.split(',').any(|name| name == label))
}
