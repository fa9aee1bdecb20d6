//! `memory-leak`: memory that grows from epoch to epoch, on a GPU or on the host.
//!
//! Owns whose memory is looked at, what a block is (an epoch, else ten minutes), how far it is
//! to the limit, and how serious that makes it. Whether memory grows is `series`'s.

use crate::model::{Event, Limit, Logged, Phase, ProgressChange, Sample, Severity};

use super::finding::{Book, Claim, Evidence};
use super::near_oom::NEAR_OOM;
use super::series::{Series, Trend};
use super::signals::Moment;
use super::view::View;

/// The finding's name.
pub const LEAK: &str = "memory-leak";

/// So much of the start is left out: epochs, and hours where none are shown.
const START_EPOCHS: f64 = 2.0;
const START_H: f64 = 1.0 / 3.0;
/// A block without epochs, seconds.
const BLOCK_S: f64 = 600.0;
/// Shorter epochs are put together, seconds.
const SHORT_S: f64 = 60.0;
/// An epoch that takes so long is none to wait for, seconds.
const LONG_S: f64 = 3.0 * 3600.0;
/// A count that begins anew after fewer steps isn't a pass over the data.
const PASS: f64 = 10.0;
/// Further from the limit it is a note, hours.
const FAR_H: f64 = 24.0;
/// Memory that falls below this share of what it was is another program's, or the next trial's.
const RELEASED: f64 = 0.5;
/// Without epochs a buffer of the host that fills looks the same: until this share of the room
/// is taken it is a note.
const FILLED: f64 = 0.2;
/// Said again when the limit has come so much closer.
const CLOSER: f64 = 0.5;

/// Epochs as they are shown.
#[derive(Clone, Copy, Debug, Default)]
struct Laps {
    shown: Option<f64>,
    began: Moment,
    /// Whether one was seen to end.
    any: bool,
}

/// Epochs that aren't shown by a number: their ends are told, or steps are counted anew.
#[derive(Clone, Copy, Debug, Default)]
struct Passes {
    ended: f64,
    step: f64,
    /// A number was shown once: what it is without one isn't known.
    numbered: bool,
}

impl Passes {
    /// The number of the epoch, as it is shown or counted.
    fn look(&mut self, epoch: Option<f64>, step: Option<f64>) -> Option<f64> {
        self.numbered |= epoch.is_some();
        if self.numbered {
            return epoch;
        }
        if let Some(step) = step {
            self.ended += f64::from(u8::from(self.step >= PASS && step < self.step / 2.0));
            self.step = step;
        }
        (self.ended > 0.0).then_some(self.ended)
    }
}

/// What became of the epoch.
enum Lap {
    Same,
    /// So many are over, and took so many seconds.
    Over(f64, f64),
    /// It counts anew.
    Anew,
}

impl Laps {
    fn look(&mut self, epoch: Option<f64>, now: Moment) -> Lap {
        let Some(epoch) = epoch.map(f64::floor).filter(|e| e.is_finite()) else {
            return Lap::Same;
        };
        let shown = self.shown.unwrap_or(epoch);
        let (epochs, seconds) = (epoch - shown, now.own_s - self.began.own_s);
        if self.shown.is_some() && (epochs == 0.0 || epochs > 0.0 && seconds < SHORT_S) {
            return Lap::Same;
        }
        let first = self.shown.replace(epoch).is_none();
        self.began = now;
        if first || epochs < 0.0 {
            self.any = false;
            return Lap::Anew;
        }
        self.any = true;
        Lap::Over(epochs, seconds)
    }
}

/// One way to divide a memory's time.
#[derive(Clone, Debug)]
struct Blocks {
    series: Series,
    range: Option<(f64, f64)>,
    since_s: f64,
}

impl Blocks {
    fn new(skipped: f64) -> Self {
        Self {
            series: Series::new(skipped),
            range: None,
            since_s: 0.0,
        }
    }

    fn look(&mut self, mib: f64) {
        let (low, high) = self.range.unwrap_or((mib, mib));
        self.range = Some((low.min(mib), high.max(mib)));
    }

