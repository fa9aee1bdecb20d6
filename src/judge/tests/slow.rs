//! Slow but healthy: `data-starved`, `cpu-bound`, `low-use`, `small-batch`, `slow-step`, `behind`,
//! and what the time was spent on.

use std::time::Duration;

use super::run::{Run, quiet, training};
use crate::model::FindingState::{Cleared, Raised};
use crate::model::{Limit, Reading, Sample};

const NONE: [&str; 0] = [];

/// So many seconds of what each second gives, a step every so many.
fn go(run: &mut Run, seconds: u32, every: u32, at: impl Fn(u32) -> Sample) {
    for i in 1..=seconds {
        run.steps(1, u32::from(i % every == 0), &at(i));
    }
}

/// A GPU of 80 GiB at this load, at work in proportion.
fn load(pct: f64) -> Sample {
    let mut sample = training();
    let gpu = &mut sample.gpus[0];
    gpu.mem_total_mib = Reading::Value(81_920.0);
    gpu.util_pct = Reading::Value(pct);
    gpu.mem_util_pct = Reading::Value(0.45 * pct);
    gpu.power_w = Reading::Value(70.0 + 2.4 * pct);
    sample.job_sm_pct = vec![Reading::Value(pct)];
    sample
}

/// Two seconds at work, three at rest, and what the processors do meanwhile.
fn swings(i: u32, change: impl Fn(&mut Sample)) -> Sample {
    let mut sample = load(if i % 5 < 2 { 97.0 } else { 0.0 });
    sample.job.main_cores = Reading::Value(0.4);
    sample.job.cpu_cores = Reading::Value(0.6);
    sample.job.n_busy = Reading::Value(0);
    change(&mut sample);
    sample
}

fn cause_of(change: impl Fn(&mut Sample)) -> Option<String> {
    let mut run = Run::new();
    go(&mut run, 400, 5, |i| swings(i, &change));
    let found = run.said.iter().find(|(_, f)| f.name == "data-starved");
    assert_eq!(
        run.alarms().len(),
        usize::from(found.is_some()),
        "{:?}",
        run.alarms()
    );
    found.and_then(|(_, f)| f.cause.clone())
}

#[test]
fn a_gpu_that_waits_for_its_batches_is_starved_by_what_is_busy() {
    let workers = |s: &mut Sample| {
        s.job.n_busy = Reading::Value(4);
        s.job.cpu_cores = Reading::Value(4.6);
    };
    assert_eq!(cause_of(workers).as_deref(), Some("cpu"));
    let unlisted = |s: &mut Sample| {
        s.job.n_busy = Reading::default();
        s.job.cpu_cores = Reading::Value(4.6);
    };
    assert_eq!(cause_of(unlisted).as_deref(), Some("cpu"));
    let quota = |s: &mut Sample| s.host.cpu_throttled_pct = Reading::Value(30.0);
    assert_eq!(cause_of(quota).as_deref(), Some("cpu"));
    let disk = |s: &mut Sample| s.job.n_disk = Reading::Value(2);
    assert_eq!(cause_of(disk).as_deref(), Some("io"));
    let pressure = |s: &mut Sample| s.host.io_pressure_pct = Reading::Value(55.0);
    assert_eq!(cause_of(pressure).as_deref(), Some("io"));
    let python = |s: &mut Sample| s.job.main_cores = Reading::Value(1.0);
    assert_eq!(cause_of(python).as_deref(), Some("python"));
    let copies = |s: &mut Sample| s.gpus[0].pcie_mb_s = Reading::Value(9000.0);
    assert_eq!(cause_of(copies).as_deref(), Some("transfer"));
}

#[test]
fn swings_that_nothing_explains_are_no_alarm() {
    assert_eq!(cause_of(|_| ()), None);
    let blind = |s: &mut Sample| {
        s.job.cpu_cores = Reading::default();
        s.job.main_cores = Reading::default();
        s.job.n_busy = Reading::default();
    };
    assert_eq!(cause_of(blind), None);
}

#[test]
fn starving_is_said_after_two_minutes_and_is_over_when_use_is_high() {
    let busy = |s: &mut Sample| s.job.n_busy = Reading::Value(4);
    let mut run = Run::new();
    go(&mut run, 300, 5, |i| swings(i, busy));
    let at = run.life("data-starved")[0].1;
    assert!((110.0..140.0).contains(&at), "{at}");
    let advice = run.first("data-starved").advice.clone();
    assert!(advice.is_some_and(|a| a.contains("num_workers of a DataLoader")));
    go(&mut run, 600, 1, |_| load(95.0));
    let states: Vec<_> = run.life("data-starved").iter().map(|l| l.0).collect();
    assert_eq!(states, [Raised, Cleared]);
}

