//! `stalled`: neither progress nor activity (DETECTION section 2).
//!
//! Owns when a silence of both is too long, which signature shortens the wait, and what the
//! processes were doing. Never on silence of the output alone.

use crate::model::{Limit, Sample, Severity};

use super::finding::{Book, Claim, Evidence};
use super::gauge::Does;
use super::signals::Moment;
use super::silence::FLOOR_S;
use super::view::View;

/// The finding's name.
pub const STALLED: &str = "stalled";
/// Activity that is silent so long makes a job that prints once an epoch suspicious, seconds.
const EPOCH_QUIET_S: f64 = 180.0;
/// Who was silent for such a share of the time isn't suspicious by it between his rare words.
const RESTS: f64 = 0.2;
/// Activity that is silent so long makes it unnecessary to wait for a first evaluation.
const SURE_QUIET_S: f64 = 120.0;
/// For so long nothing was done but to keep one core a rank busy: an evaluation on one core, or a
/// loop that waits, seconds. It has to be longer than five of those seen, too.
const LOOPS_S: f64 = 600.0;
/// Sums of milliseconds miss a whole second by their rounding, seconds.
const ROUNDING_S: f64 = 5e-4;
/// Without any progress: limits once a GPU was used, and before, seconds.
const NO_PROGRESS_S: f64 = 600.0;
const NO_GPU_YET_S: f64 = 1800.0;
/// Activity that lasts so long clears a stall although no progress is shown, seconds.
const ACTIVE_AGAIN_S: f64 = 60.0;
/// Waiting for storage without a byte, for so long, is what holds the job up, seconds.
const STORAGE_S: f64 = 30.0;
/// For so long, and it hangs (DETECTION section 3).
const STORAGE_HANGS_S: f64 = 180.0;

/// A stall that holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Advances when it was raised.
    count: u64,
    /// Silence when it was raised, seconds.
    age: f64,
    /// Reminders given.
    reminders: u32,
    /// Activity since, seconds.
    active_s: f64,
    /// One core a rank was busy when it was raised, and that is no activity.
    loops: bool,
}

/// The family.
#[derive(Clone, Debug, Default)]
pub struct Stalled {
    after: Option<f64>,
    held: Option<Held>,
    /// Own seconds of waiting for storage without a byte.
    storage_s: f64,
    /// Samples since the job was last active, and those at which a process ran: who polls now and
    /// then is seen at it now and then.
    quiet: u32,
    ran: u32,
}

impl Stalled {
    /// With the settings in this book.
    pub fn new(book: &Book) -> Self {
        let after = match book.settings(STALLED).after {
            Limit::Auto => None,
            Limit::After(d) => Some(d.as_secs_f64()),
        };
        Self {
            after,
            ..Self::default()
        }
    }

    /// Whether a person gave the limit, which then holds without any progress as well.
    pub fn is_literal(&self) -> bool {
        self.after.is_some()
    }

    /// Takes in one sample. `asks`: the job seems to wait for an answer.
    pub fn sample(&mut self, sample: &Sample, v: &View<'_>, asks: bool, book: &mut Book) {
        let told = || v.p.waits_on("disk") || v.p.waits_on("net-fs");
        let waits = sample.job.n_disk.get().map_or_else(told, |n| n > 0);
        let still = v.s.io_mb_s.is_some_and(|mb| mb < 0.05);
        self.storage_s = if waits && still {
            self.storage_s + v.s.dt
        } else {
            0.0
        };
        if v.s.active {
            (self.quiet, self.ran) = (0, 0);
        } else if let Some((run, disk)) = sample.job.n_run.get().zip(sample.job.n_disk.get()) {
            self.quiet = self.quiet.saturating_add(1);
            self.ran = self.ran.saturating_add(u32::from(run + disk > 0));
        }
        if let Some(held) = self.held {
            self.held = go_on(held, v, book);
        } else if !asks && self.is_due(v, book) && !v.may_be_silent() {
            self.raise(sample, v, book);
        }
    }

