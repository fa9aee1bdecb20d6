//! `throttled`, `overheating` and `memory-bound`: what holds a GPU back.

use std::time::Duration;

use super::run::{Run, quiet, training};
use crate::model::FindingState::{Cleared, Raised, Updated};
use crate::model::{Event, GpuInfo, Limit, Reading, Sample, Severity, Throttle};

const NONE: [&str; 0] = [];
const CAP: u64 = 0x4;
const SW_HEAT: u64 = 0x20;
const HW_HEAT: u64 = 0x40 | 0x8;
const BRAKE: u64 = 0x80;

/// A training with this clock, these reasons and this temperature.
fn at(mhz: f64, reasons: u64, temp_c: f64) -> Sample {
    let mut sample = training();
    let gpu = &mut sample.gpus[0];
    gpu.sm_clock_mhz = Reading::Value(mhz);
    gpu.throttle = Reading::Value(Throttle(reasons));
    gpu.temp_c = Reading::Value(temp_c);
    sample
}

/// A run on GPUs that slow down at 90 C.
fn known(gpus: u32) -> Run {
    let mut run = Run::new();
    let info = |index| GpuInfo {
        index,
        slowdown_c: Some(90),
        ..GpuInfo::default()
    };
    run.judge.learn((0..gpus).map(info).collect());
    run
}

/// One of these GPUs beside another.
fn both(mut a: Sample, b: &Sample) -> Sample {
    a.gpus.extend(b.gpus.iter().cloned());
    a.gpus[1].index = 1;
    a.job_mem_mib.extend(b.job_mem_mib.iter().cloned());
    a.job_sm_pct.extend(b.job_sm_pct.iter().cloned());
    a
}

#[test]
fn heat_that_costs_clock_is_throttling() {
    let mut run = known(1);
    run.steps(600, 2, &at(1410.0, 0, 70.0));
    run.steps(300, 2, &at(1000.0, SW_HEAT, 84.0));
    assert_eq!(run.alarms().len(), 1);
    let (state, raised) = run.life("throttled")[0];
    // 30 % of a minute, and a mean clock below 85 %.
    assert!(
        state == Raised && (618.0..640.0).contains(&raised),
        "{raised}"
    );
    let found = run.first("throttled");
    assert_eq!(found.since_s.to_bits(), 601_f64.to_bits());
    assert_eq!(found.evidence["reason"], "sw_thermal");
    assert_eq!(found.evidence["gpu"], 0);
    assert_eq!(found.evidence["usual_clock_mhz"], 1416);
    assert!(found.advice.as_deref().unwrap().contains("too hot"));
    run.steps(120, 2, &at(1410.0, 0, 75.0));
    assert_eq!(run.life("throttled").last().map(|l| l.0), Some(Cleared));
    // A power brake, half of the time, at half of the clock.
    let mut run = known(1);
    run.steps(600, 2, &at(1410.0, 0, 70.0));
    for _ in 0..60 {
        run.steps(2, 2, &at(700.0, BRAKE, 70.0));
        run.steps(2, 2, &at(1410.0, 0, 70.0));
    }
    assert_eq!(run.alarms().len(), 1);
    assert_eq!(run.life("throttled").len(), 1);
    assert!(
        run.first("throttled")
            .advice
            .as_deref()
            .unwrap()
            .contains("power supply")
    );
}

#[test]
fn slower_steps_show_it_where_the_clock_does_not() {
    let mut unknown = at(0.0, HW_HEAT, 80.0);
    unknown.gpus[0].sm_clock_mhz = Reading::default();
    let mut run = known(1);
    run.steps(600, 1, &at(1410.0, 0, 70.0));
    run.steps(300, 1, &unknown);
    assert_eq!(run.alarms(), NONE);
    run.steps(300, 2, &unknown);
    assert_eq!(run.alarms().len(), 1);
    assert!(
        run.first("throttled").evidence["step_time_ratio"]
            .as_f64()
            .unwrap()
            >= 1.2
    );
}

#[test]
fn normal_reasons_and_unknown_ones_are_no_throttling() {
    let idle = {
        let mut sample = quiet();
        sample.gpus[0].throttle = Reading::Value(Throttle(0x1 | SW_HEAT));
        sample.gpus[0].sm_clock_mhz = Reading::Value(210.0);
        sample
    };
    let mut silent = at(900.0, 0, 70.0);
    silent.gpus[0].throttle = Reading::default();
    let kinds = [
        // A power cap, clocks that were asked for, a display.
        at(1000.0, CAP, 70.0),
        at(1000.0, 0x2 | 0x10, 70.0),
        at(1000.0, 0x100, 70.0),
        // Heat that costs nothing.
        at(1380.0, SW_HEAT, 85.0),
        idle,
        silent,
    ];
    for (i, kind) in kinds.iter().enumerate() {
        let mut run = known(1);
        run.steps(600, 2, &at(1410.0, 0, 70.0));
        run.steps(600, 2, kind);
        assert_eq!(run.alarms(), NONE, "{i}");
    }
    // A tenth of the time, and a GPU that isn't the job's.
    let mut run = known(1);
    for _ in 0..100 {
        run.steps(18, 2, &at(1410.0, 0, 70.0));
        run.steps(2, 2, &at(300.0, SW_HEAT, 85.0));
    }
    assert_eq!(run.alarms(), NONE);
    let mut others = at(600.0, SW_HEAT, 95.0);
    others.job_mem_mib = vec![Reading::Value(0.0)];
    others.job_sm_pct = vec![Reading::Value(0.0)];
    let mut run = known(2);
    run.steps(600, 2, &both(at(1410.0, 0, 70.0), &at(1410.0, 0, 70.0)));
    run.steps(600, 2, &both(at(1410.0, 0, 70.0), &others));
    assert!(run.life("throttled").is_empty() && run.life("overheating").is_empty());
}

