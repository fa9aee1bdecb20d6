//! `orphans` and `defunct`: processes that outlive what they worked for.
//!
//! Owns both findings. What they hold of the GPUs makes them serious.

use crate::model::{Limit, Sample, Severity};

use super::finding::{Book, Claim, Evidence};
use super::view::View;

/// The names of the findings.
pub const ORPHANS: &str = "orphans";
const DEFUNCT: &str = "defunct";
/// Processes get so long to end after the main one, seconds.
const GRACE_S: f64 = 3.0;
/// A parent gets so long to reap its child, seconds.
const REAP_S: f64 = 20.0;
/// A process waits for a device so long before it is called stuck, seconds.
const STUCK_S: f64 = 60.0;
/// What was left behind, and may be a daemon that works now and then, is quiet for so long before
/// it is called an orphan, seconds.
const LEFT_QUIET_S: f64 = 120.0;
/// So many PIDs are listed.
const PIDS: usize = 16;

/// The family.
#[derive(Clone, Debug)]
pub struct Leftovers {
    left_quiet_s: f64,
    reap_s: f64,
    stuck_after_s: f64,
    /// Live processes at the last sample, and when that was.
    procs: Option<(f64, u32)>,
    zombies_since: Option<f64>,
    stuck_s: f64,
    /// After the main process's end nobody was left,
    alone: bool,
    /// and then somebody came, at this second: a shell's next command, or the next attempt.
    came_s: Option<f64>,
}

impl Leftovers {
    /// With the settings in this book.
    pub fn new(book: &Book) -> Self {
        let left_quiet_s = match book.settings(ORPHANS).after {
            Limit::Auto => LEFT_QUIET_S,
            Limit::After(d) => d.as_secs_f64(),
        };
        let (reap_s, stuck_after_s) = match book.settings(DEFUNCT).after {
            Limit::Auto => (REAP_S, STUCK_S),
            Limit::After(d) => (d.as_secs_f64(), d.as_secs_f64()),
        };
        Self {
            left_quiet_s,
            reap_s,
            stuck_after_s,
            procs: None,
            zombies_since: None,
            stuck_s: 0.0,
            alone: false,
            came_s: None,
        }
    }

    /// Takes in one sample.
    pub fn sample(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        let now = v.s.now.elapsed_s;
        self.procs = sample.job.procs.get().map(|n| (now, n));
        if let Some(ended) = v.p.main_ended_s {
            let alive = match self.procs {
                Some((_, n)) => n > 0,
                None => v.p.left().next().is_some(),
            };
            if !alive {
                (self.alone, self.came_s) = (true, None);
                book.clear(ORPHANS);
                return self.defunct(sample, v, book);
            }
            if self.alone {
                (self.alone, self.came_s) = (false, Some(now));
            }
            let since = self.came_s.unwrap_or(ended);
            if now - since >= GRACE_S {
                self.raise(since, v, book);
            }
        } else if v.p.is_left_behind() {
            self.left_behind(v, book);
        }
        self.defunct(sample, v, book);
    }

    /// The run is over.
    pub fn finish(&self, ended_s: f64, v: &View<'_>, book: &mut Book) {
        let ended = v.p.main_ended_s.unwrap_or(ended_s);
        let alive = match self.procs {
            Some((at, n)) if at > ended => n > 0,
            _ => v.p.left().any(|(_, m)| m.orphaned),
        };
        if alive {
            self.raise(ended, v, book);
        }
    }

    /// Nobody waits for this job any more, and it does nothing. One that works is somebody's.
    fn left_behind(&self, v: &View<'_>, book: &mut Book) {
        if v.s.active {
            book.clear(ORPHANS);
            return;
        }
        let quiet = v.s.held == Some(true) && v.s.quiet() >= self.left_quiet_s;
        if !quiet || v.s.is_blind() || v.may_be_silent() || book.holds(ORPHANS) {
            return;
        }
        let pids: Vec<u32> = v.p.live.keys().copied().take(PIDS).collect();
        let list: Vec<String> = pids.iter().map(u32::to_string).collect();
        let evidence = Evidence::new()
            .num("procs", self.procs.map(|(_, n)| f64::from(n)))
            .num("gpu_mem_mib", v.s.held_mib)
            .num("quiet_s", v.s.quiet())
            .pids(pids);
        let claim = Claim::new(ORPHANS, Severity::Critical, v.s.acted.elapsed_s)
            .cause("left-behind")
            .evidence(evidence)
            .advice(format!(
                "What started it is gone, and it holds GPU memory without using it: `kill {}` ends it.",
                list.join(" ")
            ));
        book.raise(claim);
    }

