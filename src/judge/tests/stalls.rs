//! `stalled`, `idle-holding`, `suspended`, `waiting-for-input`, and the phases between.

use std::time::Duration;

use super::run::{Run, on_cpu, quiet, spinning, training};
use crate::model::FindingState::{Cleared, Raised, Updated};
use crate::model::{Event, JudgeSettings, ProcessChange, Reading, Sample, Severity};

const NONE: [&str; 0] = [];

#[test]
fn a_sleeping_loader_is_a_stall_after_two_minutes_and_clears() {
    let mut run = Run::new();
    run.steps(600, 2, &training()).go(300, &quiet());
    assert_eq!(run.alarms(), ["stalled 720"]);
    let found = run.first("stalled");
    assert_eq!(found.cause.as_deref(), Some("asleep"));
    assert_eq!(found.since_s.to_bits(), 600_f64.to_bits());
    assert_eq!(found.evidence["step"], 300);
    assert_eq!(found.evidence["age_s"], 120);
    run.steps(10, 2, &training());
    let life = run.life("stalled");
    assert_eq!(life, [(Raised, 720.0), (Updated, 840.0), (Cleared, 904.0)]);
}

#[test]
fn who_polls_now_and_then_is_asleep() {
    let mut polls = quiet();
    polls.job.n_run = Reading::Value(1);
    let mut run = Run::new();
    run.steps(600, 2, &training()).go(119, &quiet());
    run.go(1, &polls);
    assert_eq!(run.alarms(), ["stalled 720"]);
    assert_eq!(run.first("stalled").cause.as_deref(), Some("asleep"));
    let mut run = Run::new();
    run.steps(600, 2, &training()).go(100, &polls);
    run.go(30, &quiet());
    assert_eq!(run.first("stalled").cause.as_deref(), Some("unknown"));
}