    fn close(&mut self, units: f64, seconds: f64, now_s: f64) {
        let range = self.range.take();
        self.series.push(range, units, seconds, self.since_s);
        self.since_s = now_s;
    }

    fn reset(&mut self, now_s: f64) {
        self.series.reset();
        self.range = None;
        self.since_s = now_s;
    }
}

/// One memory: of the job on a GPU, or on the host.
#[derive(Clone, Debug)]
struct Held {
    epochs: Blocks,
    hours: Blocks,
    below: u8,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            epochs: Blocks::new(START_EPOCHS),
            hours: Blocks::new(START_H),
            below: 0,
        }
    }
}

impl Held {
    fn look(&mut self, mib: Option<f64>, now_s: f64) {
        let Some(mib) = mib else { return };
        let known = [&self.epochs, &self.hours];
        let before = known.into_iter().find_map(|b| b.series.last_low());
        let released = before.is_some_and(|low| mib < RELEASED * low);
        self.below = if released { self.below + 1 } else { 0 };
        // One reading alone may be wrong.
        if self.below == 1 {
            return;
        }
        if released {
            self.below = 0;
            self.epochs.reset(now_s);
            self.hours.reset(now_s);
        }
        self.epochs.look(mib);
        self.hours.look(mib);
    }
}

/// Whose memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Gpu(usize),
    Host,
}

/// A leak, and what it means.
#[derive(Clone, Debug)]
struct Found {
    whose: Whose,
    by_epoch: bool,
    trend: Trend,
    limit_mib: Option<f64>,
    hours: Option<f64>,
    severity: Severity,
}

/// The family.
#[derive(Clone, Debug)]
pub struct Leak {
    on: bool,
    after: f64,
    laps: Laps,
    passes: Passes,
    hour: Option<Moment>,
    gpus: Vec<Held>,
    host: Held,
    /// More than its limit was counted: pages that processes share were counted for each.
    overcounted: bool,
    told: Option<Found>,
}

impl Leak {
    /// With the settings in this book.
    pub fn new(book: &Book) -> Self {
        let settings = book.settings(LEAK);
        let after = match settings.after {
            Limit::Auto => 0.0,
            Limit::After(d) => d.as_secs_f64(),
        };
        Self {
            on: settings.on,
            after,
            laps: Laps::default(),
            passes: Passes::default(),
            hour: None,
            gpus: Vec::new(),
            host: Held::default(),
            overcounted: false,
            told: None,
        }
    }

    /// Takes in an event: the end of an epoch.
    pub fn event(&mut self, logged: &Logged) {
        let ended = matches!(
            &logged.event,
            Event::Progress { change: ProgressChange::EpochEnd, phase, .. } if *phase != Phase::Eval
        );
        if ended {
            self.passes.ended += 1.0;
            self.passes.step = 0.0;
        }
    }

    /// Takes in one sample.
    pub fn sample(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        if !self.on {
            return;
        }
        self.gpus.resize_with(v.s.gpus.len(), Held::default);
        let ended = self.close(v);
        let now_s = v.s.now.elapsed_s;
        for (at, _, gauge) in v.s.rows(sample) {
            self.gpus[at].look(gauge.held_mib, now_s);
        }
        let host = host_mib(sample);
        let limit = sample.host.mem_limit_mib.get();
        self.overcounted |= host.zip(limit).is_some_and(|(mib, limit)| mib > limit);
        self.host.look(host, now_s);
        if ended {
            self.judge(sample, v, book);
        }
    }

