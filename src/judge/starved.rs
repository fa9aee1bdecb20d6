//! `data-starved` and `cpu-bound`: the GPUs wait for the processors.
//!
//! Owns when use that comes and goes means that batches come too slowly (a warning, with what
//! slows them), and when it is the nature of the job: simulations and other work on the
//! processors between bursts of the GPU (a note).

use crate::model::{Sample, Severity};

use super::finding::{Book, Claim, Evidence};
use super::view::View;
use super::window::{RESTS_PCT, Window};

/// The names of the findings.
pub const STARVED: &str = "data-starved";
/// As above.
pub const CPU_BOUND: &str = "cpu-bound";

/// GPUs that are busier than this wait for nothing that matters, %.
const BUSY_PCT: f64 = 60.0;
/// Above this it is over, %.
const OVER_PCT: f64 = 65.0;
/// Between two looks, own seconds.
const EVERY_S: f64 = 10.0;
/// So many looks in a row without it end it.
const ENDS: u32 = 12;
/// A rest so long isn't the wait for one batch: something else has its turn, seconds.
const TURN_S: f64 = 5.0;
/// So long the processors must have had their turns before it is said, own seconds.
const TURNS_S: f64 = 600.0;
/// And so many they must have been: one long evaluation is none.
const TURNS: u32 = 4;
/// A core counts as full from here on.
const FULL_CORE: f64 = 0.85;
/// Storage is what is waited for: share of ticks with a process in D, pressure, %.
const DISK_SHARE: f64 = 0.3;
const PRESSURE_PCT: f64 = 30.0;
/// A host without processors to spare; a quota that bites, %.
const HOST_PCT: f64 = 90.0;
const HELD_BACK_PCT: f64 = 10.0;
/// Copies that fill the bus although little is computed, 10^6 bytes a second.
const COPIES_MB_S: f64 = 3000.0;

/// Both.
#[derive(Clone, Debug, Default)]
pub struct Starved {
    looked_s: f64,
    without: u32,
    turns_s: f64,
    turns: u32,
    rested: bool,
    said_turns: bool,
}

impl Starved {
    /// Takes in one sample that counts as steady training.
    pub fn sample(&mut self, sample: &Sample, window: &Window, v: &View<'_>, book: &mut Book) {
        let own_s = v.s.now.own_s;
        let rests = window.rests_now();
        self.turns += u32::from(rests && !self.rested);
        self.rested = rests;
        if own_s - self.looked_s < EVERY_S || !window.is_full() {
            return;
        }
        let passed = (own_s - self.looked_s).min(2.0 * EVERY_S);
        self.looked_s = own_s;
        let Some(load) = window.mean(|t| t.load) else {
            return;
        };
        let moves = window.advances() > 0 || v.s.steps.median() >= 60.0;
        let turns = load < BUSY_PCT && moves && takes_turns(window);
        let swings = load < BUSY_PCT && moves && window.swings();
        self.cpu_bound(turns, load, passed, window, v, book);
        let cause = cause(window).filter(|_| swings && !turns);
        match cause {
            Some(cause) => self.raise(cause, load, sample, window, v, book),
            None if book.holds(STARVED) && (load > OVER_PCT || !swings || turns) => {
                self.without += 1;
                if self.without >= ENDS {
                    book.conclude(STARVED, evidence(load, window));
                }
            }
            None => {}
        }
    }

    fn raise(
        &mut self,
        cause: &'static str,
        load: f64,
        sample: &Sample,
        window: &Window,
        v: &View<'_>,
        book: &mut Book,
    ) {
        self.without = 0;
        if book.holds(STARVED) {
            return;
        }
        let since = (v.s.now.elapsed_s - window.age_s()).max(0.0);
        let rate = sample.progress.rate;
        let claim = Claim::new(STARVED, Severity::Warning, since)
            .cause(cause)
            .evidence(evidence(load, window).num("rate", rate))
            .advice(advice(cause, v.framework()));
        book.raise(claim);
    }

    /// Said once a run: that the processors have their turn is how such a job works.
    fn cpu_bound(
        &mut self,
        turns: bool,
        load: f64,
        passed: f64,
        window: &Window,
        v: &View<'_>,
        book: &mut Book,
    ) {
        if self.turns_s <= 0.0 {
            self.turns = 0;
        }
        self.turns_s = (self.turns_s + if turns { passed } else { -passed }).clamp(0.0, TURNS_S);
        if self.turns_s >= TURNS_S && self.turns >= TURNS && !self.said_turns {
            self.said_turns = true;
            let since = (v.s.now.elapsed_s - TURNS_S).max(0.0);
            let claim = Claim::new(CPU_BOUND, Severity::Note, since)
                .evidence(evidence(load, window).num("rest_s", window.rest_s()))
                .advice("The processors set the pace, and the GPUs wait for their turn: more (or vectorised) environments or workers on more cores, or a smaller GPU for this job.");
            book.raise(claim);
        } else if self.turns_s <= 0.0 && book.holds(CPU_BOUND) {
            book.conclude(CPU_BOUND, evidence(load, window));
        }
    }
}