#[test]
fn a_rhythm_below_the_sampling_shows_by_its_beat() {
    let mut run = Run::new();
    // Means of a second of a wave with a period of 1.4 s, a third of it at work.
    go(&mut run, 300, 1, |i| {
        let on = (0..20).filter(|k| (f64::from(i) + f64::from(*k) / 20.0) % 1.4 < 0.49);
        let mut sample = load(5.0 * on.count() as f64);
        sample.job.n_busy = Reading::Value(5);
        sample
    });
    assert_eq!(run.alarms().len(), 1, "{:?}", run.alarms());
    assert_eq!(run.first("data-starved").cause.as_deref(), Some("cpu"));
}

#[test]
fn what_becomes_faster_once_has_not_come_and_gone() {
    let busy = |mut sample: Sample| {
        sample.job.n_busy = Reading::Value(8);
        sample
    };
    // A reading now on this side of the line of rest, now on the other one.
    let mut run = Run::new();
    go(&mut run, 600, 3, |i| {
        busy(load(if i % 2 == 0 { 8.0 } else { 12.0 }))
    });
    go(&mut run, 300, 1, |_| busy(load(95.0)));
    assert_eq!(run.alarms(), NONE);
    // Use isn't told, and the GPU never rested: its steady power isn't that of an idle one.
    let unseen = |watts: f64| {
        let mut sample = busy(load(95.0));
        let gpu = &mut sample.gpus[0];
        gpu.power_w = Reading::Value(watts);
        gpu.util_pct = Reading::default();
        gpu.mem_util_pct = Reading::default();
        sample.job_sm_pct = vec![Reading::default()];
        sample
    };
    let mut run = Run::new();
    go(&mut run, 1200, 3, |i| {
        unseen(if i % 2 == 0 { 165.0 } else { 185.0 })
    });
    assert!(run.life("low-use").is_empty(), "{:?}", run.first("low-use"));
    go(&mut run, 300, 1, |_| unseen(310.0));
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn steady_low_use_evaluations_and_drifts_are_no_starving() {
    let busy = |pct: f64| {
        let mut sample = load(pct);
        sample.job.n_busy = Reading::Value(8);
        sample
    };
    let mut steady = Run::new();
    go(&mut steady, 1200, 1, |_| busy(35.0));
    assert_eq!(steady.alarms(), NONE);
    let mut drift = Run::new();
    go(&mut drift, 1200, 1, |i| {
        busy(25.0 + f64::from(i % 600) / 20.0)
    });
    assert_eq!(drift.alarms(), NONE);
    let mut evaluates = Run::new();
    for _ in 0..6 {
        go(&mut evaluates, 100, 1, |_| load(95.0));
        evaluates.go(100, &busy(0.0));
    }
    assert_eq!(evaluates.alarms(), NONE);
}

#[test]
fn processors_that_take_their_turn_are_said_once() {
    let mut run = Run::new();
    go(&mut run, 7200, 60, |i| {
        let mut sample = load(if i % 60 < 40 { 0.0 } else { 95.0 });
        sample.job.cpu_cores = Reading::Value(if i % 60 < 40 { 30.0 } else { 3.0 });
        sample.job.n_busy = Reading::Value(30);
        sample
    });
    assert_eq!(run.alarms(), NONE);
    assert_eq!(run.life("cpu-bound").len(), 1);
    assert_eq!(run.life("low-use"), []);
}

#[test]
fn low_use_is_a_note_with_its_kind() {
    let mut even = Run::new();
    go(&mut even, 1200, 1, |_| load(40.0));
    assert_eq!(even.first("low-use").cause, None);
    assert_eq!(even.first("low-use").evidence["gpu_util_pct"], 40);
    let mut uneven = Run::new();
    go(&mut uneven, 1200, 1, |i| {
        let mut sample = load(if i % 3 == 0 { 90.0 } else { 2.0 });
        sample.job.cpu_cores = Reading::Value(0.5);
        sample
    });
    assert_eq!(
        uneven.first("low-use").cause.as_deref(),
        Some("fluctuating")
    );
    let mut fine = Run::new();
    go(&mut fine, 1200, 1, |_| load(80.0));
    fine.finish(0);
    assert!(fine.said.is_empty(), "{:?}", fine.said);
}

#[test]
fn a_short_run_is_told_at_its_end() {
    let mut run = Run::new();
    go(&mut run, 150, 1, |_| load(20.0));
    assert!(run.said.is_empty());
    run.finish(0);
    let advice = run.first("low-use").advice.clone();
    assert!(advice.is_some_and(|a| a.contains("bad")));
}

#[test]
fn an_empty_card_takes_a_larger_batch() {
    let small = |pct: f64| {
        let mut sample = load(pct);
        sample.gpus[0].mem_used_mib = Reading::Value(8000.0);
        sample.job_mem_mib = vec![Reading::Value(7900.0)];
        sample
    };
    let mut run = Run::new();
    go(&mut run, 1200, 1, |_| small(60.0));
    assert_eq!(run.life("small-batch").len(), 1);
    let mut low = Run::new();
    go(&mut low, 1200, 1, |_| small(30.0));
    assert_eq!(
        (low.life("small-batch").len(), low.life("low-use").len()),
        (1, 0)
    );
    let mut busy = Run::new();
    go(&mut busy, 1200, 1, |_| small(90.0));
    assert_eq!(busy.life("small-batch"), []);
}

#[test]
fn slower_steps_are_a_note_until_they_are_fast_again() {
    let mut run = Run::new();
    run.steps(1800, 2, &load(95.0)).steps(1800, 4, &load(95.0));
    let found = run.first("slow-step");
    assert_eq!(found.evidence["rate_pct"], 50);
    assert_eq!(found.evidence["of"], "steps");
    run.steps(1800, 2, &load(95.0));
    let states: Vec<_> = run.life("slow-step").iter().map(|l| l.0).collect();
    assert_eq!(states, [Raised, Cleared]);
    let mut evaluates = Run::new();
    for _ in 0..10 {
        evaluates.steps(600, 2, &load(95.0)).go(200, &load(50.0));
    }
    assert_eq!(evaluates.life("slow-step"), []);
}

#[test]
fn an_eta_past_the_deadline_is_said_when_it_is_sure() {
    let with_eta = |eta: f64| {
        let mut sample = load(95.0);
        sample.progress.eta_s = Some(eta);
        sample
    };
    let set = || {
        Run::set("behind", |s| {
            s.after = Limit::After(Duration::from_secs(3600));
        })
    };
    let mut late = set();
    go(&mut late, 1000, 1, |i| with_eta(7200.0 - f64::from(i)));
    assert_eq!(late.alarms().len(), 1);
    assert_eq!(late.first("behind").evidence["late_s"], 3600);
    go(&mut late, 1000, 1, |_| with_eta(1000.0));
    assert_eq!(late.life("behind").len(), 2);
    let mut once = set();
    go(&mut once, 1000, 1, |i| {
        with_eta(if i % 100 == 0 { 9e4 } else { 2000.0 })
    });
    assert_eq!(once.alarms(), NONE);
    let mut unasked = Run::new();
    go(&mut unasked, 1000, 1, |_| with_eta(1e6));
    assert_eq!(unasked.alarms(), NONE);
}

#[test]
fn time_adds_up_and_is_put_down_to_what_was_done() {
    let mut run = Run::new();
    run.go(100, &super::run::on_cpu(1.0));
    run.steps(1000, 1, &load(95.0));
    run.go(60, &load(60.0)).steps(1000, 1, &load(95.0));
    let mut saves = quiet();
    saves.job.write_mb_s = Reading::Value(300.0);
    run.go(60, &saves).steps(500, 1, &load(95.0));
    run.go(300, &quiet());
    let spent = run.judge.spent();
    let near = |name: &str, is: f64, wanted: f64| {
        assert!(
            (is - wanted).abs() <= 3.0,
            "{name}: {is}, not {wanted}: {spent:?}"
        );
    };
    near("total", spent.total_s(), run.t);
    near("starting", spent.starting_s, 100.0);
    near("training", spent.training_s, 2500.0);
    near("evaluating", spent.evaluating_s, 60.0);
    near("checkpointing", spent.checkpointing_s, 60.0);
    near("stalled", spent.stalled_s, 300.0);
}

#[test]
fn time_without_data_is_no_training() {
    let mut run = Run::new();
    go(&mut run, 1000, 5, |i| {
        swings(i, |s| s.job.n_busy = Reading::Value(4))
    });
    let spent = run.judge.spent();
    let rest = spent.waiting_for_data_s / spent.total_s();
    assert!((0.55..0.65).contains(&rest), "{spent:?}");
}
