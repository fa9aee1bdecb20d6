//! `imbalanced`: GPUs of one job that do unequal work.
//!
//! Owns which GPUs take part, when they are compared, and which of them holds the others up.
//! What is compared are means over a minute and their medians over five: a job that works in
//! bursts has no median second. Time in which no step is made (an evaluation on one rank, a
//! checkpoint) is left out.

use std::collections::VecDeque;

use crate::model::{Limit, Sample, Severity, Throttle};

use super::finding::{Book, Claim, Evidence};
use super::gauge::{Does, Gauge};
use super::heat::{THROTTLED, is_about};
use super::view::View;

/// The finding's name.
pub const IMBALANCED: &str = "imbalanced";

/// The window, and so many pieces of it, seconds.
const WINDOW_S: f64 = 300.0;
const PIECES: usize = 5;
/// So many windows where steps aren't seen to be made.
const UNSEEN: usize = 3;
/// In such a share of the pieces it must be so, and still be so: GPUs that take turns are even.
const PART: (f64, f64) = (1.0, 0.6);
/// Use apart, points; memory apart, points of the card, with at least so much on one of them.
const USE: Apart = Apart(30.0, 20.0);
const MEMORY: Apart = Apart(30.0, 20.0);
const MEMORY_LEAST: f64 = 50.0;
/// The clock of the slow one, as a share of its peers'.
const CLOCK: (f64, f64) = (0.85, 0.92);
/// Less use than its peers by so many points: it isn't what holds them up.
const LAZY_PCT: f64 = 10.0;
/// The peers wait in loops for such a share of the time, and the slow one for no more than this.
const SPINS: (f64, f64) = (0.25, 0.05);
/// The power of the slow one is higher by so many percent of the limit.
const POWER: Apart = Apart(10.0, 5.0);
/// A GPU takes part with so much use, or such a share of the memory that another holds.
const TAKES_PART: (f64, f64) = (5.0, 0.10);
/// Steps further apart don't show whether any is made, seconds.
const OFTEN_S: f64 = 60.0;
/// Without a step for so many usual gaps, and seconds, none is being made.
const PAUSE: (f64, f64) = (3.0, 5.0);

/// The bit of `model::Throttle` of a GPU that rests.
const IDLE: u64 = 0x1;

/// Apart by so much, and no longer by so much.
#[derive(Clone, Copy, Debug)]
struct Apart(f64, f64);

impl Apart {
    fn least(self, holds: bool) -> f64 {
        if holds { self.1 } else { self.0 }
    }
}

/// A mean that readings may be missing from.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    seconds: f64,
    sum: f64,
}

impl Sum {
    fn add(&mut self, dt: f64, value: Option<f64>) {
        if let Some(value) = value {
            self.seconds += dt;
            self.sum += dt * value;
        }
    }

    /// Known for at least half of the piece.
    fn mean(self, piece_s: f64) -> Option<f64> {
        (self.seconds > 0.0 && self.seconds >= piece_s / 2.0).then(|| self.sum / self.seconds)
    }
}

/// What is compared of one GPU over a piece of time.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    use_pct: Sum,
    memory_pct: Sum,
    power_pct: Sum,
    clock_mhz: Sum,
    spins: Sum,
}

/// Means of it.
#[derive(Clone, Copy, Debug, Default)]
struct Means {
    use_pct: Option<f64>,
    memory_pct: Option<f64>,
    power_pct: Option<f64>,
    clock_mhz: Option<f64>,
    spins: Option<f64>,
}

/// One GPU.
#[derive(Clone, Debug, Default)]
struct Card {
    label: String,
    product: Option<String>,
    now: Sums,
    pieces: VecDeque<Means>,
    held: bool,
    held_mib: Option<f64>,
}

impl Card {
    /// The median over the last pieces, where all are known.
    fn median(&self, pieces: usize, of: impl Fn(&Means) -> Option<f64>) -> Option<f64> {
        let from = self.pieces.len().checked_sub(pieces)?;
        let mut values = self
            .pieces
            .range(from..)
            .map(of)
            .collect::<Option<Vec<f64>>>()?;
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// This one holds the others up.
    Straggler(usize),
    /// The first does more than the second.
    Uneven(usize, usize),
}

/// The family.
#[derive(Clone, Debug)]
pub struct Uneven {
    piece_s: f64,
    passed: f64,
    since_s: VecDeque<f64>,
    began_s: Option<f64>,
    cards: Vec<Card>,
    /// Steps are shown, often enough to tell whether any is being made.
    steps: bool,
    holds: bool,
}

impl Uneven {
    /// With the settings in this book.
    pub fn new(book: &Book) -> Self {
        let window_s = match book.settings(IMBALANCED).after {
            Limit::Auto => WINDOW_S,
            Limit::After(d) => d.as_secs_f64(),
        };
        Self {
            piece_s: window_s / PIECES as f64,
            passed: 0.0,
            since_s: VecDeque::new(),
            began_s: None,
            cards: Vec::new(),
            steps: false,
            holds: false,
        }
    }