#[test]
fn a_gpu_close_to_its_slowdown_overheats() {
    let mut run = known(1);
    run.steps(300, 2, &at(1410.0, 0, 88.0));
    assert_eq!(run.alarms(), NONE);
    run.steps(120, 2, &at(1410.0, 0, 89.0));
    assert_eq!(run.alarms(), ["overheating 354"]);
    let found = run.first("overheating");
    assert_eq!(found.since_s.to_bits(), 301_f64.to_bits());
    assert_eq!(
        (&found.evidence["temp_c"], &found.evidence["slowdown_c"]),
        (&89.into(), &90.into())
    );
    // A little cooler isn't well yet.
    run.steps(300, 2, &at(1410.0, 0, 87.0));
    assert_eq!(run.life("overheating").len(), 1);
    run.steps(120, 2, &at(1410.0, 0, 80.0));
    assert_eq!(run.life("overheating").len(), 2);
    // For half a minute; of a GPU whose limit nobody knows; without a reading.
    let mut run = known(1);
    for _ in 0..20 {
        run.steps(30, 2, &at(1410.0, 0, 95.0));
        run.steps(30, 2, &at(1410.0, 0, 70.0));
    }
    let mut unread = at(1410.0, 0, 0.0);
    unread.gpus[0].temp_c = Reading::default();
    run.steps(300, 2, &unread);
    assert_eq!(run.alarms(), NONE);
    let mut run = Run::new();
    run.steps(600, 2, &at(1410.0, 0, 99.0));
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn heat_is_one_story_and_names_its_gpus() {
    let mut run = known(2);
    let well = at(1410.0, 0, 70.0);
    run.steps(600, 2, &both(well.clone(), &well));
    run.steps(30, 2, &both(well.clone(), &at(1400.0, 0, 91.0)));
    run.steps(300, 2, &both(well.clone(), &at(900.0, SW_HEAT, 91.0)));
    assert_eq!(run.alarms().len(), 1);
    let (hot, slow) = (run.first("overheating"), run.first("throttled"));
    assert_eq!(
        slow.because.as_deref(),
        hot.because.is_none().then_some("overheating")
    );
    assert_eq!(slow.evidence["gpus"], "1");
    // Another one joins; that is said later, and once.
    run.steps(
        1300,
        2,
        &both(at(900.0, HW_HEAT, 91.0), &at(900.0, SW_HEAT, 91.0)),
    );
    let last = run
        .said
        .iter()
        .rfind(|(_, f)| f.name == "throttled")
        .unwrap();
    assert_eq!(
        (last.1.state, &last.1.evidence["gpus"]),
        (Updated, &"0,1".into())
    );
    assert_eq!(run.life("throttled").len(), 2);
}

#[test]
fn settings_hold_for_heat_too() {
    let hot = |run: &mut Run| {
        let info = GpuInfo {
            slowdown_c: Some(90),
            ..GpuInfo::default()
        };
        run.judge.learn(vec![info]);
        run.steps(600, 2, &at(1410.0, 0, 70.0));
        run.steps(200, 2, &at(900.0, SW_HEAT, 95.0));
    };
    let mut run = Run::set("overheating", |s| {
        s.after = Limit::After(Duration::from_secs(10));
    });
    hot(&mut run);
    assert_eq!(run.alarms(), ["overheating 609"]);
    assert_eq!(run.first("throttled").severity, Severity::Note);
    let mut run = Run::set("overheating", |s| s.on = false);
    hot(&mut run);
    assert_eq!(run.alarms().len(), 1);
    assert_eq!(run.first("throttled").severity, Severity::Warning);
}

#[test]
fn memory_that_sets_the_pace_is_noted() {
    let with = |busy: f64, watts: f64| {
        let mut sample = training();
        sample.gpus[0].mem_util_pct = Reading::Value(busy);
        sample.gpus[0].power_w = Reading::Value(watts);
        sample
    };
    let mut run = Run::new();
    run.event(Event::Framework {
        name: "jax".into(),
        gpu: None,
        why: String::new(),
    });
    run.steps(700, 2, &with(92.0, 220.0));
    let found = run.first("memory-bound");
    assert_eq!(
        (found.severity, run.life("memory-bound").len()),
        (Severity::Note, 1)
    );
    assert_eq!(
        (
            &found.evidence["memory_busy_pct"],
            &found.evidence["power_pct"]
        ),
        (&92.into(), &55.into())
    );
    assert!(found.advice.as_deref().unwrap().contains("bfloat16"));
    run.steps(700, 2, &training());
    assert_eq!(run.life("memory-bound").len(), 2);
    for (busy, watts) in [(45.0, 310.0), (92.0, 380.0), (79.0, 200.0)] {
        let mut run = Run::new();
        run.steps(1300, 2, &with(busy, watts));
        assert!(run.life("memory-bound").is_empty());
    }
    // Somebody else's work on the same GPU.
    let mut shared = with(92.0, 220.0);
    shared.gpus[0].mem_used_mib = Reading::Value(60_000.0);
    let mut run = Run::new();
    run.steps(1300, 2, &shared);
    assert!(run.life("memory-bound").is_empty());
}