#[test]
fn who_waits_for_a_rank_that_ended_is_told_after_a_minute() {
    use ProcessChange::{Exited, Started};
    let mut run = Run::new();
    run.rank(0, Started).rank(1, Started);
    run.steps(600, 2, &training()).rank(1, Exited);
    run.go(100, &quiet());
    assert_eq!(run.alarms(), ["stalled 661"]);
    let found = run.first("stalled");
    assert_eq!(found.cause.as_deref(), Some("lost-rank"));
    assert_eq!(found.evidence["lost_rank"], 1);
    // All are started anew.
    let mut run = Run::new();
    run.rank(0, Started).rank(1, Started);
    run.steps(600, 2, &training()).rank(1, Exited);
    run.rank(0, Exited).rank(0, Started).rank(1, Started);
    run.go(100, &quiet());
    assert_eq!(run.alarms(), NONE);
    // As many as are left are.
    let mut run = Run::new();
    run.rank(0, Started).rank(1, Started);
    run.steps(600, 2, &training()).rank(0, Exited);
    run.rank(1, Exited).rank(0, Started);
    run.go(100, &quiet());
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn a_spin_is_a_stall_after_a_minute() {
    let mut run = Run::new();
    run.steps(600, 2, &training());
    run.go(60, &training()).steps(300, 2, &training());
    run.go(200, &spinning());
    assert_eq!(run.first("stalled").cause.as_deref(), Some("spin"));
    let at = run.life("stalled")[0].1;
    assert!((1020.0..1140.0).contains(&at), "{at}");
    assert_eq!(run.alarms().len(), 1);
}

#[test]
fn with_a_limit_of_its_own_the_floors_are_off() {
    let mut run = Run::stall_after(5);
    run.steps(50, 1, &training()).go(8, &spinning());
    assert_eq!(run.alarms(), ["stalled 55"]);
    let mut run = Run::stall_after(5);
    run.go(4, &on_cpu(1.0)).go(10, &quiet());
    assert_eq!(run.alarms(), ["stalled 9"]);
}

#[test]
fn an_epoch_printer_is_given_an_hour_of_work_and_three_minutes_of_rest() {
    let mut run = Run::new();
    run.steps(7200, 3600, &training()).go(1000, &training());
    assert_eq!(run.alarms(), NONE);
    run.go(300, &quiet());
    assert_eq!(run.alarms(), ["stalled 8380"]);
}

#[test]
fn work_without_progress_is_no_stall() {
    let mut run = Run::new();
    run.steps(600, 2, &training()).go(3600, &training());
    assert_eq!(run.alarms(), NONE);
    assert!(!run.life("no-visible-progress").is_empty());
    let mut cpu = training();
    cpu.gpus[0] = quiet().gpus[0].clone();
    cpu.job_sm_pct = quiet().job_sm_pct;
    cpu.job.cpu_cores = Reading::Value(1.0);
    let mut run = Run::new();
    run.steps(600, 2, &training()).go(1200, &cpu);
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn a_checkpoint_to_slow_storage_is_no_stall_but_storage_without_bytes_is() {
    let mut writes = quiet();
    writes.job.n_disk = Reading::Value(1);
    writes.job.write_mb_s = Reading::Value(200.0);
    let mut run = Run::new();
    run.steps(600, 3, &training())
        .go(500, &writes)
        .steps(9, 3, &training());
    assert_eq!(run.alarms(), NONE);
    assert_eq!(run.life("checkpointing").len(), 2);
    let mut stuck = quiet();
    stuck.job.n_disk = Reading::Value(1);
    run.go(400, &stuck);
    assert_eq!(run.first("stalled").cause.as_deref(), Some("storage"));
}

#[test]
fn a_stopped_job_and_one_that_asks_are_told_and_left_alone() {
    let mut stopped = quiet();
    stopped.job.n_stopped = Reading::Value(5);
    stopped.job.n_sleep = Reading::Value(0);
    let mut run = Run::new();
    run.steps(600, 2, &training()).go(3600, &stopped);
    run.steps(60, 2, &training());
    assert_eq!(run.alarms(), NONE);
    let life = run.life("suspended");
    assert_eq!(life, [(Raised, 604.0), (Cleared, 4201.0)]);

    for by_prompt in [true, false] {
        let mut run = Run::new();
        run.steps(600, 2, &training());
        if by_prompt {
            run.line("(Pdb) ");
        } else {
            run.process(7, ProcessChange::Blocked, Some("terminal"));
        }
        run.go(3600, &quiet());
        run.process(7, ProcessChange::Running, None);
        run.steps(60, 2, &training());
        assert_eq!(run.alarms(), NONE);
        let life = run.life("waiting-for-input");
        assert_eq!(life.len(), 2, "{life:?}");
        assert!(life[0].1 < 615.0);
    }
}

/// At rest, but for so many busy cores.
fn busy(cores: f64) -> Sample {
    let mut sample = quiet();
    sample.job.cpu_cores = Reading::Value(cores);
    sample.job.n_run = Reading::Value(1);
    sample
}

#[test]
fn one_busy_core_for_ten_minutes_is_a_stall_unless_such_phases_were_seen() {
    let epochs = || {
        let mut run = Run::new();
        run.steps(5400, 900, &training()).go(450, &training());
        run
    };
    let mut run = epochs();
    run.go(1200, &busy(1.0));
    let at = run.life("stalled")[0].1;
    assert!((6449.0..6465.0).contains(&at), "{:?}", run.alarms());
    assert!((5849.0..5862.0).contains(&run.first("stalled").since_s));
    // The busy core alone doesn't end it; work does.
    assert!(run.life("stalled").iter().all(|l| l.0 != Cleared));
    run.go(70, &training());
    assert_eq!(run.life("stalled").last().map(|l| l.0), Some(Cleared));
    // Two cores, bytes, new processes or a growing memory are no loop.
    let mut writes = busy(1.0);
    writes.job.write_mb_s = Reading::Value(2.0);
    let mut forks = busy(1.0);
    forks.job.forks = Reading::Value(1);
    for works in [busy(2.0), writes, forks] {
        let mut run = epochs();
        run.go(1500, &works);
        assert_eq!(run.alarms(), NONE);
    }
    // An evaluation on one core took five minutes: this one may take 25.
    let mut run = epochs();
    run.go(300, &busy(1.0)).steps(900, 450, &training());
    run.go(1400, &busy(1.0));
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn a_busy_core_beside_a_gpu_whose_use_is_not_told_has_one_limit() {
    let untold = |mut sample: Sample| {
        sample.gpus[0].util_pct = Reading::default();
        sample.gpus[0].mem_util_pct = Reading::default();
        sample.job_sm_pct = vec![Reading::default()];
        sample
    };
    let mut run = Run::new();
    run.steps(1200, 2, &untold(training()));
    run.go(1000, &untold(busy(1.0)));
    let at = run.life("stalled")[0].1;
    assert!((1799.0..1815.0).contains(&at), "{:?}", run.alarms());
    let mut run = Run::new();
    run.steps(1200, 2, &training()).go(1000, &busy(1.0));
    assert_eq!(run.alarms(), NONE);
    // Who makes progress on one core has work for it without progress, too.
    let mut run = Run::new();
    for _ in 0..5 {
        run.steps(1200, 1, &untold(busy(0.9)))
            .go(110, &untold(busy(0.9)));
    }
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn a_spin_in_the_place_of_an_evaluation_is_no_evaluation() {
    let evaluated = |with: &Sample| {
        let mut run = Run::new();
        for _ in 0..3 {
            run.steps(600, 2, &training()).go(100, with);
        }
        run.steps(600, 2, &training());
        run
    };
    let mut run = evaluated(&busy(4.0));
    run.go(400, &spinning());
    let at = run.life("stalled")[0].1;
    assert!((2761.0..2772.0).contains(&at), "{:?}", run.alarms());
    // Where ranks have waited as long for one that evaluates, they may again.
    let mut alone = spinning();
    alone.job.cpu_cores = Reading::Value(3.0);
    let mut run = evaluated(&alone);
    run.go(140, &spinning());
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn who_rests_for_much_of_the_time_is_not_suspicious_by_it() {
    let mut run = Run::new();
    for rest in [40, 55, 30, 60, 45, 50, 40, 190, 35, 60] {
        run.go(70, &training()).go(rest - 1, &quiet());
        run.steps(1, 1, &quiet());
    }
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn waiting_for_storage_is_told_by_events_as_well() {
    let mut stateless = quiet();
    stateless.job.n_disk = Reading::default();
    stateless.job.n_run = Reading::default();
    let mut run = Run::new();
    run.steps(600, 2, &training());
    run.process(7, ProcessChange::Blocked, Some("net-fs"));
    run.go(300, &stateless);
    assert_eq!(run.first("stalled").cause.as_deref(), Some("storage"));
}

#[test]
fn noise_around_no_use_is_no_activity() {
    let mut run = Run::new();
    run.steps(600, 2, &training());
    let noise = [0.0, 3.1, 0.4, 5.2, 0.0, 2.0, 0.0, 4.0, 1.2, 0.0, 6.1];
    for second in 0..300_usize {
        let mut sample = quiet();
        let gpu = &mut sample.gpus[0];
        gpu.util_pct = Reading::Value(noise[second % 11]);
        gpu.mem_util_pct = Reading::Value(2.0 * noise[(second + 4) % 11]);
        sample.job_sm_pct = vec![Reading::Value(noise[second % 11])];
        run.go(1, &sample);
    }
    let at = run.life("stalled")[0].1;
    assert!((720.0..740.0).contains(&at), "{:?}", run.alarms());
    // Little use that is there is some.
    let mut little = quiet();
    little.gpus[0].util_pct = Reading::Value(8.0);
    little.job_sm_pct = vec![Reading::Value(8.0)];
    let mut run = Run::new();
    run.steps(600, 2, &training()).go(1500, &little);
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn one_stopped_rank_does_not_make_a_job_suspended() {
    // States are not told, and of all processes only the one that was stopped is known.
    let stateless = |mut sample: Sample| {
        sample.job.n_run = Reading::default();
        sample.job.n_sleep = Reading::default();
        sample.job.n_stopped = Reading::default();
        sample
    };
    let mut run = Run::new();
    run.steps(600, 2, &training());
    run.process(7, ProcessChange::Stopped, None);
    run.go(300, &stateless(spinning()));
    assert_eq!(run.life("suspended"), []);
    assert_eq!(run.first("stalled").cause.as_deref(), Some("spin"));
    // Who takes no time at all is stopped as a whole.
    let mut run = Run::new();
    run.steps(600, 2, &training());
    run.process(7, ProcessChange::Stopped, None);
    run.go(300, &stateless(quiet()));
    assert_eq!(run.alarms(), NONE);
    assert_eq!(run.life("suspended").len(), 1);
}

#[test]
fn a_short_limit_does_not_outrun_a_prompt() {
    let mut run = Run::stall_after(2);
    run.line("(Pdb) ").go(20, &quiet());
    assert_eq!(run.alarms(), NONE);
    assert!(!run.life("waiting-for-input").is_empty());
}

#[test]
fn a_gap_of_the_sampler_is_nobodys_silence() {
    let mut run = Run::new();
    run.steps(600, 2, &training());
    run.t += 5000.0;
    run.go(30, &quiet()).steps(30, 2, &training());
    run.event(Event::Clock {
        suspended_s: Some(900.0),
        step_s: None,
    });
    run.t += 4.0;
    run.go(30, &quiet());
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn memory_without_work_is_idle_holding_before_any_progress() {
    let mut run = Run::new();
    run.go(60, &training())
        .go(1200, &quiet())
        .go(5, &training());
    assert_eq!(run.alarms(), ["idle-holding 660"]);
    assert_eq!(run.life("idle-holding")[1], (Cleared, 1263.0));
    // A notebook is told once an hour, a server is told, neither alarms.
    let mut run = Run::new();
    run.event(Event::Process {
        pid: 7,
        ppid: None,
        name: Some("ipykernel_launch".into()),
        rank: None,
        change: ProcessChange::Started,
        on: None,
        code: None,
        signal: None,
    });
    for _ in 0..4 {
        run.go(300, &training()).go(1500, &quiet());
    }
    assert_eq!(run.alarms(), NONE);
    let raised = run
        .life("idle-interactive")
        .iter()
        .filter(|l| l.0 == Raised)
        .count();
    assert_eq!(raised, 2);
    let mut run = Run::new();
    run.line("INFO:     Uvicorn running on http://0.0.0.0:8000");
    run.go(30, &training()).go(3000, &quiet());
    assert_eq!(run.alarms(), NONE);
    assert_eq!(run.life("idle-serving").len(), 1);
}

#[test]
fn the_literal_rule_is_literal() {
    let literal = || {
        Run::set("idle_holding", |s| {
            s.below = Some(20.0);
            s.lasting = Some(Duration::from_secs(10));
        })
    };
    let at = |use_pct: f64| {
        let mut sample = training();
        sample.job_sm_pct = vec![Reading::Value(use_pct)];
        sample
    };
    let mut run = literal();
    run.steps(60, 1, &at(25.0)).steps(20, 1, &at(15.0));
    assert_eq!(run.alarms(), ["idle-holding 66"]);
    run.steps(30, 1, &at(25.0));
    assert_eq!(run.life("idle-holding").len(), 2);
    let mut run = literal();
    run.go(60, &on_cpu(1.0));
    assert_eq!(run.alarms(), NONE);
    let mut blind = at(0.0);
    blind.job_sm_pct = vec![Reading::default()];
    blind.gpus[0].util_pct = Reading::default();
    run.go(60, &blind);
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn what_explains_a_stall_alarms_alone() {
    let mut run = Run::new();
    run.steps(600, 2, &training());
    run.event(Event::Gpu {
        gpu: "0".into(),
        change: crate::model::GpuChange::Xid,
        code: Some(79),
    });
    run.go(400, &spinning());
    assert_eq!(run.alarms(), ["hardware 600.5"]);
    let stalled = run.first("stalled");
    assert_eq!(stalled.because.as_deref(), Some("hardware"));
    assert_eq!(stalled.severity, Severity::Note);
}

#[test]
fn what_is_off_is_not_said() {
    let mut run = Run::set("stalled", |s| s.on = false);
    run.steps(600, 2, &training()).go(3000, &quiet());
    assert_eq!(run.alarms(), NONE);
    let mut run = Run::set("stalled", |s| s.severity = Some(Severity::Note));
    run.steps(600, 2, &training()).go(3000, &quiet());
    assert_eq!(run.first("stalled").severity, Severity::Note);
}

#[test]
fn a_slow_start_is_noted() {
    let mut run = Run::with(JudgeSettings::default(), Vec::new());
    let mut compiles = on_cpu(4.0);
    compiles.job_mem_mib = vec![Reading::Value(18_000.0)];
    run.go(20, &on_cpu(1.0))
        .go(300, &compiles)
        .steps(60, 2, &training());
    let life = run.life("starting");
    assert_eq!(life, [(Raised, 62.0), (Cleared, 322.0)]);
    let mut reads = on_cpu(0.5);
    reads.job.read_mb_s = Reading::Value(60.0);
    let mut run = Run::new();
    run.go(900, &reads).steps(60, 2, &training());
    assert_eq!(run.life("preparing").len(), 2);
    assert_eq!(run.alarms(), NONE);
}