    fn raise(&self, ended: f64, v: &View<'_>, book: &mut Book) {
        let holds = v.s.held == Some(true);
        let severity = if holds {
            Severity::Critical
        } else {
            Severity::Warning
        };
        let pids: Vec<u32> = v.p.left().map(|(pid, _)| *pid).take(PIDS).collect();
        let n = self.procs.map_or(pids.len() as u32, |(_, n)| n);
        let list: Vec<String> = pids.iter().map(u32::to_string).collect();
        let kill = if list.is_empty() {
            "`gpuwatch gpus` shows who holds the GPU".to_owned()
        } else {
            format!("`kill {}` ends them", list.join(" "))
        };
        let evidence = Evidence::new()
            .num("procs", f64::from(n))
            .num("gpu_mem_mib", v.s.held_mib.filter(|_| holds))
            .pids(pids);
        let claim = Claim::new(ORPHANS, severity, ended)
            .evidence(evidence)
            .advice(format!(
                "The main process is gone and others of the job live on: {kill}; --leftovers kill does it by itself."
            ));
        book.raise(claim);
    }

    fn defunct(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        let now = v.s.now.elapsed_s;
        let job = &sample.job;
        let counted = job.n_zombie.get().is_some_and(|n| n > 0);
        let told = v.p.live.iter().filter(|(pid, _)| Some(**pid) != v.p.main);
        let told = told.filter_map(|(_, m)| m.zombie_since).reduce(f64::min);
        // Where processes come and go, it is another one each time, unless an event names it.
        let others = told.is_none() && job.forks.get().is_some_and(|n| n > 0);
        let before = self.zombies_since.filter(|_| !others);
        self.zombies_since = counted.then(|| before.unwrap_or(now));
        let since = match (told, self.zombies_since) {
            (Some(a), Some(b)) => Some(a.min(b)),
            // A count of 0 beats an event whose end was lost.
            (Some(a), None) if job.n_zombie.get().is_none() => Some(a),
            (_, b) => b,
        };
        let waits =
            job.n_disk.get().is_some_and(|n| n > 0) && v.s.io_mb_s.is_some_and(|mb| mb < 0.05);
        self.stuck_s = if waits {
            self.stuck_s + v.s.seen_s()
        } else {
            0.0
        };
        // While the job should make progress, storage that hangs is a stall.
        let stuck = self.stuck_s >= self.stuck_after_s
            && (v.p.main_ended_s.is_some() || !v.s.advances.begun);
        // Subprocesses that nobody asked for are harmless as long as the work goes on, or where
        // nothing has to.
        let idle = v.s.quiet() >= self.reap_s || v.p.main_ended_s.is_some();
        let waited_for = idle && !v.is_interactive() && !v.is_serving();
        let zombie = since.filter(|at| {
            now - at >= self.reap_s && v.s.progressed.elapsed_s < at + 5.0 && waited_for
        });
        if v.s.held != Some(true) || zombie.is_none() && !stuck {
            book.clear(DEFUNCT);
        } else if !v.s.frozen && !book.holds(DEFUNCT) {
            self.raise_defunct(zombie, sample, v, book);
        }
    }

    fn raise_defunct(&self, zombie: Option<f64>, sample: &Sample, v: &View<'_>, book: &mut Book) {
        let (cause, advice) = if zombie.is_some() {
            (
                "zombie",
                "A process of the job has ended and its parent doesn't reap it: end the parent, or restart the job; the GPU memory is free only then.",
            )
        } else {
            (
                "stuck",
                "A process waits in the kernel and can't be ended: check storage and the driver (`dmesg`); a GPU reset or a reboot may be needed.",
            )
        };
        let since = zombie.unwrap_or(v.s.now.elapsed_s - self.stuck_s);
        let explains = ["hardware", "stalled", ORPHANS];
        let because = explains.into_iter().find(|name| book.told(name).is_some());
        let dead = v.p.live.iter().filter(|(_, m)| m.zombie_since.is_some());
        let claim = Claim::new(DEFUNCT, Severity::Warning, since)
            .cause(cause)
            .because(because.map(str::to_owned))
            .evidence(
                Evidence::new()
                    .num("zombies", sample.job.n_zombie.get().map(f64::from))
                    .num("in_d_s", zombie.is_none().then_some(self.stuck_s))
                    .num("gpu_mem_mib", v.s.held_mib)
                    .pids(dead.map(|(pid, _)| *pid).take(PIDS)),
            )
            .advice(advice);
        book.raise(claim);
    }
}
