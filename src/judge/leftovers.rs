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
    /// Live processes at the last sample, and when that was.
    procs: Option<(f64, u32)>,
    zombies_since: Option<f64>,
    stuck_s: f64,
}

impl Leftovers {
    /// With the settings in this book.
    pub fn new(book: &Book) -> Self {
        let left_quiet_s = match book.settings(ORPHANS).after {
            Limit::Auto => LEFT_QUIET_S,
            Limit::After(d) => d.as_secs_f64(),
        };
        Self {
            left_quiet_s,
            procs: None,
            zombies_since: None,
            stuck_s: 0.0,
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
                book.clear(ORPHANS);
            } else if now - ended >= GRACE_S {
                self.raise(ended, v, book);
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
        let counted = sample.job.n_zombie.get().is_some_and(|n| n > 0);
        self.zombies_since = counted.then(|| self.zombies_since.unwrap_or(now));
        let told = v.p.live.iter().filter(|(pid, _)| Some(**pid) != v.p.main);
        let told = told.filter_map(|(_, m)| m.zombie_since).reduce(f64::min);
        let since = match (told, self.zombies_since) {
            (Some(a), Some(b)) => Some(a.min(b)),
            // A count of 0 beats an event whose end was lost.
            (Some(a), None) if sample.job.n_zombie.get().is_none() => Some(a),
            (_, b) => b,
        };
        let waits = sample.job.n_disk.get().is_some_and(|n| n > 0)
            && v.s.io_mb_s.is_some_and(|mb| mb < 0.05);
        self.stuck_s = if waits { self.stuck_s + v.s.dt } else { 0.0 };
        // While the job should make progress, storage that hangs is a stall.
        let stuck = self.stuck_s >= STUCK_S && (v.p.main_ended_s.is_some() || !v.s.advances.begun);
        // Subprocesses that nobody asked for are harmless as long as the work goes on.
        let zombie = since.filter(|at| now - at >= REAP_S && v.s.progressed.elapsed_s < at + 5.0);
        if v.s.held != Some(true) || zombie.is_none() && !stuck {
            book.clear(DEFUNCT);
            return;
        }
        let advice = if zombie.is_some() {
            "A process of the job has ended and its parent doesn't reap it: end the parent, or restart the job; the GPU memory is free only then."
        } else {
            "A process waits in the kernel and can't be ended: check storage and the driver (`dmesg`); a GPU reset or a reboot may be needed."
        };
        let claim = Claim::new(
            DEFUNCT,
            Severity::Warning,
            zombie.unwrap_or(now - self.stuck_s),
        )
        .cause(if zombie.is_some() { "zombie" } else { "stuck" })
        .evidence(
            Evidence::new()
                .num("zombies", sample.job.n_zombie.get().map(f64::from))
                .num("gpu_mem_mib", v.s.held_mib),
        )
        .advice(advice);
        book.raise(claim);
    }
}
