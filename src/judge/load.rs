//! `low-use` and `small-batch`: the GPUs could do more, and nothing else explains it.
//!
//! Owns both notes, over the steady part of training: what is left when starting, evaluating,
//! saving and waiting are taken away.

use crate::model::{Sample, Severity};

use super::finding::{Book, Claim, Evidence};
use super::starved::{CPU_BOUND, STARVED};
use super::view::View;
use super::window::Tick;

/// The names of the findings.
pub const LOW: &str = "low-use";
/// As above.
pub const SMALL: &str = "small-batch";

/// Mean use below this is low, above the other one fine, %.
const LOW_PCT: f64 = 50.0;
const FINE_PCT: f64 = 55.0;
/// Below this it is bad, %.
const BAD_PCT: f64 = 30.0;
/// A batch is worth enlarging where use is below this, and memory below that, %.
const SMALL_USE_PCT: f64 = 70.0;
const SMALL_MEMORY: f64 = 0.40;
/// The first steps are no steady part, own seconds.
const WARM_UP_S: f64 = 60.0;
/// So much of it must have been seen before it is said, and at a run's end, own seconds.
const STEADY_S: f64 = 900.0;
const SHORT_S: f64 = 60.0;
/// Between two looks, own seconds.
const EVERY_S: f64 = 60.0;
/// What explains low use better than these notes.
const BETTER: [&str; 7] = [
    STARVED,
    CPU_BOUND,
    "imbalanced",
    "throttled",
    "stalled",
    "hardware",
    "gpu-unused",
];

/// Both.
#[derive(Clone, Debug)]
pub struct Load {
    /// Own seconds at each percent of load.
    spent: Box<[f64; 101]>,
    steady_s: f64,
    sum: f64,
    trains_s: f64,
    looked_s: f64,
    /// The largest part of a card that the job held, 0 to 1.
    memory: Option<f64>,
    explained: bool,
    since_s: Option<f64>,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            spent: Box::new([0.0; 101]),
            steady_s: 0.0,
            sum: 0.0,
            trains_s: 0.0,
            looked_s: 0.0,
            memory: None,
            explained: false,
            since_s: None,
        }
    }
}

impl Load {
    /// Takes in one sample; `steady`: what it tells of steady training, if it is a part of it.
    pub fn sample(&mut self, sample: &Sample, steady: Option<Tick>, v: &View<'_>, book: &mut Book) {
        for (gauge, gpu) in v.s.gpus.iter().zip(&sample.gpus) {
            let parts = gauge.held_mib.zip(gpu.mem_total_mib.get());
            if let Some((held, total)) = parts.filter(|(_, total)| *total > 0.0) {
                self.memory = Some(self.memory.unwrap_or_default().max(held / total));
            }
        }
        let Some(tick) = steady.filter(|t| t.load.is_finite()) else {
            return;
        };
        self.trains_s += v.s.dt;
        if self.trains_s < WARM_UP_S {
            return;
        }
        self.since_s.get_or_insert(v.s.now.elapsed_s);
        self.steady_s += v.s.dt;
        self.sum += tick.load * v.s.dt;
        self.spent[tick.load.clamp(0.0, 100.0).round() as usize] += v.s.dt;
        self.explained |= BETTER.iter().any(|name| book.holds(name));
        if v.s.now.own_s - self.looked_s >= EVERY_S {
            self.looked_s = v.s.now.own_s;
            self.look(STEADY_S, v, book);
        }
    }

    /// The run is over.
    pub fn finish(&mut self, v: &View<'_>, book: &mut Book) {
        self.look(SHORT_S, v, book);
        for name in [LOW, SMALL] {
            if book.holds(name) {
                book.update(name, self.evidence());
            }
        }
    }

    fn look(&self, least_s: f64, v: &View<'_>, book: &mut Book) {
        if self.steady_s < least_s {
            return;
        }
        let mean = self.mean();
        if self.explained || mean > FINE_PCT {
            book.clear(LOW);
        }
        let small = self.memory.is_some_and(|part| part < SMALL_MEMORY) && mean < SMALL_USE_PCT;
        if self.explained || !small {
            book.clear(SMALL);
        }
        if self.explained {
            return;
        }
        let since = self.since_s.unwrap_or_default();
        if small {
            // A batch that could be larger is the better word for the same.
            book.clear(LOW);
            let claim = Claim::new(SMALL, Severity::Note, since)
                .evidence(self.evidence())
                .advice(larger_batch(v.framework()));
            book.raise(claim);
        } else if mean < LOW_PCT {
            let swings = self.percentile(0.95) > 70.0 && self.percentile(0.05) < 10.0;
            let claim = Claim::new(LOW, Severity::Note, since)
                .cause(swings.then_some("fluctuating"))
                .evidence(self.evidence())
                .advice(more_use(mean, swings));
            book.raise(claim);
        }
    }

    fn mean(&self) -> f64 {
        self.sum / self.steady_s
    }

    /// The load below which the GPUs were for this share of the time.
    fn percentile(&self, share: f64) -> f64 {
        let mut seen = 0.0;
        let at = self.spent.iter().position(|s| {
            seen += s;
            seen >= share * self.steady_s
        });
        at.unwrap_or(100) as f64
    }

    fn evidence(&self) -> Evidence {
        Evidence::new()
            .num("gpu_util_pct", self.mean())
            .num("p5_pct", self.percentile(0.05))
            .num("p95_pct", self.percentile(0.95))
            .num("memory_pct", self.memory.map(|part| part * 100.0))
            .num("over_s", self.steady_s)
    }
}

fn more_use(mean: f64, swings: bool) -> String {
    let how = if mean < BAD_PCT { "bad" } else { "low" };
    let what = if swings {
        "it comes and goes: look for what happens between the steps (logging, `.item()`, metrics, saving), and overlap it with the next step"
    } else {
        "a larger batch, mixed precision, a compiled step (torch.compile, jit_compile=True, jax.jit) and fewer synchronisations give the GPU more to do at once"
    };
    format!("Use of the GPU is {how} (above 70 % is fine): {what}.")
}

fn larger_batch(framework: Option<&str>) -> String {
    let how = match framework {
        Some("tensorflow") => "`batch_size` of model.fit or `.batch(n)`",
        Some("jax") => "the batch that goes into the jitted step",
        _ => "`batch_size` of the DataLoader",
    };
    format!(
        "Most of the card's memory is free and the GPU isn't busy: a larger batch ({how}; scale the learning rate with it) does more a second, or two such jobs can share the card."
    )
}
