//! `unexplained-memory`: GPU memory in use that no process holds.
//!
//! Owns the one finding about the machine instead of a job. It is fed samples whose job is every
//! process that the driver lists; where one of them isn't told, nothing is said.

use std::collections::BTreeMap;

use crate::model::{Limit, Reading, Sample, Severity};

use super::finding::{Book, Claim, Evidence};

const UNEXPLAINED: &str = "unexplained-memory";
/// What a driver, a display and contexts take without anybody's name is less, MiB.
const LEAST_MIB: f64 = 1024.0;
/// A process that starts or ends is in one list and not yet in the other, seconds.
const AFTER_S: f64 = 60.0;
/// A sampler's gap tells nothing, seconds.
const BLIND_S: f64 = 60.0;

/// The family.
#[derive(Clone, Debug)]
pub struct Unexplained {
    after: f64,
    /// Per GPU, since when and how much at the least.
    since: BTreeMap<String, (f64, f64)>,
    last_s: Option<f64>,
}

impl Unexplained {
    /// With the settings in this book.
    pub fn new(book: &Book) -> Self {
        let after = match book.settings(UNEXPLAINED).after {
            Limit::Auto => AFTER_S,
            Limit::After(d) => d.as_secs_f64(),
        };
        Self {
            after,
            since: BTreeMap::new(),
            last_s: None,
        }
    }

    /// Takes in one sample.
    pub fn sample(&mut self, sample: &Sample, book: &mut Book) {
        let now = sample.stamp.elapsed_s;
        let before = self.last_s.replace(now);
        if before.is_some_and(|at| now - at > BLIND_S.max(self.after)) {
            self.since.clear();
        }
        for (i, gpu) in sample.gpus.iter().enumerate() {
            let held = sample.job_mem_mib.get(i).and_then(Reading::get);
            let Some((used, held)) = gpu.mem_used_mib.get().zip(held) else {
                // Nobody knows: neither more nor less than before.
                continue;
            };
            let rest = used - held;
            if rest < LEAST_MIB {
                self.since.remove(&gpu.label());
                continue;
            }
            let (_, least) = self.since.entry(gpu.label()).or_insert((now, rest));
            *least = least.min(rest);
        }
        let due = |since: f64| now - since >= self.after;
        let held = self.since.iter().filter(|(_, (since, _))| due(*since));
        let held: Vec<(&String, f64, f64)> = held.map(|(g, (s, mib))| (g, *s, *mib)).collect();
        let Some((_, since, _)) = held.first() else {
            book.clear(UNEXPLAINED);
            return;
        };
        let names: Vec<&str> = held.iter().map(|(gpu, ..)| gpu.as_str()).collect();
        let evidence = Evidence::new()
            .num("gpu_mem_mib", held.iter().map(|(.., mib)| mib).sum::<f64>())
            .text("gpus", names.join(","));
        let claim = Claim::new(UNEXPLAINED, Severity::Warning, *since)
            .evidence(evidence)
            .advice(format!(
                "GPU memory is taken on GPU {} and no process holds it: look who has the device open (`fuser -v /dev/nvidia*`, other containers); if nobody has, a reset of the GPU or a reboot frees it.",
                names.join(", ")
            ));
        book.raise(claim);
    }
}
