//! GPUs that aren't used, leftovers, memory, loss, hardware, users' rules, the verdict.

use std::time::Duration;

use super::run::{Run, on_cpu, quiet, training};
use crate::judge::JobFacts;
use crate::model::FindingState::{Cleared, Raised};
use crate::model::{
    Comparison, Condition, Event, Exit, GpuChange, JudgeSettings, Limit, Metric, Outcome,
    ProcessChange, Reading, Rule, Sample, Severity, Term,
};

const NONE: [&str; 0] = [];

#[test]
fn a_gpu_that_is_not_used_is_told_with_its_reason() {
    let mut run = Run::new();
    run.go(30, &on_cpu(2.0));
    run.line("Cannot dlopen some GPU libraries. Please make sure the missing libraries");
    run.line("Skipping registering GPU devices...");
    run.steps(300, 1, &on_cpu(32.0));
    assert_eq!(run.alarms(), ["gpu-unused 90"]);
    let found = run.first("gpu-unused");
    assert_eq!(found.cause.as_deref(), Some("library-missing"));
    assert!(
        found
            .advice
            .as_deref()
            .unwrap()
            .contains("matching versions")
    );

    let mut run = Run::new();
    run.go(30, &on_cpu(2.0)).steps(300, 1, &on_cpu(32.0));
    assert_eq!(run.alarms(), ["gpu-unused 131"]);
    assert_eq!(run.first("gpu-unused").cause.as_deref(), Some("unknown"));
    // A short run is told at its end, a very short one not.
    let mut run = Run::new();
    run.steps(30, 1, &on_cpu(1.0)).finish(0);
    assert_eq!(run.alarms(), ["gpu-unused 30"]);
    let mut run = Run::new();
    run.steps(5, 1, &on_cpu(1.0)).finish(0);
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn a_build_without_gpu_support_is_the_reason() {
    let mut run = Run::new();
    for (name, gpu) in [("tensorflow", None), ("pytorch", Some(false))] {
        run.event(Event::Framework {
            name: name.to_owned(),
            gpu,
            why: String::new(),
        });
    }
    run.go(30, &on_cpu(2.0)).steps(300, 1, &on_cpu(32.0));
    let found = run.first("gpu-unused");
    assert_eq!(found.cause.as_deref(), Some("cpu-build"));
    let advice = found.advice.as_deref().unwrap();
    assert!(advice.contains("install PyTorch"), "{advice}");
}

#[test]
fn a_gpu_that_is_used_or_not_told_of_is_not_unused() {
    let mut run = Run::new();
    run.line("Could not find cuda drivers on your machine, GPU will not be used.");
    run.steps(300, 1, &training()).finish(0);
    assert_eq!(run.alarms(), NONE);
    let mut none = on_cpu(8.0);
    none.gpus.clear();
    none.job_mem_mib.clear();
    none.job_sm_pct.clear();
    let mut run = Run::new();
    run.steps(300, 1, &none).finish(0);
    assert_eq!(run.alarms(), NONE);
    let mut blind = on_cpu(8.0);
    blind.job_mem_mib = vec![Reading::default()];
    blind.gpus[0].mem_used_mib = Reading::default();
    let mut run = Run::new();
    run.steps(300, 1, &blind).finish(0);
    assert_eq!(run.alarms(), NONE);
    // A driver that hides the job's processes: memory has appeared that nobody explains.
    let mut run = Run::new();
    let mut hidden = on_cpu(8.0);
    hidden.gpus[0].mem_used_mib = Reading::Value(20_000.0);
    run.go(5, &on_cpu(1.0)).steps(300, 1, &hidden).finish(0);
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn training_that_goes_on_without_its_gpu_after_a_restart_is_told() {
    let with_loss = |mut sample: Sample, loss: f64| {
        sample.progress.loss = Some(Metric(loss));
        sample
    };
    let run_of = |then: &dyn Fn(&mut Run)| {
        let mut run = Run::new();
        run.line("Skipping registering GPU devices...");
        run.steps(600, 2, &with_loss(training(), 0.5));
        run.go(30, &with_loss(on_cpu(2.0), 0.5));
        then(&mut run);
        run
    };
    let goes_on = run_of(&|run| {
        run.steps(600, 10, &with_loss(on_cpu(16.0), 0.4));
    });
    assert_eq!(goes_on.alarms(), ["gpu-unused 740"]);
    let found = goes_on.first("gpu-unused");
    assert_eq!(found.cause.as_deref(), Some("unknown"));
    assert_eq!(found.since_s.to_bits(), 640_f64.to_bits());
    // Counting something else, a pause, and a restart that finds its GPU again are no training
    // on the CPU.
    let counts = run_of(&|run| {
        run.steps(600, 10, &with_loss(on_cpu(16.0), 0.5));
    });
    let waits = run_of(&|run| {
        run.steps(12, 10, &with_loss(on_cpu(16.0), 0.4));
        run.go(600, &with_loss(on_cpu(16.0), 0.4));
    });
    let returns = run_of(&|run| {
        run.steps(90, 10, &with_loss(on_cpu(16.0), 0.4));
        run.steps(600, 2, &with_loss(training(), 0.3));
    });
    for mut run in [counts, waits, returns] {
        run.finish(0);
        assert!(run.life("gpu-unused").is_empty(), "{:?}", run.alarms());
    }
}

#[test]
fn a_strangers_load_is_not_the_jobs() {
    let mut stranger = on_cpu(8.0);
    stranger.gpus[0] = training().gpus[0].clone();
    stranger.gpus[0].mem_used_mib = Reading::Value(30_000.0);
    let mut run = Run::new();
    run.steps(300, 1, &stranger);
    assert_eq!(run.alarms(), ["gpu-unused 101"]);
    // And doesn't hide that the job itself rests.
    let mut rests = quiet();
    rests.gpus[0] = training().gpus[0].clone();
    rests.gpus[0].mem_used_mib = Reading::Value(70_000.0);
    let mut run = Run::new();
    run.go(10, &training()).go(900, &rests);
    assert_eq!(run.alarms(), ["idle-holding 610"]);
}

/// The next attempt of a command may be seen before it is said.
#[test]
fn who_comes_when_nobody_was_left_is_no_orphan_at_once() {
    let mut run = Run::new();
    run.event(Event::Started { pid: 100 });
    run.steps(60, 2, &training());
    run.process(100, ProcessChange::Exited, None);
    let mut nobody = on_cpu(0.0);
    nobody.job.procs = Reading::Value(0);
    run.go(30, &nobody);
    run.process(102, ProcessChange::Started, None);
    let mut one = on_cpu(0.0);
    one.job.procs = Reading::Value(1);
    run.go(3, &one);
    assert_eq!(run.alarms(), [""; 0]);
    run.go(3, &one);
    assert_eq!(run.alarms().len(), 1, "{:?}", run.alarms());
}

#[test]
fn what_outlives_the_main_process_is_told() {
    let mut run = Run::new();
    run.event(Event::Started { pid: 100 });
    run.process(101, ProcessChange::Started, None);
    run.steps(600, 2, &training());
    run.process(100, ProcessChange::Exited, None);
    run.process(101, ProcessChange::Reparented, None);
    run.go(900, &quiet());
    assert_eq!(run.alarms(), ["orphans 604"]);
    let found = run.first("orphans");
    assert_eq!(found.severity, Severity::Critical);
    assert_eq!(found.evidence["pids"], serde_json::json!([101]));
    assert_eq!(found.evidence["gpu_mem_mib"], 40_000);
    let mut gone = on_cpu(0.0);
    gone.job.procs = Reading::Value(0);
    run.go(1, &gone);
    assert_eq!(run.life("orphans").last(), Some(&(Cleared, 1501.0)));
    // Where the run ends sooner, at its end; a run that leaves nobody says nothing.
    for (left, alarms) in [(1, vec!["orphans 601".to_owned()]), (0, vec![])] {
        let mut run = Run::new();
        run.event(Event::Started { pid: 100 });
        run.steps(600, 2, &training());
        run.process(100, ProcessChange::Exited, None);
        let mut last = quiet();
        last.job.procs = Reading::Value(left);
        run.go(1, &last).finish(0);
        assert_eq!(run.alarms(), alarms);
        // It is a flaw of a success, and no reason to end anything.
        let cause = |outcome| run.judge.verdict(outcome, Exit::default()).cause;
        let flaw = (left > 0).then(|| "orphans".to_owned());
        assert_eq!(cause(Outcome::Ok), flaw);
        assert_eq!(cause(Outcome::TimedOut), None);
        assert_eq!(cause(Outcome::Cancelled), None);
    }
    // Without events the main process's end shows by its missing cores.
    let mut run = Run::new();
    let mut headless = quiet();
    headless.job.main_cores = Reading::default();
    run.steps(60, 2, &training()).go(30, &headless);
    assert_eq!(run.alarms(), ["orphans 66"]);
}

#[test]
fn a_zombie_that_holds_memory_is_defunct_unless_work_goes_on() {
    let mut zombie = quiet();
    zombie.job.n_zombie = Reading::Value(1);
    let mut run = Run::new();
    run.steps(100, 2, &training());
    run.process(7, ProcessChange::Zombie, None);
    run.go(50, &zombie).steps(10, 2, &training());
    assert_eq!(run.alarms(), ["defunct 121"]);
    assert_eq!(run.life("defunct").len(), 2);
    let mut works = training();
    works.job.n_zombie = Reading::Value(1);
    let mut run = Run::new();
    run.steps(300, 2, &works);
    assert_eq!(run.alarms(), NONE);
    // Steps are rare, an evaluation is long, it isn't training yet: it works all the same.
    let mut run = Run::new();
    run.steps(1200, 300, &works).go(400, &works);
    assert_eq!(run.alarms(), NONE);
    let mut compiles = quiet();
    compiles.job.cpu_cores = Reading::Value(4.0);
    compiles.job.n_zombie = Reading::Value(1);
    compiles.job.forks = Reading::Value(2);
    let mut run = Run::new();
    run.go(500, &compiles).steps(60, 2, &training());
    assert_eq!(run.alarms(), NONE);
    // A notebook's leftovers harm nobody.
    let mut run = Run::new();
    run.event(Event::Process {
        pid: 9,
        ppid: None,
        name: Some("ipykernel_launch".into()),
        rank: None,
        change: ProcessChange::Started,
        on: None,
        code: None,
        signal: None,
    });
    run.steps(60, 2, &training()).go(300, &zombie);
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn who_waits_in_the_kernel_with_memory_held_is_defunct() {
    let mut stuck = quiet();
    stuck.job.n_disk = Reading::Value(1);
    let mut run = Run::new();
    run.go(30, &quiet()).go(100, &stuck);
    assert_eq!(run.alarms(), ["defunct 90"]);
    let found = run.first("defunct");
    assert_eq!(found.cause.as_deref(), Some("stuck"));
    assert_eq!(found.since_s.to_bits(), 30_f64.to_bits());
    run.go(1, &quiet());
    assert_eq!(run.life("defunct").len(), 2);
    // With bytes, without memory, for a shorter time.
    let mut reads = stuck.clone();
    reads.job.read_mb_s = Reading::Value(0.4);
    let mut without = stuck.clone();
    without.gpus[0].mem_used_mib = Reading::Value(5.0);
    without.job_mem_mib = vec![Reading::Value(0.0)];
    for other in [reads, without] {
        let mut run = Run::new();
        run.go(300, &other);
        assert_eq!(run.alarms(), NONE);
    }
    let mut run = Run::set("defunct", |s| {
        s.after = Limit::After(Duration::from_secs(10));
    });
    run.go(30, &quiet()).go(20, &stuck);
    assert_eq!(run.alarms(), ["defunct 40"]);
}

#[test]
fn memory_that_ran_out_is_told_at_once() {
    let mut run = Run::new();
    run.steps(100, 2, &training());
    for _ in 0..20 {
        run.line("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB");
        run.steps(3, 2, &training());
    }
    assert_eq!(run.alarms(), ["oom 100.5"]);
    assert_eq!(run.first("oom").evidence["to_mib"], 40_000);
    run.steps(700, 2, &training());
    assert_eq!(run.life("oom").len(), 2);
    let mut run = Run::new();
    run.steps(10, 1, &training());
    run.event(Event::Host { oom_kill: 1 });
    assert_eq!(run.alarms(), ["host-oom 10.5"]);
    let advice = |run: &Run| run.first("host-oom").advice.clone().unwrap();
    let mut full = training();
    full.host.mem_limit_mib = Reading::Value(32_768.0);
    for (machine, others) in [(32_768.0, true), (262_144.0, false)] {
        let mut run = Run::new();
        run.facts(JobFacts {
            host_mem_mib: Some(machine),
            ..JobFacts::default()
        });
        run.go(10, &full).event(Event::Host { oom_kill: 1 });
        assert_eq!(advice(&run).contains("other processes"), others);
    }
}

#[test]
fn a_loss_that_is_no_number_three_times_running_is_told() {
    let mut run = Run::new();
    run.loss(10, 0.5)
        .loss(2, f64::NAN)
        .loss(1, 0.5)
        .loss(2, f64::INFINITY);
    assert_eq!(run.alarms(), NONE);
    run.loss(5, f64::NAN).loss(3, 0.4);
    assert_eq!(run.alarms(), ["nan 16"]);
    assert_eq!(run.life("nan").last(), Some(&(Cleared, 23.0)));
    assert_eq!(run.first("nan").since_s.to_bits(), 14_f64.to_bits());
    // The same loss on display isn't computed anew.
    let mut run = Run::new();
    let mut shown = training();
    shown.progress.loss = Some(crate::model::Metric(f64::NAN));
    run.steps(2, 1, &training()).go(100, &shown);
    assert_eq!(run.alarms(), NONE);
}

#[test]
fn what_the_driver_reports_is_sorted() {
    let xid = |code| {
        let mut run = Run::new();
        run.steps(10, 1, &training());
        run.event(Event::Gpu {
            gpu: "2".into(),
            change: GpuChange::Xid,
            code: Some(code),
        });
        run.said
            .last()
            .map(|(_, f)| (f.name.clone(), f.severity))
            .unwrap()
    };
    assert_eq!(xid(79), ("hardware".into(), Severity::Critical));
    assert_eq!(xid(95), ("hardware".into(), Severity::Critical));
    assert_eq!(xid(31), ("program-fault".into(), Severity::Warning));
    assert_eq!(xid(63), ("xid-info".into(), Severity::Note));
    let mut errors = training();
    errors.ecc_uncorrected = vec![Reading::Value(1)];
    let mut run = Run::new();
    run.steps(10, 1, &training()).steps(10, 1, &errors);
    assert_eq!(run.alarms(), ["hardware 11"]);
    assert_eq!(run.first("hardware").cause.as_deref(), Some("ecc"));
    let lost = |change| Event::Gpu {
        gpu: "0".into(),
        change,
        code: None,
    };
    let mut run = Run::new();
    run.event(lost(GpuChange::Lost))
        .event(lost(GpuChange::Recovered));
    let states: Vec<_> = run.life("hardware").iter().map(|l| l.0).collect();
    assert_eq!(states, [Raised, Cleared]);
}

#[test]
fn a_users_rule_holds_for_its_time() {
    let compare = |name: &str, op, number| {
        Box::new(Condition::Compare {
            term: Term::now(name),
            op,
            number,
        })
    };
    let rule = Rule {
        name: "low-util".into(),
        when: "job.sm < 20 and job.mem > 1GiB".into(),
        condition: Condition::And(
            compare("job.sm", Comparison::Less, 20.0),
            compare("job.mem", Comparison::Greater, 1024.0),
        ),
        lasting: Duration::from_secs(30),
        severity: Severity::Warning,
        say: None,
    };
    let follows = Rule {
        name: "follows".into(),
        when: "finding.low_util".into(),
        condition: Condition::Holds(Term::now("finding.low_util")),
        lasting: Duration::ZERO,
        severity: Severity::Critical,
        say: Some("Look.".into()),
    };
    let mut run = Run::with(JudgeSettings::default(), vec![rule, follows]);
    let mut blind = quiet();
    blind.job_sm_pct = vec![Reading::default()];
    run.steps(60, 1, &training())
        .go(10, &quiet())
        .go(5, &blind)
        .go(30, &quiet());
    assert_eq!(run.alarms(), ["low-util 91", "follows 91"]);
    assert_eq!(run.first("low-util").evidence["job.sm"], 0);
    run.steps(5, 1, &training());
    assert_eq!(run.life("low-util").len(), 2);
}

/// The cause that the verdict names after these lines.
fn cause(lines: &[&str], outcome: Outcome, code: Option<i32>, signal: Option<i32>) -> String {
    let mut run = Run::new();
    run.steps(5, 1, &training());
    for line in lines {
        run.line(line).steps(1, 1, &training());
    }
    let verdict = run.judge.verdict(outcome, Exit { code, signal });
    verdict.cause.unwrap_or_default()
}

const TRACEBACK: &str = "Traceback (most recent call last):";
const TIMEOUT: &str =
    "[rank0]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)";
const ASSERTION: &str = "RuntimeError: CUDA error: device-side assert triggered";
const OOM: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB";
const FULL: &str = "OSError: [Errno 28] No space left on device";
const NOISE: &str = "Could not find cuda drivers on your machine, GPU will not be used.";

#[test]
fn the_verdict_names_the_first_cause() {
    let cases: [(&[&str], &str); 8] = [
        (&[], ""),
        (&[TRACEBACK, "KeyError: 'label'"], "traceback"),
        (&[TRACEBACK, "KeyboardInterrupt"], ""),
        (&[TIMEOUT], "collective-timeout"),
        (&[TIMEOUT, ASSERTION], "device-assert"),
        (&[TRACEBACK, FULL], "disk"),
        (&[NOISE], ""),
        (&[TRACEBACK, OOM], "oom"),
    ];
    for (lines, expected) in cases {
        let found = cause(lines, Outcome::Failed, Some(1), None);
        assert_eq!(found, expected, "{lines:?}");
    }
}

#[test]
fn the_verdict_reads_the_end_itself() {
    assert_eq!(cause(&[], Outcome::Killed, None, Some(11)), "segfault");
    assert_eq!(cause(&[], Outcome::Failed, Some(139), None), "segfault");
    assert_eq!(cause(&[], Outcome::Killed, None, Some(9)), "");
    assert_eq!(cause(&[OOM], Outcome::Ok, Some(0), None), "oom");
    let mut run = Run::stall_after(5);
    run.steps(20, 1, &training()).go(60, &quiet());
    let interrupted = Exit {
        code: None,
        signal: Some(2),
    };
    let verdict = run.judge.verdict(Outcome::Cancelled, interrupted);
    assert_eq!(verdict.cause.as_deref(), Some("stalled"));
}
