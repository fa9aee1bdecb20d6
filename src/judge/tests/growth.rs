//! `memory-leak` and `near-oom`: memory that grows, and what only looks like it.

use std::time::Duration;

use super::run::{Run, training};
use crate::judge::JobFacts;
use crate::model::FindingState::{Cleared, Raised, Updated};
use crate::model::{Event, Limit, Phase, ProgressChange, Reading, Sample, Severity};

const NONE: [&str; 0] = [];
const GIB: f64 = 1024.0;

/// A training that holds so much of a card of 80 GiB.
fn holding(mib: f64) -> Sample {
    let mut sample = training();
    let gpu = &mut sample.gpus[0];
    gpu.mem_total_mib = Reading::Value(80.0 * GIB);
    gpu.mem_used_mib = Reading::Value(mib + 5.0);
    sample.job_mem_mib = vec![Reading::Value(mib)];
    sample.job.anon_mib = Reading::Value(3000.0);
    sample.job.shmem_mib = Reading::Value(500.0);
    sample.host.mem_limit_mib = Reading::Value(256.0 * GIB);
    sample
}

/// The same, with so much of main memory.
fn on_host(mib: f64) -> Sample {
    let mut sample = holding(40.0 * GIB);
    sample.job.anon_mib = Reading::Value(mib - 500.0);
    sample
}

/// So many epochs of so many seconds, the memory of each second by `make` of (epoch, second).
fn epochs(run: &mut Run, n: u32, seconds: u32, make: impl Fn(f64, u32) -> Sample) {
    let first = (run.t / f64::from(seconds)).round() as u32;
    for epoch in first..first + n {
        for second in 0..seconds {
            let mut sample = make(f64::from(epoch), second);
            sample.progress.epoch = Some(f64::from(epoch + 1));
            run.steps(1, u32::from(second % 2 == 0), &sample);
        }
    }
}

/// Three GiB up and down within ten seconds.
fn sawtooth(second: u32) -> f64 {
    3.0 * GIB * (f64::from(second % 10) / 5.0 - 1.0)
}

fn number(run: &Run, name: &str, key: &str) -> f64 {
    run.first(name).evidence[key].as_f64().unwrap()
}

#[test]
fn a_leak_shows_after_ten_epochs_and_tells_how_long_it_can_go_on() {
    let mut run = Run::new();
    epochs(&mut run, 12, 120, |epoch, s| {
        holding(20.0 * GIB + 256.0 * epoch + sawtooth(s))
    });
    assert_eq!(run.alarms(), ["memory-leak 1201"]);
    let found = run.first("memory-leak");
    assert_eq!(found.cause.as_deref(), Some("gpu"));
    assert_eq!(found.severity, Severity::Warning);
    assert_eq!(found.evidence["mib_per_epoch"], 256);
    assert_eq!(found.evidence["gpu"], 0);
    // 60 GiB at 7.5 GiB an hour, less what is taken since and the peaks.
    let hours = number(&run, "memory-leak", "hours_to_limit");
    assert!((7.0..8.0).contains(&hours), "{hours}");
    // It is freed: that is the end of it.
    epochs(&mut run, 8, 120, |_, s| holding(21.0 * GIB + sawtooth(s)));
    let life = run.life("memory-leak");
    assert_eq!((life.len(), life[1].0), (2, Cleared));
    assert!(life[1].1 <= 1441.0 + 4.0 * 120.0, "{life:?}");
}

#[test]
fn a_leak_that_no_longer_grows_is_over() {
    let mut run = Run::new();
    epochs(&mut run, 30, 120, |epoch, _| {
        holding(20.0 * GIB + 256.0 * epoch.min(14.0))
    });
    let life = run.life("memory-leak");
    assert_eq!((life.len(), life[1].0), (2, Cleared));
}

#[test]
fn a_leak_far_from_the_limit_is_a_note_that_becomes_an_alarm() {
    // 34 MiB in 120 s are a GiB an hour.
    let mut run = Run::new();
    epochs(&mut run, 12, 120, |epoch, _| {
        holding(10.0 * GIB + 34.0 * epoch)
    });
    assert_eq!(run.alarms(), NONE);
    assert_eq!(run.first("memory-leak").severity, Severity::Note);
    epochs(&mut run, 30, 120, |epoch, _| {
        let faster = 10.0 * GIB + 34.0 * epoch + 400.0 * (epoch - 12.0);
        holding(faster)
    });
    let life = run.life("memory-leak");
    assert_eq!((life[0].0, life[1].0), (Raised, Updated));
    let worse = run.said.iter().rfind(|(_, f)| f.state == Updated);
    assert_eq!(worse.unwrap().1.severity, Severity::Warning);
}

