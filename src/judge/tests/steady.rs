//! What must not matter to findings about growth, heat and balance: when a run began, the order
//! of its GPUs, samples that were dropped, readings that are missing.

use proptest::prelude::*;

use super::run::{quiet, spinning, training};
use crate::judge::{Finding, Input, JobFacts, Judge};
use crate::model::{GpuInfo, JudgeSettings, Reading, Sample, Throttle};

const OURS: [&str; 7] = [
    "memory-leak",
    "near-oom",
    "throttled",
    "overheating",
    "imbalanced",
    "memory-bound",
    "defunct",
];
const GIB: f64 = 1024.0;

/// A run of two hours at most, each of whose seconds is a function of its number.
#[derive(Clone, Copy, Debug)]
struct Plan {
    kind: u8,
    gpus: u32,
    seconds: u32,
    epoch_s: u32,
    level_gib: f64,
    noise: u32,
}

fn plans(kinds: std::ops::Range<u8>) -> impl Strategy<Value = Plan> {
    let sizes = (
        1_u32..4,
        1500_u32..4500,
        40_u32..300,
        10.0..70.0_f64,
        any::<u32>(),
    );
    (kinds, sizes).prop_map(|(kind, (gpus, seconds, epoch_s, level_gib, noise))| Plan {
        kind,
        gpus,
        seconds,
        epoch_s,
        level_gib,
        noise,
    })
}

impl Plan {
    /// Between 0 and 1, the same for the same numbers.
    fn chance(&self, a: u32, b: u32) -> f64 {
        let mut x = self.noise ^ a.wrapping_mul(0x9e37_79b9) ^ b.wrapping_mul(0x85eb_ca6b);
        x = (x ^ (x >> 15)).wrapping_mul(0x2c1b_3c6d);
        x = (x ^ (x >> 12)).wrapping_mul(0x297a_2d39);
        f64::from(x ^ (x >> 15)) / f64::from(u32::MAX)
    }

    /// One second of one GPU. Kinds 0 to 5 are healthy, 6 to 9 aren't.
    fn part(&self, t: u32, gpu: u32) -> Sample {
        let (epoch, within) = (f64::from(t / self.epoch_s), t % self.epoch_s);
        let evaluates = within + 20 >= self.epoch_s;
        let mut mib = self.level_gib * GIB;
        let mut sample = match self.kind {
            1 if evaluates && gpu > 0 => spinning(),
            2 if evaluates => quiet(),
            7 if gpu > 0 && t % 5 < 2 => spinning(),
            _ => training(),
        };
        match self.kind {
            // Batches of all sizes.
            3 => mib += 8.0 * GIB * self.chance(t, gpu),
            // Grows in a few steps and stays.
            4 => mib += 2.0 * GIB * (epoch + 1.0).ln().floor(),
            6 => mib += 300.0 * f64::from(t) / f64::from(self.epoch_s),
            _ => {}
        }
        let row = &mut sample.gpus[0];
        let hot = self.kind == 8 && t > 900 && gpu == 0;
        row.index = gpu;
        row.mem_total_mib = Reading::Value(80.0 * GIB);
        row.mem_used_mib = Reading::Value(mib + 5.0);
        row.temp_c = Reading::Value(if hot {
            92.0
        } else {
            60.0 + 20.0 * self.chance(t, gpu)
        });
        row.sm_clock_mhz = Reading::Value(if hot { 900.0 } else { 1400.0 });
        let capped = self.kind == 5 && self.chance(t, 9) < 0.9;
        let reasons = [0, 0x4, 0x20][usize::from(capped) + 2 * usize::from(hot)];
        row.throttle = Reading::Value(Throttle(reasons));
        sample.job_mem_mib = vec![Reading::Value(mib)];
        if self.kind == 9 && gpu > 0 {
            row.util_pct = Reading::Value(30.0);
            sample.job_sm_pct = vec![Reading::Value(30.0)];
        }
        sample
    }

    /// One second; the rows begin with the GPU of this number.
    fn second(&self, t: u32, first: u32) -> Sample {
        let parts: Vec<Sample> = (0..self.gpus)
            .map(|i| self.part(t, (i + first) % self.gpus))
            .collect();
        let mut all = parts[0].clone();
        // What the job does as a whole isn't a GPU's.
        all.job = self.part(t, 0).job;
        all.gpus = parts.iter().map(|p| p.gpus[0].clone()).collect();
        all.job_mem_mib = parts.iter().map(|p| p.job_mem_mib[0].clone()).collect();
        all.job_sm_pct = parts.iter().map(|p| p.job_sm_pct[0].clone()).collect();
        all.stamp.elapsed_s = f64::from(t);
        let works = self.kind == 0 || t % self.epoch_s + 20 < self.epoch_s;
        all.progress.epoch = Some(f64::from(t / self.epoch_s + 1));
        let made = if works {
            t
        } else {
            t - t % self.epoch_s + self.epoch_s - 20
        };
        all.progress.step = Some(u64::from(made / 2 + 1));
        all.job.anon_mib = Reading::Value(4000.0 + 300.0 * self.chance(t, 77));
        all.job.shmem_mib = Reading::Value(500.0);
        all.host.mem_limit_mib = Reading::Value(64.0 * GIB);
        all
    }
}