    fn is_due(&self, v: &View<'_>, book: &Book) -> bool {
        let (age, quiet) = (v.s.progress_age(), v.s.quiet());
        if let Some(after) = self.after {
            return age.min(quiet) >= after - ROUNDING_S;
        }
        if age <= FLOOR_S || quiet <= FLOOR_S {
            return loops_for_long(v);
        }
        if !v.s.advances.begun {
            return no_progress_due(v, quiet);
        }
        let steps = v.s.steps.limit();
        let longest = v.s.acts.longest();
        let tells = v.s.tells_by_activity() && !v.s.is_blind();
        let reached = |limit: f64| quiet >= limit - ROUNDING_S;
        let sure = tells && reached(SURE_QUIET_S.max(3.0 * longest));
        let limit = if sure { steps.learnt } else { steps.careful };
        if age > limit && quiet > v.s.acts.limit_anytime().learnt {
            return true;
        }
        if !tells {
            return false;
        }
        let rarely = steps.median >= 60.0 && v.s.rests() < RESTS;
        let by_epoch = rarely && reached(EPOCH_QUIET_S.max(3.0 * longest));
        let hangs = self.storage_s >= STORAGE_HANGS_S;
        by_epoch || hangs || signed(v, book, steps.learnt)
    }

    fn raise(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        let s = v.s;
        let cause = self.cause(v);
        let loops = self.after.is_none() && s.quiet() <= FLOOR_S;
        let acted = if loops { s.loops.since } else { s.acted };
        let since = later(s.progressed, acted).elapsed_s;
        let claim = Claim::new(STALLED, Severity::Critical, since)
            .cause(cause)
            .because(explanation(book, since))
            .evidence(evidence(sample, v))
            .advice(advice(cause));
        book.raise(claim);
        self.held = Some(Held {
            count: s.advances.count,
            age: s.progress_age().max(1.0),
            reminders: 0,
            active_s: 0.0,
            loops,
        });
    }