#[test]
fn what_is_taken_at_once_or_in_steps_and_stays_is_no_leak() {
    let kinds: [&dyn Fn(f64, u32) -> f64; 7] = [
        // Preallocated.
        &|_, _| 76.0,
        // An allocator that grows in steps, ever more seldom, and keeps what it has.
        &|e, _| 20.0 + 3.0 * (e + 1.0).ln().floor(),
        &|e, _| 20.0 + 2.0 * (e / 4.0).floor().min(3.0),
        // Data moved to the GPU in the first epochs.
        &|e, s| 20.0 + (15.0 * (e + f64::from(s) / 120.0)).min(25.0),
        // Bucketed lengths: up and down without a trend.
        &|e, s| 30.0 + f64::from((s * 7919 + e as u32 * 104_729) % 1000) / 100.0,
        // A larger batch in the evaluation at each epoch's end.
        &|_, s| if s >= 110 { 60.0 } else { 30.0 },
        // A curriculum with three levels.
        &|e, _| 20.0 + 10.0 * (e / 10.0).floor().min(2.0),
    ];
    for (i, gib) in kinds.iter().enumerate() {
        let mut run = Run::new();
        epochs(&mut run, 40, 120, |e, s| holding(GIB * gib(e, s)));
        assert_eq!(run.alarms(), NONE, "{i}");
        assert!(run.life("memory-leak").is_empty(), "{i}");
    }
}

#[test]
fn without_epochs_ten_minutes_are_a_block() {
    let mut run = Run::new();
    for i in 0..7200 {
        run.steps(1, 1, &holding(20.0 * GIB + f64::from(i)));
    }
    assert_eq!(run.alarms(), ["memory-leak 6001"]);
    assert!(
        !run.first("memory-leak")
            .evidence
            .contains_key("mib_per_epoch")
    );
    assert!((number(&run, "memory-leak", "mib_per_hour") - 3600.0).abs() < 10.0);
    let hours = number(&run, "memory-leak", "hours_to_limit");
    assert!((14.0..16.0).contains(&hours), "{hours}");
}

#[test]
fn short_epochs_are_put_together_and_a_trial_begins_anew() {
    let mut run = Run::new();
    // 3 MiB in each of 7 s: 27 MiB in nine epochs, 108 in 36.
    epochs(&mut run, 400, 7, |epoch, _| {
        holding(20.0 * GIB + 3.0 * epoch)
    });
    assert_eq!(run.first("memory-leak").evidence["mib_per_epoch"], 3);
    // Trials of a sweep, each larger than the last.
    let mut run = Run::new();
    for trial in 0..20 {
        for epoch in 0..5 {
            let mut sample = holding(10.0 * GIB + 2.0 * GIB * f64::from(trial));
            sample.progress.epoch = Some(f64::from(epoch));
            run.steps(120, 2, &sample);
        }
        run.go(20, &holding(0.0));
    }
    assert!(run.life("memory-leak").is_empty(), "{:?}", run.said);
}

#[test]
fn an_epoch_may_be_told_by_an_event_or_by_steps_that_begin_anew() {
    for by_event in [true, false] {
        let mut run = Run::new();
        for epoch in 0..14_u32 {
            for step in 0..120_u32 {
                let mut sample = holding(20.0 * GIB + 256.0 * f64::from(epoch));
                sample.progress.step =
                    Some(if by_event { 120 * epoch + step } else { step }.into());
                run.t += 1.0;
                run.look(sample);
            }
            if by_event {
                run.event(Event::Progress {
                    change: ProgressChange::EpochEnd,
                    source: String::new(),
                    phase: Phase::Train,
                    rank: None,
                    epoch: None,
                    epochs: None,
                    step: None,
                    steps: None,
                    percent: None,
                    loss: None,
                });
            }
        }
        assert_eq!(run.alarms().len(), 1, "{by_event}");
        assert_eq!(run.first("memory-leak").evidence["mib_per_epoch"], 256);
    }
}

#[test]
fn each_gpu_is_looked_at_by_itself_and_others_are_left_out() {
    let two = |a: f64, b: f64, others: f64| {
        let mut sample = holding(a);
        let mut second = sample.gpus[0].clone();
        second.index = 1;
        second.mem_used_mib = Reading::Value(b + others);
        sample.gpus.push(second);
        sample.job_mem_mib.push(Reading::Value(b));
        sample.job_sm_pct.push(Reading::Value(95.0));
        sample
    };
    let mut run = Run::new();
    epochs(&mut run, 14, 120, |e, _| {
        two(30.0 * GIB - 200.0 * e, 30.0 * GIB + 200.0 * e, 10.0 * GIB)
    });
    let found = run.first("memory-leak");
    assert_eq!(
        (&found.evidence["gpu"], &found.evidence["limit_mib"]),
        (&1.into(), &71_680.into())
    );
    // Somebody else's leak.
    let mut run = Run::new();
    epochs(&mut run, 20, 120, |e, _| {
        two(30.0 * GIB, 10.0 * GIB, 1000.0 * e)
    });
    assert!(run.life("memory-leak").is_empty());
}