    /// Takes in one sample.
    pub fn sample(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        let dt = v.s.seen_s();
        if v.s.gpus.len() < 2 || dt <= 0.0 || !counts(v) {
            return;
        }
        if shows_steps(v) && !self.steps {
            // What was loaded before it trained is another matter.
            *self = Self {
                steps: true,
                holds: self.holds,
                ..Self::new(book)
            };
        }
        let known = self.since_s.len();
        self.cards.resize_with(v.s.gpus.len(), || Card {
            pieces: vec![Means::default(); known].into(),
            ..Card::default()
        });
        self.look(dt, sample, v);
        if self.passed >= self.piece_s {
            self.piece();
            self.judge(v, book);
        }
    }

    fn look(&mut self, dt: f64, sample: &Sample, v: &View<'_>) {
        self.began_s.get_or_insert(v.s.now.elapsed_s - dt);
        self.passed += dt;
        for (at, gpu, gauge) in v.s.rows(sample) {
            let card = &mut self.cards[at];
            card.held = gauge.held == Some(true);
            card.held_mib = gauge.held_mib.or(card.held_mib);
            if card.label.is_empty() {
                card.label = gpu.label();
                card.product = v.facts.product(gpu.index).map(str::to_owned);
            }
            let total = gpu.mem_total_mib.get().or_else(|| v.facts.memory_mib(gpu));
            let memory = gauge.held_mib.zip(total.filter(|t| *t > 0.0));
            let now = &mut card.now;
            now.use_pct.add(dt, gauge.use_pct);
            now.memory_pct
                .add(dt, memory.map(|(mib, total)| 100.0 * mib / total));
            if gauge.is_shared() {
                continue;
            }
            let limit = gpu.power_limit_w.get();
            let limit = limit.or_else(|| v.facts.power_limit_w(gpu.index));
            let power = gpu.power_w.get().zip(limit.filter(|w| *w > 0.0));
            now.power_pct
                .add(dt, power.map(|(watts, limit)| 100.0 * watts / limit));
            now.spins.add(dt, spins(gauge));
            let idle = gpu.throttle.get().is_some_and(is_idle) || gauge.does == Does::Rests;
            now.clock_mhz
                .add(dt, gpu.sm_clock_mhz.get().filter(|_| !idle));
        }
    }

    /// A piece is over.
    fn piece(&mut self) {
        let passed = std::mem::take(&mut self.passed);
        let began_s = self.began_s.take().unwrap_or_default();
        let most = PIECES * UNSEEN;
        for card in &mut self.cards {
            let sums = std::mem::take(&mut card.now);
            if card.pieces.len() == most {
                card.pieces.pop_front();
            }
            card.pieces.push_back(Means {
                use_pct: sums.use_pct.mean(passed),
                memory_pct: sums.memory_pct.mean(passed),
                power_pct: sums.power_pct.mean(passed),
                clock_mhz: sums.clock_mhz.mean(passed),
                spins: sums.spins.mean(passed),
            });
        }
        if self.since_s.len() == most {
            self.since_s.pop_front();
        }
        self.since_s.push_back(began_s);
    }

    fn judge(&mut self, v: &View<'_>, book: &mut Book) {
        let pieces = if self.holds || self.steps {
            PIECES
        } else {
            PIECES * UNSEEN
        };
        let Some(began) = self.since_s.len().checked_sub(pieces) else {
            return;
        };
        let since_s = self.since_s[began];
        let parts = self.parts(pieces);
        let found = self
            .straggler(&parts, pieces)
            .map(What::Straggler)
            .or_else(|| {
                let (high, low) = self.uneven(&parts, pieces)?;
                Some(What::Uneven(high, low))
            });
        // Each model of a server or a notebook has its own work.
        let exempt = v.is_interactive() || v.is_serving();
        match found {
            Some(_) if exempt => {}
            Some(found) if !self.holds => self.tell(found, since_s, pieces, v, book),
            None if self.holds => {
                self.holds = false;
                book.clear(IMBALANCED);
            }
            _ => {}
        }
    }