    /// Closes the blocks that are over; whether there was one.
    fn close(&mut self, v: &View<'_>) -> bool {
        let now = v.s.now;
        let epoch = self.passes.look(v.s.epoch, v.s.step);
        let lap = self.laps.look(epoch, now);
        match lap {
            Lap::Same => {}
            Lap::Over(epochs, seconds) => self
                .all()
                .for_each(|held| held.epochs.close(epochs, seconds, now.elapsed_s)),
            Lap::Anew => self.all().for_each(|held| held.epochs.reset(now.elapsed_s)),
        }
        let since = *self.hour.get_or_insert(now);
        if since == now {
            self.all()
                .for_each(|held| held.hours.since_s = now.elapsed_s);
        }
        let seconds = now.own_s - since.own_s;
        if seconds >= BLOCK_S {
            self.hour = Some(now);
            self.all()
                .for_each(|held| held.hours.close(seconds / 3600.0, seconds, now.elapsed_s));
        }
        seconds >= BLOCK_S || !matches!(lap, Lap::Same)
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Held> {
        self.gpus.iter_mut().chain([&mut self.host])
    }

    fn judge(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        if let Some(told) = &self.told
            && !self.blocks(told).goes_on(&told.trend)
        {
            self.told = None;
            book.clear(LEAK);
        }
        let gpus = v.s.rows(sample).filter_map(|(at, gpu, gauge)| {
            let total = gpu.mem_total_mib.get().or(v.facts.memory_mib(gpu));
            let limit = total.map(|mib| mib - gauge.others_mib.unwrap_or_default());
            self.find(Whose::Gpu(at), limit, sample, v)
        });
        let limit = sample.host.mem_limit_mib.get();
        let host = (!self.overcounted).then(|| self.find(Whose::Host, limit, sample, v));
        // The one that reaches its limit first; of equals the first.
        let hours = |f: &Found| f.hours.unwrap_or(f64::INFINITY);
        let worst = gpus
            .chain(host.flatten())
            .reduce(|a, b| if hours(&b) < hours(&a) { b } else { a });
        if let Some(found) = worst {
            self.tell(found, sample, v, book);
        }
    }

    fn find(
        &self,
        whose: Whose,
        limit_mib: Option<f64>,
        sample: &Sample,
        v: &View<'_>,
    ) -> Option<Found> {
        let held = self.held(whose);
        let by_epoch = self.laps.any;
        let trend = if by_epoch {
            held.epochs.series.trend()
        } else {
            None
        };
        let (by_epoch, trend) = match trend {
            Some(trend) => (true, trend),
            None if self.is_without_epochs(whose, sample, v) => (false, held.hours.series.trend()?),
            None => return None,
        };
        if v.s.now.elapsed_s - trend.since_s < self.after {
            return None;
        }
        let units = limit_mib.map(|limit| (limit - trend.high).max(0.0) / trend.per_unit);
        let hours = units.map(|units| units * trend.unit_s / 3600.0);
        let fills = limit_mib
            .is_none_or(|limit| trend.high - trend.from < FILLED * (limit - trend.from))
            && whose == Whose::Host
            && !by_epoch;
        let severity = if hours.is_some_and(|h| h <= FAR_H) && !fills {
            Severity::Warning
        } else {
            Severity::Note
        };
        Some(Found {
            whose,
            by_epoch,
            trend,
            limit_mib,
            hours,
            severity,
        })
    }

    /// Whether ten minutes are a block: where no epochs are shown, or none to wait for. In an
    /// epoch's course the host may gather what it drops at its end.
    fn is_without_epochs(&self, whose: Whose, sample: &Sample, v: &View<'_>) -> bool {
        let lasts = v.s.now.own_s - self.laps.began.own_s;
        self.laps.shown.is_none()
            || !self.laps.any && sample.progress.epochs == Some(1.0)
            || whose != Whose::Host && lasts >= LONG_S
    }

    fn tell(&mut self, found: Found, sample: &Sample, v: &View<'_>, book: &mut Book) {
        let name = |gpu: usize| {
            let mut rows = v.s.rows(sample);
            rows.find(|(at, ..)| *at == gpu)
                .map(|(_, gpu, _)| gpu.label())
        };
        let label = match found.whose {
            Whose::Gpu(at) => name(at),
            Whose::Host => None,
        };
        let evidence = numbers(&found, label.as_deref());
        let Some(told) = &self.told else {
            book.raise(claim(&found, evidence, v, book));
            self.told = Some(found);
            return;
        };
        let same = told.whose == found.whose && told.by_epoch == found.by_epoch;
        let worse = found.severity > told.severity;
        let closer = found
            .hours
            .zip(told.hours)
            .is_some_and(|(now, then)| now < CLOSER * then);
        if worse && !same {
            book.clear(LEAK);
            book.raise(claim(&found, evidence, v, book));
        } else if worse {
            book.worsen(claim(&found, evidence, v, book));
        } else if same && closer {
            book.update(LEAK, evidence);
        } else {
            return;
        }
        self.told = Some(found);
    }

    fn held(&self, whose: Whose) -> &Held {
        match whose {
            Whose::Gpu(at) => &self.gpus[at],
            Whose::Host => &self.host,
        }
    }

    fn blocks(&self, found: &Found) -> &Series {
        let held = self.held(found.whose);
        let blocks = if found.by_epoch {
            &held.epochs
        } else {
            &held.hours
        };
        &blocks.series
    }
}

/// What the job holds of main memory and can't be taken from it: never files' pages.
pub fn host_mib(sample: &Sample) -> Option<f64> {
    // Kernels before 4.5 don't tell shared memory apart.
    let shared = sample.job.shmem_mib.get().unwrap_or_default();
    sample.job.anon_mib.get().map(|anon| anon + shared)
}

fn numbers(found: &Found, gpu: Option<&str>) -> Evidence {
    let trend = &found.trend;
    let evidence = match gpu {
        Some(label) => Evidence::new().gpu("gpu", label),
        None => Evidence::new(),
    };
    evidence
        .num("mib_per_epoch", found.by_epoch.then_some(trend.per_unit))
        .num("mib_per_hour", trend.per_unit * 3600.0 / trend.unit_s)
        .num("hours_to_limit", found.hours)
        .num("mem_mib", trend.high)
        .num("limit_mib", found.limit_mib)
}

fn claim(found: &Found, evidence: Evidence, v: &View<'_>, book: &Book) -> Claim {
    let on_host = found.whose == Whose::Host;
    // Memory that ran up faster than an epoch can show was told before.
    let before = book.told(NEAR_OOM).filter(|f| {
        let of_gpu = f.cause.as_deref() == Some("gpu");
        of_gpu != on_host
    });
    Claim::new(LEAK, found.severity, found.trend.since_s)
        .cause(if on_host { "host" } else { "gpu" })
        .because(before.map(|f| f.name.clone()))
        .evidence(evidence)
        .advice(advice(on_host, v.framework()))
}

fn advice(on_host: bool, framework: Option<&str>) -> &'static str {
    match (on_host, framework) {
        (false, Some("pytorch")) => {
            "Something keeps tensors: add up loss.item() and not loss, detach() what goes into lists, and don't keep graphs (retain_graph). torch.cuda.memory._record_memory_history() and memory_summary() show who holds them."
        }
        (false, Some("tensorflow")) => {
            "A tf.function that is traced anew for every shape or Python number, and models made in a loop without tf.keras.backend.clear_session(), are the usual causes; tf.config.experimental.get_memory_info('GPU:0') after each epoch tells when it grows."
        }
        (false, Some("jax")) => {
            "Arrays that are kept in Python lists, or a function that is compiled for every new shape: jax.live_arrays() shows what lives, jax_log_compiles tells of compilations, jax.clear_caches() drops them."
        }
        (false, _) => {
            "Something keeps GPU memory from epoch to epoch: results with their graphs in lists, models or compiled functions made in a loop. Print the framework's own count of it after each epoch."
        }
        (true, Some("pytorch")) => {
            "Lists that grow with every step (losses with their graphs, logs) or a cache in the Dataset: numpy arrays in place of Python objects, num_workers=0 for a test, and tracemalloc or memray to see who holds it."
        }
        (true, Some("tensorflow")) => {
            "Datasets, models or tf.function made in a loop, or Dataset.cache() without a file name: make them once, call tf.keras.backend.clear_session() between models, cache into a file; tracemalloc shows who holds it."
        }
        (true, Some("jax")) => {
            "Compiled functions for ever new shapes (jax.clear_caches(), jax_log_compiles) or results that are kept in Python lists: jax.device_get what is needed and drop the rest; tracemalloc shows who holds it."
        }
        (true, _) => {
            "Objects that are kept from epoch to epoch: tracemalloc or memray shows who holds them. Until it is found, a restart from a checkpoint before the limit saves the run."
        }
    }
}