#[test]
fn mig_devices_of_one_gpu_are_two_devices() {
    let mut run = Run::new();
    epochs(&mut run, 14, 120, |e, _| {
        let mut sample = holding(5.0 * GIB);
        sample.gpus[0].mig = Some("MIG-b".into());
        sample.gpus[0].mem_total_mib = Reading::Value(20.0 * GIB);
        let mut second = sample.gpus[0].clone();
        second.mig = Some("MIG-a".into());
        sample.gpus.push(second);
        let leaks = Reading::Value(5.0 * GIB + 100.0 * e);
        sample.job_mem_mib.push(leaks.clone());
        sample.gpus[1].mem_used_mib = leaks;
        sample
    });
    let found = run.first("memory-leak");
    assert_eq!(found.evidence["gpu"], "MIG-a");
    assert_eq!(found.evidence["limit_mib"], 20_480);
}

#[test]
fn memory_of_the_host_leaks_too_and_pages_of_files_are_none() {
    let mut run = Run::new();
    run.event(Event::Framework {
        name: "pytorch".into(),
        gpu: None,
        why: String::new(),
    });
    epochs(&mut run, 14, 120, |e, _| on_host(4.0 * GIB + 40.0 * e));
    assert_eq!(run.alarms(), NONE);
    let found = run.first("memory-leak");
    assert_eq!(found.cause.as_deref(), Some("host"));
    assert_eq!(found.evidence["mib_per_epoch"], 40);
    assert!(found.advice.as_deref().unwrap().contains("tracemalloc"));
    let small = |e: f64| {
        let mut sample = on_host(4.0 * GIB + 40.0 * e);
        sample.host.mem_limit_mib = Reading::Value(16.0 * GIB);
        sample
    };
    let mut run = Run::new();
    epochs(&mut run, 14, 120, |e, _| small(e));
    assert_eq!(run.alarms(), ["memory-leak 1201"]);
    // A limit that isn't told is none to be near to.
    let mut run = Run::new();
    epochs(&mut run, 14, 120, |e, _| {
        let mut sample = small(e);
        sample.host.mem_limit_mib = Reading::default();
        sample
    });
    assert_eq!(run.alarms(), NONE);
    assert_eq!(run.life("memory-leak").len(), 1);
    // Mapped files, and a checkpoint in shared memory for ten seconds of each epoch.
    let mut run = Run::new();
    epochs(&mut run, 20, 120, |e, s| {
        let mut sample = on_host(4.0 * GIB);
        sample.job.rss_mib = Reading::Value(4.0 * GIB + 2000.0 * e);
        let saves = if s < 10 {
            30.0 * GIB + 1000.0 * e
        } else {
            500.0
        };
        sample.job.shmem_mib = Reading::Value(saves);
        sample
    });
    assert!(run.life("memory-leak").is_empty());
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn a_buffer_that_fills_is_no_alarm() {
    // The first epoch fills a cache of 60 GiB.
    let mut run = Run::new();
    epochs(&mut run, 10, 3600, |e, s| {
        let filled = if e < 1.0 { f64::from(s) / 60.0 } else { 60.0 };
        on_host(GIB * (4.0 + filled))
    });
    assert_eq!(run.alarms(), NONE);
    // A replay buffer of 28 GiB that fills in five hours; no epochs are shown.
    let mut run = Run::new();
    for i in 0..30_000 {
        run.steps(
            1,
            1,
            &on_host(GIB * (4.0 + (f64::from(i) / 643.0).min(28.0))),
        );
    }
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn memory_that_is_nearly_full_and_grows_is_told() {
    // 1 GiB a minute from 20 GiB on: 92 % after 54 minutes.
    let mut run = Run::new();
    for i in 0..3600 {
        run.steps(1, 1, &holding(20.0 * GIB + f64::from(i) * GIB / 60.0));
    }
    let life = run.life("near-oom");
    assert_eq!((life[0].0, life[1].0), (Raised, Updated));
    assert!((3215.0..3240.0).contains(&life[0].1), "{life:?}");
    let found = run.first("near-oom");
    assert_eq!(found.severity, Severity::Warning);
    assert!((number(&run, "near-oom", "minutes_to_limit") - 6.4).abs() < 0.5);
    let worse = &run
        .said
        .iter()
        .rfind(|(_, f)| f.name == "near-oom")
        .unwrap()
        .1;
    assert_eq!(worse.severity, Severity::Critical);
    // It stays as it is: over after a quarter of an hour.
    run.steps(1200, 1, &holding(79.0 * GIB));
    assert_eq!(run.life("near-oom").last().map(|l| l.0), Some(Cleared));
    // What runs out then is the same story.
    let mut run = Run::new();
    for i in 0..3500 {
        run.steps(1, 1, &holding(20.0 * GIB + f64::from(i) * GIB / 60.0));
    }
    run.line("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB");
    assert_eq!(run.first("oom").because.as_deref(), Some("near-oom"));
}

#[test]
fn full_memory_that_does_not_grow_is_no_alarm() {
    // An allocator that takes ever less, in steps that chance put one in each two minutes.
    let taken = [
        (941, 75.6),
        (823, 73.9),
        (641, 71.3),
        (501, 67.3),
        (440, 60.7),
        (275, 51.6),
        (224, 44.6),
        (0, 30.0),
    ];
    let kinds: [&dyn Fn(u32) -> f64; 7] = [
        &|_| 79.5,
        // Batches of all lengths in the first five minutes.
        &|t| (20.0 + f64::from(t) / 5.0).min(78.0),
        // Full after the first steps; in steps within an hour; ever more slowly.
        &|t| (f64::from(t) * 2.0).min(78.0),
        &|t| (50.0 + 10.0 * (f64::from(t) / 900.0).floor()).min(79.0),
        &|t| 79.0 - 60.0 * (-f64::from(t) / 600.0).exp(),
        &|t| 70.0 + 8.0 * f64::from((t * 7919) % 100) / 100.0,
        &|t| {
            let step = taken.iter().find(|(at, _)| *at <= t);
            step.map_or(30.0, |(_, gib)| *gib)
        },
    ];
    for (i, gib) in kinds.iter().enumerate() {
        let mut run = Run::new();
        run.steps(10, 1, &holding(GIB * gib(0)));
        for t in 0..7200 {
            run.steps(1, 1, &holding(GIB * gib(t)));
        }
        assert_eq!(run.alarms(), NONE, "{i}");
    }
    // What an epoch gathers goes at its end, and came to 95 % in the first one.
    let mut run = Run::new();
    epochs(&mut run, 8, 900, |_, s| {
        holding(GIB * (60.0 + 16.0 * f64::from(s) / 900.0))
    });
    assert_eq!(run.alarms(), NONE);
    // A model is loaded for twenty minutes.
    let mut run = Run::new();
    for t in 0..1200 {
        let mut sample = holding(GIB * f64::from(t) / 16.0);
        sample.gpus[0].util_pct = Reading::Value(0.0);
        sample.job_sm_pct = vec![Reading::Value(0.0)];
        run.go(1, &sample);
    }
    run.steps(3600, 1, &holding(75.0 * GIB));
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn near_oom_is_explained_by_a_leak_and_names_its_limit() {
    let mut run = Run::new();
    epochs(&mut run, 30, 120, |e, _| holding((50.0 + e) * GIB));
    assert_eq!(run.alarms().len(), 1);
    assert_eq!(
        run.first("near-oom").because.as_deref(),
        Some("memory-leak")
    );
    assert_eq!(run.first("near-oom").severity, Severity::Note);
    for (host_gib, cause) in [(256.0, "host"), (512.0, "cgroup")] {
        let mut run = Run::new();
        run.facts(JobFacts {
            host_mem_mib: Some(host_gib * GIB),
            ..JobFacts::default()
        });
        for i in 0..1500 {
            run.steps(1, 1, &on_host(GIB * (200.0 + f64::from(i) / 30.0)));
        }
        let found = run.first("near-oom");
        assert_eq!(found.cause.as_deref(), Some(cause));
    }
    // More than there is: shared pages were counted for each process, and nothing is known.
    let mut run = Run::new();
    run.steps(10, 1, &on_host(300.0 * GIB));
    for i in 0..1500 {
        run.steps(1, 1, &on_host(GIB * (200.0 + f64::from(i) / 30.0)));
    }
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn settings_hold_for_growth_too() {
    let leak = |run: &mut Run| {
        epochs(run, 20, 120, |e, _| holding(20.0 * GIB + 256.0 * e));
    };
    let mut run = Run::set("memory_leak", |s| s.on = false);
    leak(&mut run);
    assert!(run.life("memory-leak").is_empty());
    let mut run = Run::set("memory_leak", |s| {
        s.after = Limit::After(Duration::from_secs(1800));
    });
    leak(&mut run);
    assert!(run.life("memory-leak")[0].1 >= 1800.0);
    let mut run = Run::set("near_oom", |s| s.severity = Some(Severity::Note));
    for i in 0..3600 {
        run.steps(1, 1, &holding(20.0 * GIB + f64::from(i) * GIB / 60.0));
    }
    assert_eq!(run.alarms(), NONE);
    assert_eq!(run.life("near-oom").len(), 1);
}
