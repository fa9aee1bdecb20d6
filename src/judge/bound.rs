//! `memory-bound`: a GPU whose memory sets the pace.
//!
//! Owns how busy the memory is while the processors draw little. A note, for who wants more.

use crate::model::{Limit, Sample, Severity};

use super::finding::{Book, Claim, Evidence};
use super::view::View;

const BOUND: &str = "memory-bound";
/// Means over so long, seconds.
const WINDOW_S: f64 = 300.0;
/// The memory is busy for more than so many percent; below the second it is over.
const BUSY_PCT: (f64, f64) = (80.0, 70.0);
/// Power well under the limit; above the second it is over.
const POWER: (f64, f64) = (0.75, 0.85);

/// Sums of one window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    seconds: f64,
    busy: f64,
    power: f64,
}

/// The family.
#[derive(Clone, Debug)]
pub struct Bound {
    window_s: f64,
    gpus: Vec<Window>,
    told: Option<usize>,
}

impl Bound {
    /// With the settings in this book.
    pub fn new(book: &Book) -> Self {
        let window_s = match book.settings(BOUND).after {
            Limit::Auto => WINDOW_S,
            Limit::After(d) => d.as_secs_f64(),
        };
        Self {
            window_s,
            gpus: Vec::new(),
            told: None,
        }
    }

    /// Takes in one sample.
    pub fn sample(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        self.gpus.resize_with(v.s.gpus.len(), Window::default);
        let dt = v.s.seen_s();
        for (at, gpu, gauge) in v.s.rows(sample) {
            let limit = gpu.power_limit_w.get();
            let limit = limit.or_else(|| v.facts.power_limit_w(gpu.index));
            let power = gpu.power_w.get().zip(limit.filter(|w| *w > 0.0));
            // What the memory itself does tells more than the share of time in which it was used.
            let busy = gpu.dram_active_pct.get().or(gpu.mem_util_pct.get());
            let (Some((watts, limit)), Some(busy)) = (power, busy) else {
                continue;
            };
            if gauge.is_shared() || gauge.held != Some(true) {
                self.gpus[at] = Window::default();
                continue;
            }
            let window = &mut self.gpus[at];
            window.seconds += dt;
            window.busy += dt * busy;
            window.power += dt * watts / limit;
            if window.seconds >= self.window_s && window.seconds > 0.0 {
                let whole = std::mem::take(window);
                let label = || gpu.label();
                self.judge(at, whole, label, v, book);
            }
        }
    }

    fn judge(
        &mut self,
        at: usize,
        whole: Window,
        label: impl Fn() -> String,
        v: &View<'_>,
        book: &mut Book,
    ) {
        let (busy, power) = (whole.busy / whole.seconds, whole.power / whole.seconds);
        if self.told == Some(at) && (busy < BUSY_PCT.1 || power > POWER.1) {
            self.told = None;
            book.clear(BOUND);
        }
        if self.told.is_some() || busy <= BUSY_PCT.0 || power >= POWER.0 {
            return;
        }
        self.told = Some(at);
        let claim = Claim::new(BOUND, Severity::Note, v.s.now.elapsed_s - whole.seconds)
            .evidence(
                Evidence::new()
                    .gpu("gpu", &label())
                    .num("memory_busy_pct", busy)
                    .num("power_pct", 100.0 * power),
            )
            .advice(advice(v.framework()));
        book.raise(claim);
    }
}

fn advice(framework: Option<&str>) -> &'static str {
    match framework {
        Some("pytorch") => {
            "Memory traffic sets the pace, not arithmetic: torch.compile fuses element-wise operations, bf16 (torch.autocast) halves what is moved, scaled_dot_product_attention and fused optimizers (fused=True) save round trips."
        }
        Some("tensorflow") => {
            "Memory traffic sets the pace, not arithmetic: jit_compile=True fuses element-wise operations, mixed_float16 halves what is moved."
        }
        Some("jax") => {
            "Memory traffic sets the pace, not arithmetic: put the whole step under one jax.jit so that it is fused, and use bfloat16, which halves what is moved."
        }
        _ => {
            "Memory traffic sets the pace, not arithmetic: fused kernels and a 16-bit type move less."
        }
    }
}