fn judge(plan: &Plan) -> Judge {
    let info = |index| GpuInfo {
        index,
        slowdown_c: Some(90),
        ..GpuInfo::default()
    };
    let facts = JobFacts {
        gpus: (0..plan.gpus).map(info).collect(),
        ..JobFacts::default()
    };
    Judge::new(JudgeSettings::default(), Vec::new(), facts)
}

fn ours(judge: &mut Judge, sample: &Sample) -> Vec<(f64, Finding)> {
    let found = judge.step(Input::Sample(sample)).into_iter();
    let found = found.filter(|f| OURS.contains(&f.name.as_str()));
    found.map(|f| (sample.stamp.elapsed_s, f)).collect()
}

/// What is said of the run, its rows and times as `change` makes them.
fn said(plan: &Plan, change: impl Fn(u32) -> Option<Sample>) -> Vec<(f64, Finding)> {
    let mut judge = judge(plan);
    let samples = (0..plan.seconds).filter_map(change);
    samples
        .flat_map(|sample| ours(&mut judge, &sample))
        .collect()
}

/// Takes readings away.
fn without(sample: &mut Sample, plan: &Plan, t: u32, share: f64) {
    let gone = |n: u32| plan.chance(t, 100 + n) < share;
    for (i, gpu) in sample.gpus.iter_mut().enumerate() {
        let i = 20 * i as u32;
        let fields = [
            &mut gpu.util_pct,
            &mut gpu.mem_util_pct,
            &mut gpu.mem_used_mib,
            &mut gpu.mem_total_mib,
            &mut gpu.temp_c,
            &mut gpu.power_w,
            &mut gpu.sm_clock_mhz,
            &mut gpu.pcie_mb_s,
        ];
        for (n, field) in fields.into_iter().enumerate() {
            if gone(i + n as u32) {
                *field = Reading::default();
            }
        }
        if gone(i + 10) {
            gpu.throttle = Reading::default();
        }
    }
    let job = sample.job_mem_mib.iter_mut().chain(&mut sample.job_sm_pct);
    let job = job.chain([&mut sample.job.anon_mib, &mut sample.host.mem_limit_mib]);
    for (n, field) in job.enumerate() {
        if gone(300 + n as u32) {
            *field = Reading::default();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_time_of_the_start_changes_nothing_but_times(plan in plans(0..10), shift in 1_u32..100_000) {
        let plain = said(&plan, |t| Some(plan.second(t, 0)));
        let shift = f64::from(shift);
        let mut later = said(&plan, |t| {
            let mut sample = plan.second(t, 0);
            sample.stamp.elapsed_s += shift;
            Some(sample)
        });
        for (at, finding) in &mut later {
            *at -= shift;
            finding.since_s -= shift;
        }
        prop_assert_eq!(plain, later);
    }

    #[test]
    fn the_order_of_the_gpus_is_irrelevant(plan in plans(0..10), every in 1_u32..50) {
        let plain = said(&plan, |t| Some(plan.second(t, 0)));
        let turned = said(&plan, |t| Some(plan.second(t, t / every)));
        prop_assert_eq!(plain, turned);
    }

    #[test]
    fn what_is_missing_creates_no_finding(plan in plans(0..6), dropped in 0.0..0.5_f64, gone in 0.0..0.5_f64) {
        let found = said(&plan, |t| {
            let mut sample = plan.second(t, 0);
            without(&mut sample, &plan, t, gone);
            (plan.chance(t, 99) >= dropped).then_some(sample)
        });
        prop_assert!(found.is_empty(), "{:?}", found);
    }

    #[test]
    fn a_reading_that_never_comes_is_nothing_to_say(plan in plans(6..10), which in 0_usize..4) {
        let found = said(&plan, |t| {
            let mut sample = plan.second(t, 0);
            for gpu in &mut sample.gpus {
                match which {
                    0 => (gpu.throttle, gpu.temp_c) = (Reading::default(), Reading::default()),
                    1 => gpu.sm_clock_mhz = Reading::default(),
                    2 => gpu.mem_used_mib = Reading::default(),
                    _ => (gpu.util_pct, gpu.power_w) = (Reading::default(), Reading::default()),
                }
            }
            match which {
                2 => sample.job_mem_mib.fill(Reading::default()),
                3 => sample.job_sm_pct.fill(Reading::default()),
                _ => {}
            }
            Some(sample)
        });
        let silent = match which {
            0 => ["throttled", "overheating"].as_slice(),
            2 => &["memory-leak", "near-oom"],
            _ => &[],
        };
        prop_assert!(found.iter().all(|(_, f)| !silent.contains(&f.name.as_str())), "{:?}", found);
    }
}

#[test]
fn the_plans_are_what_they_are_said_to_be() {
    let wanted = [
        (6, "memory-leak"),
        (7, "imbalanced"),
        (8, "throttled"),
        (9, "imbalanced"),
    ];
    for (kind, name) in wanted {
        let plan = Plan {
            kind,
            gpus: 3,
            seconds: 3000,
            epoch_s: 100,
            level_gib: 30.0,
            noise: 1,
        };
        let found = said(&plan, |t| Some(plan.second(t, 0)));
        assert!(
            found.iter().any(|(_, f)| f.name == name),
            "{kind}: {found:?}"
        );
    }
}