/// Whether processors and GPUs work one after the other: long rests of the GPUs in which the
/// processors do more than while they work. A loader that is too slow works all the time.
fn takes_turns(window: &Window) -> bool {
    let rests = window.mean_where(|t| t.load < RESTS_PCT, |t| t.cores);
    let works = window.mean_where(|t| t.load >= RESTS_PCT, |t| t.cores);
    let (Some(rests), Some(works)) = (rests, works) else {
        return false;
    };
    window.rest_s() >= TURN_S && rests >= 1.0_f64.max(1.5 * works)
}

/// What slows the batches, where anything tells.
fn cause(window: &Window) -> Option<&'static str> {
    let least = |value: Option<f64>, limit: f64| value.is_some_and(|x| x > limit);
    let waits = window.share(|t| t.disk > 0.0) > DISK_SHARE;
    if waits || least(window.mean(|t| t.pressure), PRESSURE_PCT) {
        return Some("io");
    }
    let others = window.mean(|t| t.cores - t.main);
    let workers = window
        .mean(|t| t.workers)
        .map_or(least(others, 1.5), |n| n >= 0.9);
    if workers
        || least(window.mean(|t| t.host), HOST_PCT)
        || least(window.mean(|t| t.held_back), HELD_BACK_PCT)
    {
        return Some("cpu");
    }
    if least(window.mean(|t| t.pcie), COPIES_MB_S) {
        return Some("transfer");
    }
    least(window.mean(|t| t.main), FULL_CORE).then_some("python")
}

fn evidence(load: f64, window: &Window) -> Evidence {
    Evidence::new()
        .num("gpu_util_pct", load)
        .num("rests_pct", 100.0 * window.share(|t| t.load < RESTS_PCT))
        .num("cpu_cores", window.mean(|t| t.cores))
        .num("main_cores", window.mean(|t| t.main))
        .num("busy_workers", window.mean(|t| t.workers))
        .num("disk_wait_pct", 100.0 * window.share(|t| t.disk > 0.0))
        .num("io_pressure_pct", window.mean(|t| t.pressure))
        .num("pcie_mb_s", window.mean(|t| t.pcie))
}

fn advice(cause: &str, framework: Option<&str>) -> String {
    let cure = match (cause, framework) {
        ("io", Some("tensorflow")) => {
            "Reading is too slow: copy the data to local disk, pack it into TFRecord files read by `interleave(num_parallel_calls=tf.data.AUTOTUNE)`, or keep it with `.cache()`."
        }
        ("io", _) => {
            "Reading is too slow: copy the data to local disk or memory, pack many small files into few large ones (WebDataset, LMDB), and let workers read ahead (`prefetch_factor`)."
        }
        ("transfer", Some("tensorflow")) => {
            "The bus is full of copies: keep augmentation and data on the GPU, send uint8 and cast there, and `prefetch_to_device`."
        }
        ("transfer", _) => {
            "The bus is full of copies: `pin_memory=True` with `.to(device, non_blocking=True)`, few large copies instead of many small ones, uint8 cast on the GPU."
        }
        ("python", Some("tensorflow")) => {
            "The main process prepares the batches itself: build the input with tf.data (`map(..., num_parallel_calls=tf.data.AUTOTUNE)`, `prefetch(tf.data.AUTOTUNE)`) instead of a Python generator."
        }
        ("python", Some("jax")) => {
            "The main process sets the pace: `jax.jit` the whole step, and load batches in other processes (grain, a PyTorch DataLoader) with a prefetch to the device."
        }
        ("python", _) => {
            "The main process prepares the batches itself: DataLoader(num_workers=4 or more, persistent_workers=True, pin_memory=True), and no `.item()` or printing in each step."
        }
        (_, Some("tensorflow")) => {
            "The input pipeline's processors are too slow: `map(..., num_parallel_calls=tf.data.AUTOTUNE)`, `.cache()` before what is random, `.prefetch(tf.data.AUTOTUNE)` at the end; or give the job more cores."
        }
        (_, Some("pytorch")) => {
            "The loader's workers are too slow: more `num_workers` and cores, cheaper or GPU augmentation (kornia, DALI), or data that is decoded once and kept."
        }
        _ => {
            "The loader's workers are too slow: more of them (num_workers of a DataLoader, num_parallel_calls of tf.data) on more cores, reading ahead (prefetch), or data that is decoded once and kept (cache)."
        }
    };
    format!("{cure} {}", confirm(framework))
}

/// How to make sure, with what the framework has, every 50 to 100 steps.
fn confirm(framework: Option<&str>) -> &'static str {
    match framework {
        Some("tensorflow") => {
            "To confirm: model.fit(..., callbacks=[tf.keras.callbacks.TensorBoard(log_dir, profile_batch=(50, 60))])."
        }
        Some("jax") => {
            "To confirm: `with jax.profiler.trace('/tmp/trace'):` around ten steps after the 50th."
        }
        Some("pytorch") => {
            "To confirm: torch.profiler.profile(schedule=torch.profiler.schedule(wait=50, warmup=2, active=5)), with prof.step() after each batch."
        }
        _ => {
            "To confirm: the framework's profiler (torch.profiler, profile_batch of TensorBoard's callback, jax.profiler) over ten steps after the 50th."
        }
    }
}
