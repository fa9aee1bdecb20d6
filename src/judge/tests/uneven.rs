//! `imbalanced`: GPUs of one job that do unequal work, and phases in which they do by design.

use super::run::{Run, quiet, spinning, training};
use crate::model::FindingState::{Cleared, Raised};
use crate::model::{Event, GpuInfo, ProcessChange, Reading, Sample, Severity, Throttle};

const NONE: [&str; 0] = [];

/// One sample of several GPUs.
fn joined(parts: &[Sample]) -> Sample {
    let mut all = parts[0].clone();
    all.gpus.clear();
    all.job_mem_mib.clear();
    all.job_sm_pct.clear();
    for (i, part) in parts.iter().enumerate() {
        let mut gpu = part.gpus[0].clone();
        gpu.index = i as u32;
        gpu.mem_total_mib = Reading::Value(81_920.0);
        all.gpus.push(gpu);
        all.job_mem_mib.extend(part.job_mem_mib.iter().cloned());
        all.job_sm_pct.extend(part.job_sm_pct.iter().cloned());
    }
    all
}

/// A training with so much use, memory and clock.
fn doing(use_pct: f64, mib: f64, mhz: f64) -> Sample {
    let mut sample = training();
    let gpu = &mut sample.gpus[0];
    gpu.util_pct = Reading::Value(use_pct);
    gpu.mem_used_mib = Reading::Value(mib + 5.0);
    gpu.sm_clock_mhz = Reading::Value(mhz);
    sample.job_mem_mib = vec![Reading::Value(mib)];
    sample.job_sm_pct = vec![Reading::Value(use_pct)];
    sample
}

fn even() -> Sample {
    doing(95.0, 40_000.0, 1755.0)
}