    /// The GPUs that take part: a context alone that another rank or library has made doesn't.
    fn parts(&self, pieces: usize) -> Vec<usize> {
        let held = |card: &&Card| card.held;
        let most = self.cards.iter().filter(held).filter_map(|c| c.held_mib);
        let most = most.fold(0.0, f64::max);
        let takes_part = |card: &Card| {
            let used = card
                .median(pieces, |m| m.use_pct)
                .is_some_and(|pct| pct >= TAKES_PART.0);
            let holds = card.held_mib.is_none_or(|mib| mib >= TAKES_PART.1 * most);
            card.held && card.pieces.len() >= pieces && (used || holds)
        };
        let cards = self.cards.iter().enumerate();
        cards
            .filter(|(_, card)| takes_part(card))
            .map(|(at, _)| at)
            .collect()
    }

    /// The two that are furthest apart in use, else in memory.
    fn uneven(&self, parts: &[usize], pieces: usize) -> Option<(usize, usize)> {
        let by_use = self.apart(parts, pieces, USE.least(self.holds), |m| m.use_pct);
        by_use.or_else(|| {
            let least = MEMORY.least(self.holds);
            let pair = self.apart(parts, pieces, least, |m| m.memory_pct)?;
            let most = self.cards[pair.0].median(pieces, |m| m.memory_pct)?;
            (most > MEMORY_LEAST).then_some(pair)
        })
    }

    /// The highest and the lowest, if they are apart by more than this in every piece.
    fn apart(
        &self,
        parts: &[usize],
        pieces: usize,
        least: f64,
        of: impl Fn(&Means) -> Option<f64> + Copy,
    ) -> Option<(usize, usize)> {
        let medians = parts
            .iter()
            .map(|at| Some((*at, self.cards[*at].median(pieces, of)?)));
        let medians = medians.collect::<Option<Vec<_>>>()?;
        let high = medians
            .iter()
            .copied()
            .reduce(|a, b| if b.1 > a.1 { b } else { a })?;
        let low = medians
            .iter()
            .copied()
            .reduce(|a, b| if b.1 < a.1 { b } else { a })?;
        let in_all = self.in_all(pieces, |i| {
            let value = |at: usize| of(&self.cards[at].pieces[i]);
            Some(value(high.0)? - value(low.0)? > least)
        });
        (high.1 - low.1 > least && in_all).then_some((high.0, low.0))
    }

    /// The one for which the others wait.
    fn straggler(&self, parts: &[usize], pieces: usize) -> Option<usize> {
        if parts.len() < 2 {
            return None;
        }
        let slow =
            |at: &usize| self.is_slow(*at, parts, pieces) || self.is_waited_for(*at, parts, pieces);
        parts.iter().copied().find(slow)
    }

    /// Its clock is below its peers', which are of the same kind.
    fn is_slow(&self, at: usize, parts: &[usize], pieces: usize) -> bool {
        let product = &self.cards[at].product;
        let same = parts.iter().all(|p| self.cards[*p].product == *product);
        let least = if self.holds { CLOCK.1 } else { CLOCK.0 };
        same && self.in_all(pieces, |i| {
            let own = &self.cards[at].pieces[i];
            // One that has less to do runs slower for that.
            let peers = self.peers(at, parts, i, |m| m.use_pct);
            let lazy = own
                .use_pct
                .zip(peers)
                .is_some_and(|(own, peers)| own < peers - LAZY_PCT);
            Some(!lazy && own.clock_mhz? < least * self.peers(at, parts, i, |m| m.clock_mhz)?)
        })
    }

    /// It works, with more power, while its peers wait in loops.
    fn is_waited_for(&self, at: usize, parts: &[usize], pieces: usize) -> bool {
        let least = POWER.least(self.holds);
        self.in_all(pieces, |i| {
            let own = &self.cards[at].pieces[i];
            let waits = self.peers(at, parts, i, |m| m.spins)? >= SPINS.0;
            let power = own.power_pct? - self.peers(at, parts, i, |m| m.power_pct)?;
            Some(own.spins? <= SPINS.1 && waits && power > least)
        })
    }