    fn cause(&self, v: &View<'_>) -> &'static str {
        if lost_rank(v) {
            return "lost-rank";
        }
        let one_spins = v.s.gpus.iter().any(|g| g.does == Does::Spins);
        if v.s.spinning.is_some() || one_spins {
            let here = v.s.gpus.len() as u32;
            let elsewhere = v.facts.world.is_some_and(|world| world > here.max(1))
                && v.facts.local_rank.is_some();
            return if elsewhere { "remote" } else { "spin" };
        }
        if self.storage_s >= STORAGE_S.min(self.after.unwrap_or(STORAGE_S)) {
            return "storage";
        }
        let asleep = if self.quiet > 0 {
            self.ran <= self.quiet / 2
        } else {
            v.p.waits_on("futex") || v.p.waits_on("pipe") || v.p.waits_on("poll")
        };
        if asleep && v.s.cores.is_none_or(|c| c < 0.3) {
            return "asleep";
        }
        "unknown"
    }
}

fn where_it_stands(v: &View<'_>) -> Evidence {
    Evidence::new()
        .num("step", v.s.step)
        .num("epoch", v.s.epoch)
        .num("age_s", v.s.progress_age())
        .num("quiet_s", v.s.quiet())
}

/// A stall that was raised; None once it is over.
fn go_on(mut held: Held, v: &View<'_>, book: &mut Book) -> Option<Held> {
    let active = if held.loops {
        v.s.loops.more
    } else {
        v.s.active
    };
    held.active_s = if active {
        held.active_s + v.s.dt
    } else {
        (held.active_s - 3.0 * v.s.dt).max(0.0)
    };
    let wanted = if v.s.advances.begun { 2 } else { 1 };
    if v.s.advances.count >= held.count + wanted || held.active_s >= ACTIVE_AGAIN_S {
        book.conclude(STALLED, where_it_stands(v));
        return None;
    }
    let next = 2_u32.pow(held.reminders + 1);
    if held.reminders < 2 && v.s.progress_age() >= held.age * f64::from(next) {
        held.reminders += 1;
        book.update(STALLED, where_it_stands(v));
    }
    Some(held)
}

/// Without any progress: with memory held it is `idle-holding`, never both.
fn no_progress_due(v: &View<'_>, quiet: f64) -> bool {
    let least = if v.s.first_held.is_some() {
        NO_PROGRESS_S
    } else {
        NO_GPU_YET_S
    };
    v.s.held != Some(true) && quiet > least.max(5.0 * v.s.acts.longest())
}

/// Nothing but a busy core a rank, for much longer than that ever took: by DETECTION section 2 it
/// is no activity, and yet it may be an evaluation, which is given three limits of progress. Where
/// the GPUs' use isn't told, such a core may wait for one of them, and one limit is enough.
fn loops_for_long(v: &View<'_>) -> bool {
    let s = v.s;
    let lasted = s.loops.lasted(s.now);
    let tells = s.advances.begun && s.tells_by_activity() && !s.is_blind();
    if !tells || lasted < LOOPS_S.max(5.0 * s.loops.longest_s()) - ROUNDING_S {
        return false;
    }
    let steps = s.steps.limit();
    let limits = if s.may_wait() { 1.0 } else { 3.0 };
    steps.median >= 60.0 || s.progress_age() > limits * steps.careful
}

/// Whether something makes a stall likely before its time, and half of that has passed.
fn signed(v: &View<'_>, book: &Book, learnt: f64) -> bool {
    let s = v.s;
    let spins = s.spins_for() >= FLOOR_S;
    let watchdog = v
        .story
        .collective_s
        .is_some_and(|at| at >= s.progressed.elapsed_s);
    let limit = if spins && s.spins_for() > 3.0 * s.longest_spin_s {
        // In none of its long gaps did this job spin: it is no evaluation.
        s.steps.limit_between().learnt
    } else if spins || watchdog || lost_rank(v) || book.holds("hardware") {
        learnt
    } else {
        return false;
    };
    s.progress_age() > FLOOR_S.max(limit / 2.0)
}

/// A rank ended about when progress did.
fn lost_rank(v: &View<'_>) -> bool {
    let since = v.s.progressed.elapsed_s - FLOOR_S;
    v.p.lost_rank
        .as_ref()
        .is_some_and(|gone| gone.at_s >= since)
}

/// What was found before and explains a stall that began at this second.
fn explanation(book: &Book, since: f64) -> Option<String> {
    ["hardware", "host-oom", "oom", "program-fault"]
        .into_iter()
        .find(|name| {
            book.open(name)
                .is_some_and(|f| *name == "hardware" || f.since_s >= since - 120.0)
        })
        .map(str::to_owned)
}

fn later(a: Moment, b: Moment) -> Moment {
    if b.own_s > a.own_s { b } else { a }
}

fn evidence(sample: &Sample, v: &View<'_>) -> Evidence {
    let s = v.s;
    let spinning = s.gpus.iter().filter(|g| g.does == Does::Spins).count();
    let mean = |read: &dyn Fn(&crate::model::GpuSample) -> Option<f64>| {
        let values: Vec<f64> = sample.gpus.iter().filter_map(read).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let gone = v.p.lost_rank.as_ref().filter(|_| lost_rank(v));
    let blocked = v.p.live.values().find_map(|m| m.on.clone());
    Evidence::new()
        .num("step", s.step)
        .num("epoch", s.epoch)
        .num("age_s", s.progress_age())
        .num("quiet_s", s.quiet())
        .num("gpu_util_pct", mean(&|g| g.util_pct.get()))
        .num("power_w", mean(&|g| g.power_w.get()))
        .num("cpu_cores", s.cores)
        .num("spinning_gpus", (spinning > 0).then_some(spinning as f64))
        .num("lost_rank", gone.map(|g| f64::from(g.rank)))
        .num("lost_pid", gone.map(|g| f64::from(g.pid)))
        .text("blocked_on", blocked)
}

fn advice(cause: &str) -> &'static str {
    match cause {
        "spin" => {
            "The GPUs are busy at low power: a collective or a kernel waits. Look at the stacks of all ranks for the one that isn't in the same operation (TORCH_NCCL_TRACE_BUFFER_SIZE, NCCL_DEBUG=INFO), and restart from the last checkpoint."
        }
        "asleep" => {
            "Every process sleeps on a lock, a pipe or a poll: look at the stacks (`py-spy dump --pid PID`). A DataLoader worker that died or a lock held across fork is the usual cause; num_workers=0 or the spawn start method tells."
        }
        "storage" => {
            "Processes wait for storage and no byte arrives: check the file system (`df`, `dmesg`, the NFS server) before restarting."
        }
        "lost-rank" => {
            "A rank ended and the others wait for it: its own last lines say why. Restart all ranks; torchrun --max-restarts does it by itself."
        }
        "remote" => "The ranks on this machine wait for another machine: look there first.",
        _ => {
            "Neither progress nor activity: look at the stacks (`py-spy dump --pid PID`) and the last lines of the output."
        }
    }
}