#[test]
fn unequal_use_and_memory_are_imbalanced() {
    let low = doing(35.0, 20_480.0, 1755.0);
    let mut run = Run::new();
    run.event(Event::Framework {
        name: "pytorch".into(),
        gpu: None,
        why: String::new(),
    });
    let parts = [doing(97.0, 79_872.0, 1755.0), low.clone(), low.clone(), low];
    run.steps(900, 3, &joined(&parts));
    let (state, raised) = run.life("imbalanced")[0];
    assert!(
        state == Raised && (300.0..330.0).contains(&raised),
        "{raised}"
    );
    assert_eq!(run.alarms().len(), 1);
    let found = run.first("imbalanced");
    assert_eq!(found.cause.as_deref(), Some("uneven"));
    assert_eq!(
        (&found.evidence["gpu"], &found.evidence["use_pct"]),
        (&0.into(), &97.into())
    );
    assert_eq!(found.evidence["other_use_pct"], 35);
    assert!(
        found
            .advice
            .as_deref()
            .unwrap()
            .contains("DistributedDataParallel")
    );
    assert!(found.since_s < 15.0);
    run.steps(600, 3, &joined(&[even(), even(), even(), even()]));
    assert_eq!(run.life("imbalanced").last().map(|l| l.0), Some(Cleared));
    // Memory alone.
    let mut run = Run::new();
    run.steps(
        900,
        3,
        &joined(&[doing(95.0, 70_000.0, 1755.0), doing(95.0, 30_000.0, 1755.0)]),
    );
    assert_eq!(run.first("imbalanced").cause.as_deref(), Some("uneven"));
    let mut run = Run::new();
    run.steps(
        900,
        3,
        &joined(&[doing(95.0, 39_000.0, 1755.0), doing(95.0, 9000.0, 1755.0)]),
    );
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn a_slow_gpu_is_the_straggler() {
    let mut spins = spinning();
    spins.gpus[0].sm_clock_mhz = Reading::Value(1755.0);
    // By its clock, with the waiting of the others between their steps.
    let slow = doing(95.0, 40_000.0, 1053.0);
    let works = joined(&[even(), even(), slow.clone(), even()]);
    let waits = joined(&[spins.clone(), spins.clone(), slow, spins.clone()]);
    let mut run = Run::new();
    for _ in 0..120 {
        run.steps(3, 3, &works).steps(2, 3, &waits);
    }
    let found = run.first("imbalanced");
    assert_eq!(found.cause.as_deref(), Some("straggler"));
    assert_eq!(
        (&found.evidence["gpu"], &found.evidence["clock_mhz"]),
        (&2.into(), &1053.into())
    );
    assert_eq!(found.evidence["peers_wait_pct"], 40);
    // By its power alone.
    let works = joined(&[even(), even(), even(), even()]);
    let waits = joined(&[spins.clone(), spins.clone(), even(), spins]);
    let mut run = Run::new();
    for _ in 0..200 {
        run.steps(3, 3, &works).steps(2, 3, &waits);
    }
    assert_eq!(run.first("imbalanced").evidence["gpu"], 2);
    // GPUs of two kinds have clocks of their own.
    let mut run = Run::new();
    let info = |index: u32| GpuInfo {
        index,
        name: Some(["A", "B"][index as usize].to_owned()),
        ..GpuInfo::default()
    };
    run.judge.learn((0..2).map(info).collect());
    run.steps(900, 3, &joined(&[even(), doing(95.0, 40_000.0, 1200.0)]));
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn a_gpu_that_is_held_back_is_one_story() {
    let mut slow = doing(95.0, 40_000.0, 1000.0);
    slow.gpus[0].throttle = Reading::Value(Throttle(0x40));
    let mut well = even();
    well.gpus[0].throttle = Reading::Value(Throttle(0));
    let mut run = Run::new();
    run.steps(600, 3, &joined(&[well.clone(), well.clone()]));
    run.steps(900, 3, &joined(&[well, slow]));
    assert_eq!(run.alarms().len(), 1);
    let found = run.first("imbalanced");
    assert_eq!(found.because.as_deref(), Some("throttled"));
    assert_eq!(found.severity, Severity::Note);
}

#[test]
fn phases_of_one_rank_are_no_imbalance() {
    let spins = spinning();
    let all = joined(&[even(), even(), even(), even()]);
    // One rank evaluates, for ten minutes and often; or saves.
    let evaluates = doing(60.0, 40_000.0, 1755.0);
    for (first, lasts, every) in [
        (evaluates.clone(), 600, 900),
        (evaluates, 20, 40),
        (quiet(), 300, 600),
    ] {
        let one = joined(&[first, spins.clone(), spins.clone(), spins.clone()]);
        let mut run = Run::new();
        for _ in 0..8 {
            run.steps(every, 2, &all).go(lasts, &one);
        }
        assert!(run.life("imbalanced").is_empty(), "{lasts}");
    }
    // A model is loaded, one GPU after the other.
    let mut run = Run::new();
    for loaded in 0..4 {
        let parts: Vec<Sample> = (0..4)
            .map(|i| doing(0.0, if i <= loaded { 70_000.0 } else { 400.0 }, 1755.0))
            .collect();
        run.go(400, &joined(&parts));
    }
    run.steps(900, 2, &all);
    assert!(run.life("imbalanced").is_empty());
    // They take turns, for minutes each.
    let mut run = Run::new();
    let (busy, rests) = (even(), doing(0.0, 40_000.0, 1755.0));
    for _ in 0..20 {
        run.steps(200, 2, &joined(&[busy.clone(), rests.clone()]));
        run.steps(100, 2, &joined(&[rests.clone(), busy.clone()]));
    }
    assert!(run.life("imbalanced").is_empty());
}

#[test]
fn gpus_that_take_no_part_are_not_compared() {
    let nothing = {
        let mut sample = quiet();
        sample.gpus[0].mem_used_mib = Reading::Value(5.0);
        sample.job_mem_mib = vec![Reading::Value(0.0)];
        sample
    };
    let context = {
        let mut sample = quiet();
        sample.gpus[0].mem_used_mib = Reading::Value(405.0);
        sample.job_mem_mib = vec![Reading::Value(400.0)];
        sample
    };
    for other in [nothing, context] {
        let mut run = Run::new();
        run.steps(900, 2, &joined(&[even(), other.clone(), other]));
        assert_eq!(run.alarms(), NONE);
    }
    // Another's work on the second GPU: only what is the job's own counts.
    let mut shared = even();
    shared.gpus[0].mem_used_mib = Reading::Value(70_000.0);
    shared.gpus[0].sm_clock_mhz = Reading::Value(900.0);
    let mut run = Run::new();
    run.steps(900, 2, &joined(&[even(), shared]));
    assert_eq!(run.alarms(), NONE);
    // What has little to do runs at a low clock, and isn't what the others wait for.
    let mut run = Run::new();
    run.steps(900, 2, &joined(&[even(), doing(75.0, 40_000.0, 900.0)]));
    assert_eq!(run.alarms(), NONE);
    // A notebook with two models.
    let mut run = Run::new();
    run.event(Event::Process {
        pid: 8,
        ppid: None,
        name: Some("ipykernel_launch".into()),
        rank: None,
        change: ProcessChange::Started,
        on: None,
        code: None,
        signal: None,
    });
    run.go(3000, &joined(&[even(), doing(10.0, 40_000.0, 1755.0)]));
    assert_eq!(run.alarms(), NONE);
    // Bursts, of which each GPU has its own seconds.
    let rests = doing(0.0, 40_000.0, 1755.0);
    let mut run = Run::new();
    for i in 0..900 {
        let pair = if i % 20 < 9 {
            [even(), rests.clone()]
        } else {
            [rests.clone(), even()]
        };
        run.steps(1, 1, &joined(&pair));
    }
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn a_silent_job_is_given_a_quarter_of_an_hour() {
    let pair = joined(&[even(), doing(30.0, 40_000.0, 1755.0)]);
    let mut run = Run::new();
    run.go(1500, &pair);
    let raised = run.life("imbalanced")[0].1;
    assert!((900.0..960.0).contains(&raised), "{raised}");
    // Steps that are rare don't show a pause.
    let mut run = Run::new();
    run.steps(1500, 300, &pair);
    let raised = run.life("imbalanced")[0].1;
    assert!((900.0..960.0).contains(&raised), "{raised}");
}