    /// The peers' median in a piece, where all are known.
    fn peers(
        &self,
        at: usize,
        parts: &[usize],
        piece: usize,
        of: impl Fn(&Means) -> Option<f64>,
    ) -> Option<f64> {
        let peers = parts.iter().filter(|p| **p != at);
        let values = peers.map(|p| of(&self.cards[*p].pieces[piece]));
        let mut values = values.collect::<Option<Vec<f64>>>()?;
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// Whether it is so in all of the last pieces; once it holds, in most of them. What can't be
    /// told isn't so.
    fn in_all(&self, pieces: usize, is: impl Fn(usize) -> Option<bool>) -> bool {
        let all = self.since_s.len();
        let Some(from) = all.checked_sub(pieces) else {
            return false;
        };
        let n = (from..all).filter(|i| is(*i) == Some(true)).count();
        n as f64 >= if self.holds { PART.1 } else { PART.0 } * pieces as f64
    }

    fn tell(&mut self, found: What, since_s: f64, pieces: usize, v: &View<'_>, book: &mut Book) {
        self.holds = true;
        let claim = match found {
            What::Straggler(at) => self.of_straggler(at, pieces, since_s, book),
            What::Uneven(high, low) => {
                let (more, less) = (&self.cards[high], &self.cards[low]);
                Claim::new(IMBALANCED, Severity::Warning, since_s)
                    .cause("uneven")
                    .evidence(
                        Evidence::new()
                            .gpu("gpu", &more.label)
                            .gpu("other_gpu", &less.label)
                            .num("use_pct", more.median(pieces, |m| m.use_pct))
                            .num("other_use_pct", less.median(pieces, |m| m.use_pct))
                            .num("mem_pct", more.median(pieces, |m| m.memory_pct))
                            .num("other_mem_pct", less.median(pieces, |m| m.memory_pct)),
                    )
                    .advice(advice(v.framework()))
            }
        };
        book.raise(claim);
    }

    fn of_straggler(&self, at: usize, pieces: usize, since_s: f64, book: &Book) -> Claim {
        let label = &self.cards[at].label;
        let peers = |of: fn(&Means) -> Option<f64>| {
            let others = self.cards.iter().filter(|c| c.held && c.label != *label);
            let mut all: Vec<f64> = others.filter_map(|c| c.median(pieces, of)).collect();
            all.sort_unstable_by(f64::total_cmp);
            all.get(all.len() / 2).copied()
        };
        let own = |of: fn(&Means) -> Option<f64>| self.cards[at].median(pieces, of);
        let waits = peers(|m| m.spins).map(|share| 100.0 * share);
        let throttled = book.told(THROTTLED).filter(|f| is_about(f, label));
        Claim::new(IMBALANCED, Severity::Warning, since_s)
            .cause("straggler")
            .because(throttled.map(|f| f.name.clone()))
            .evidence(
                Evidence::new()
                    .gpu("gpu", label)
                    .num("clock_mhz", own(|m| m.clock_mhz))
                    .num("peers_clock_mhz", peers(|m| m.clock_mhz))
                    .num("power_pct", own(|m| m.power_pct))
                    .num("peers_power_pct", peers(|m| m.power_pct))
                    .num("peers_wait_pct", waits),
            )
            .advice(format!(
                "The others wait for GPU {label}: look at its clocks, temperature and power limit (`nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE -i {label}`) and at what its rank does besides; leave it out if it stays slow."
            ))
    }
}

/// Whether steps are shown so often that one is missed when none is made.
fn shows_steps(v: &View<'_>) -> bool {
    v.s.advances.trains && v.s.steps.gaps() >= 3 && v.s.steps.median() <= OFTEN_S
}

/// Whether the job does now what it does all the time.
fn counts(v: &View<'_>) -> bool {
    if v.p.main_ended_s.is_some() {
        return false;
    }
    if shows_steps(v) {
        return v.s.progress_age() <= PAUSE.1.max(PAUSE.0 * v.s.steps.median());
    }
    v.s.gpu_active
}

/// 1 where it waits in a loop, 0 where it doesn't.
fn spins(gauge: &Gauge) -> Option<f64> {
    let known = gauge.does != Does::Unknown;
    known.then(|| f64::from(u8::from(gauge.does == Does::Spins || gauge.waits)))
}

fn is_idle(reasons: Throttle) -> bool {
    reasons.0 & IDLE != 0
}

fn advice(framework: Option<&str>) -> &'static str {
    match framework {
        Some("pytorch") => {
            "The GPUs do unequal work: DistributedDataParallel in place of nn.DataParallel, which gathers on the first GPU; with pipelines or device_map=\"auto\" move layers from the full stage to the others."
        }
        Some("tensorflow") => {
            "The GPUs do unequal work: make the model and the dataset under tf.distribute.MirroredStrategy().scope(), which splits every batch evenly, and set CUDA_VISIBLE_DEVICES to those that are meant."
        }
        Some("jax") => {
            "The GPUs do unequal work: shard the batch over all devices (jax.sharding.NamedSharding), and look with jax.debug.visualize_array_sharding at what lies where."
        }
        _ => {
            "The GPUs do unequal work: split every batch evenly over them, and move layers of a pipeline from the full stage to the others."
        }
    }
}
