//! Every documented name has a value; windows, missing readings, suspended jobs; the rules that
//! come with the program fire when they should and not otherwise.

use std::time::Duration;

use proptest::prelude::*;

use super::span::Span;
use crate::judge::tests::run::{Run, quiet, training};
use crate::judge::{Input, JobFacts, Judge};
use crate::model::FindingState::{Cleared, Raised};
use crate::model::names::{FINDINGS, NAMES};
use crate::model::{
    Aggregate, JudgeSettings, Limit, Metric, ProgressState, Reading, Rule, Sample, Severity,
};
use crate::plan::expression::{Names, Scope, parse};
use crate::plan::profile::{Layer, built_in, profile};

fn rule(name: &str, when: &str) -> Rule {
    let names = Names {
        scope: Scope::Rules,
        findings: &[],
    };
    Rule {
        name: name.to_owned(),
        when: when.to_owned(),
        condition: parse(when, names).unwrap(),
        lasting: Duration::ZERO,
        severity: Severity::Warning,
        say: None,
    }
}

fn run(rules: Vec<Rule>) -> Run {
    Run::with(JudgeSettings::default(), rules)
}

/// With rules as a profile has them.
fn run_of(text: &str) -> Run {
    let read = profile(&Layer::parse(text, "x").unwrap().tree).unwrap();
    run(read.rules)
}

/// Two GPUs, of which everything is known.
fn full() -> Sample {
    let mut sample = training();
    let mut second = sample.gpus[0].clone();
    second.index = 1;
    second.util_pct = Reading::Value(35.0);
    sample.gpus.push(second);
    for (i, gpu) in sample.gpus.iter_mut().enumerate() {
        let at = |first: f64, second: f64| Reading::Value(if i == 0 { first } else { second });
        gpu.mem_used_mib = at(60_000.0, 20_000.0);
        gpu.mem_total_mib = Reading::Value(80_000.0);
        gpu.power_w = at(300.0, 100.0);
        gpu.power_limit_w = at(400.0, 400.0);
        gpu.temp_c = at(61.0, 72.0);
        gpu.sm_clock_mhz = at(1980.0, 1410.0);
        gpu.pcie_mb_s = at(800.0, 50.0);
    }
    sample.job_mem_mib = vec![Reading::Value(40_000.0), Reading::Value(18_000.0)];
    sample.job_sm_pct = vec![Reading::Value(90.0), Reading::Value(30.0)];
    let job = &mut sample.job;
    job.read_mb_s = Reading::Value(120.0);
    job.write_mb_s = Reading::Value(7.0);
    sample.host.cpu_pct = Reading::Value(44.0);
    sample.host.io_pressure_pct = Reading::Value(12.0);
    sample.progress = ProgressState {
        epoch: Some(2.0),
        epochs: Some(5.0),
        step: Some(70),
        steps: Some(100),
        percent: Some(71.0),
        loss: Some(Metric(0.25)),
        rate: Some(3.5),
        overall_pct: Some(34.0),
        eta_s: Some(900.0),
    };
    sample
}

/// Each documented name, and its value after two looks at [`full`], five seconds apart.
const VALUES: [(&str, f64); 30] = [
    ("gpu.util", 65.0),
    ("gpu.util.min", 35.0),
    ("gpu.util.max", 95.0),
    ("gpu.mem", 80_000.0),
    ("gpu.mem.pct", 75.0),
    ("gpu.power", 400.0),
    ("gpu.power.pct", 50.0),
    ("gpu.temp", 72.0),
    ("gpu.clock", 1410.0),
    ("gpu.pcie", 850.0),
    ("job.mem", 58_000.0),
    ("job.mem.pct", 50.0),
    ("job.sm", 60.0),
    ("job.cpu", 3.0),
    ("job.rss", 4000.0),
    ("job.procs", 5.0),
    ("job.read", 120.0),
    ("job.write", 7.0),
    ("host.cpu", 44.0),
    ("host.io_pressure", 12.0),
    ("progress.age", 5.0),
    ("progress.rate", 3.5),
    ("progress.epoch", 2.0),
    ("progress.step", 70.0),
    ("progress.loss", 0.25),
    ("progress.percent", 71.0),
    ("progress.overall", 34.0),
    ("progress.eta", 900.0),
    ("out.age", 5.0),
    ("run.age", 6.0),
];

#[test]
fn every_documented_name_is_evaluated_from_a_sample() {
    let documented: Vec<&str> = NAMES.iter().map(|(name, ..)| *name).collect();
    assert_eq!(documented, VALUES.map(|(name, _)| name));
    let is =
        |(name, value): &(&str, f64)| rule(&name.replace('.', "-"), &format!("{name} == {value}"));
    let missing = |(name, _): &(&str, f64)| {
        let when = format!("{name} < 0 or {name} >= 0 or {name} != 0");
        rule(&format!("some-{}", name.replace('.', "-")), &when)
    };
    let mut told = run(VALUES.iter().map(is).collect());
    told.t = 1.0;
    told.look(full());
    told.t = 6.0;
    told.look(full());
    for (name, value) in VALUES {
        let found = told.first(&name.replace('.', "-"));
        assert_eq!(found.evidence[name].as_f64(), Some(value), "{name}");
    }
    // And none of them has one where there is nothing to tell it from; but times pass.
    let mut blank = run(VALUES.iter().map(missing).collect());
    blank.look(Sample::default());
    let found: Vec<&str> = blank.said.iter().map(|(_, f)| f.name.as_str()).collect();
    assert_eq!(found, ["some-out-age", "some-run-age"]);
}

#[test]
fn every_finding_is_a_name() {
    for finding in FINDINGS {
        let when = format!("not finding.{finding}");
        let mut run = run(vec![rule("quiet", &when)]);
        run.go(1, &quiet());
        assert_eq!(run.life("quiet"), [(Raised, 1.0)], "{finding}");
    }
}

/// The second at which a rule first held, of a value that is what it is at each second; NaN
/// stands for none.
fn first(when: &str, seconds: u32, value: impl Fn(u32) -> f64) -> Option<f64> {
    let mut run = run(vec![rule("r", when)]);
    for t in 1..=seconds {
        let mut sample = training();
        sample.job.rss_mib = Some(value(t)).filter(|v| v.is_finite()).into();
        run.t = f64::from(t);
        run.look(sample);
    }
    run.life("r").first().map(|(_, t)| *t)
}

#[test]
fn a_window_is_known_when_it_is_full_and_half_of_it_was_seen() {
    let level = |_| 50.0;
    assert_eq!(first("mean(job.rss, 1m) < 100", 300, level), Some(60.0));
    assert_eq!(first("mean(job.rss, 1m) < 50", 300, level), None);
    // Known for 20 s of each minute is too little, for 40 s enough.
    let seen = |of: u32| move |t: u32| if t % 60 < of { 50.0 } else { f64::NAN };
    assert_eq!(first("mean(job.rss, 1m) < 100", 600, seen(20)), None);
    assert_eq!(first("mean(job.rss, 1m) < 100", 600, seen(40)), Some(60.0));
    // A condition over what isn't known isn't true by being negated.
    assert_eq!(first("not mean(job.rss, 1m) < 100", 600, seen(20)), None);
}

#[test]
fn functions_are_what_they_are_called() {
    // 10 for 100 s, then 90.
    let step = |t: u32| if t <= 100 { 10.0 } else { 90.0 };
    for (when, at) in [
        // 80 % of the last hundred seconds at 90 make 74.
        ("mean(job.rss, 100s) >= 74", Some(180.0)),
        ("min(job.rss, 100s) > 10", Some(200.0)),
        ("max(job.rss, 100s) > 10", Some(101.0)),
        // More than 5 of a hundred seconds.
        ("p95(job.rss, 100s) > 10", Some(106.0)),
        ("rise(job.rss, 100s) > 0", Some(101.0)),
        ("rise(job.rss, 100s) < 0", None),
        ("max(job.rss, 100s) > 90", None),
    ] {
        assert_eq!(first(when, 400, step), at, "{when}");
    }
    let falls = |t: u32| 1000.0 - f64::from(t);
    assert_eq!(first("rise(job.rss, 100s) == -99", 400, falls), Some(100.0));
}

#[test]
fn time_in_which_the_job_was_stopped_is_no_part_of_a_window() {
    let mut stopped = quiet();
    let procs = stopped.job.procs.get().unwrap();
    stopped.job.n_stopped = Reading::Value(procs);
    stopped.job.n_sleep = Reading::Value(0);
    let rules = vec![rule("low", "mean(gpu.util, 10m) < 20")];
    let mut run = run(rules);
    run.steps(300, 1, &training()).go(3600, &stopped);
    run.steps(600, 1, &training());
    assert_eq!(run.life("low"), []);
    // The machine slept: the next sample comes much later.
    run.t += 36_000.0;
    run.steps(60, 1, &training());
    assert_eq!(run.life("low"), []);
    run.steps(480, 1, &quiet());
    assert_eq!(run.life("low").len(), 1);
}

#[test]
fn a_message_holds_the_values_of_its_condition() {
    let mut run = run_of(
        "rules:\n- name: low\n  when: mean(gpu.util, 60s) < 20 and not finding.oom and job.mem > 1GiB\n  \
         say: '{mean( gpu.util,1m )} of {job.mem}, {\"a\": 1} {'\n",
    );
    run.go(60, &quiet());
    let found = run.first("low");
    assert_eq!(
        found.advice.as_deref(),
        Some("0 % of 39.1 GiB, {\"a\": 1} {")
    );
    let evidence = serde_json::to_string(&found.evidence).unwrap();
    assert_eq!(
        evidence,
        r#"{"mean(gpu.util, 1m)":0,"finding.oom":0,"job.mem":40000}"#
    );
}

#[test]
fn small_numbers_are_shown_as_they_are() {
    let mut run =
        run_of("rules: [{name: low-loss, when: progress.loss < 1, say: 'loss {progress.loss}'}]");
    run.loss(1, 0.003_141_59);
    let found = run.first("low-loss");
    assert_eq!(found.advice.as_deref(), Some("loss 0.00314"));
    assert_eq!(found.evidence["progress.loss"], 0.003_142);
}

/// The articles' alarms, with everything else switched off.
fn articles() -> Run {
    let read = profile(&built_in("workstation").unwrap().unwrap().tree).unwrap();
    assert_eq!(read.rules.len(), 4);
    let mut settings = read.judge;
    for finding in settings.0.values_mut() {
        finding.on = false;
        finding.after = Limit::Auto;
    }
    Run::with(settings, read.rules)
}

fn raised(run: &Run) -> Vec<(String, f64, Severity)> {
    let raised = run.said.iter().filter(|(_, f)| f.state == Raised);
    raised
        .map(|(t, f)| (f.name.clone(), *t, f.severity))
        .collect()
}

/// A sample of the article's readings: use, share of memory, temperature.
fn readings(util: f64, mem_pct: f64, temp: f64) -> Sample {
    let mut sample = training();
    let gpu = &mut sample.gpus[0];
    gpu.util_pct = Reading::Value(util);
    gpu.mem_total_mib = Reading::Value(80_000.0);
    gpu.mem_used_mib = Reading::Value(800.0 * mem_pct);
    gpu.temp_c = Reading::Value(temp);
    sample
}

#[test]
fn the_articles_alarms_fire_when_they_should() {
    use Severity::{Note, Warning};
    let named = |name: &str, t: f64, severity| vec![(name.to_owned(), t, severity)];
    let mut run = articles();
    run.steps(900, 60, &readings(15.0, 50.0, 60.0));
    assert_eq!(raised(&run), named("util-below-20", 600.0, Note));
    let mut run = articles();
    run.go(2000, &readings(95.0, 50.0, 60.0));
    assert_eq!(raised(&run), named("silent-30m", 1801.0 + 1.0, Note));
    let mut run = articles();
    run.steps(300, 1, &readings(95.0, 96.0, 60.0));
    assert_eq!(raised(&run), named("memory-above-95", 61.0, Note));
    let mut run = articles();
    run.steps(300, 1, &readings(95.0, 50.0, 86.0));
    assert_eq!(raised(&run), named("hotter-than-85", 60.0, Warning));
    run.steps(1, 1, &readings(95.0, 50.0, 70.0));
    assert_eq!(run.life("hotter-than-85").last(), Some(&(Cleared, 301.0)));
}

#[test]
fn the_articles_alarms_are_silent_otherwise() {
    let mut run = articles();
    // At the thresholds, and beyond them for too short a time.
    run.steps(7200, 1700, &readings(20.0, 95.0, 85.0));
    run.steps(600, 1, &readings(95.0, 95.0, 85.0));
    run.steps(400, 1, &readings(5.0, 95.0, 85.0));
    run.steps(60, 1, &readings(60.0, 99.0, 85.0));
    run.steps(10, 1, &readings(60.0, 90.0, 85.0));
    for _ in 0..20 {
        run.steps(50, 1, &readings(95.0, 99.0, 90.0));
        run.steps(50, 1, &readings(5.0, 50.0, 60.0));
    }
    // Nothing is known of the GPU.
    let mut blind = readings(0.0, 0.0, 0.0);
    blind.gpus[0] = quiet().gpus[0].clone();
    blind.gpus[0].util_pct = Reading::default();
    run.steps(3600, 1, &blind);
    // And a desktop's idle GPU, of which the job has nothing.
    let mut desktop = readings(5.0, 10.0, 40.0);
    desktop.job_mem_mib = vec![Reading::Value(0.0)];
    run.steps(3600, 1, &desktop);
    assert_eq!(raised(&run), []);
}

#[test]
fn a_patrol_hears_nothing() {
    let facts = JobFacts {
        unheard: true,
        ..JobFacts::default()
    };
    let rules = vec![rule("silent", "out.age > 5s"), rule("old", "run.age > 5s")];
    let mut judge = Judge::new(JudgeSettings::default(), rules, facts);
    let mut found = Vec::new();
    for t in 1..=20 {
        let mut sample = training();
        sample.stamp.elapsed_s = f64::from(t);
        found.extend(judge.step(Input::Sample(&sample)));
    }
    let names: Vec<&str> = found.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["old"]);
}

/// Own second, seconds, value.
type Seen = (f64, f64, f64);

/// What a window says, calculated from all of its readings.
fn naive(how: Aggregate, window: f64, own_s: f64, seen: &[Seen]) -> Option<f64> {
    let inside = inside(window, own_s, seen);
    let known: f64 = inside.iter().map(|(_, s, _)| s).sum();
    let told = own_s >= window - 1e-6 && known >= window / 2.0 - 1e-6;
    told.then(|| exact(how, inside, 0.05 * known + 1e-6))?
}

fn inside(window: f64, own_s: f64, seen: &[Seen]) -> &[Seen] {
    let old = |(t, ..): &&Seen| *t <= own_s - window + 1e-6;
    &seen[seen.iter().take_while(old).count()..]
}

/// Of these readings; `exceeded_s` is for how long the 95th percentile is exceeded.
fn exact(how: Aggregate, inside: &[Seen], exceeded_s: f64) -> Option<f64> {
    let known: f64 = inside.iter().map(|(_, s, _)| s).sum();
    let values = inside.iter().map(|(.., v)| *v);
    Some(match how {
        Aggregate::Mean => inside.iter().map(|(_, s, v)| s * v).sum::<f64>() / known,
        Aggregate::Min => values.reduce(f64::min)?,
        Aggregate::Max => values.reduce(f64::max)?,
        Aggregate::Rise => inside.last()?.2 - inside.first()?.2,
        Aggregate::P95 => {
            let mut ranked: Vec<_> = inside.iter().map(|(_, s, v)| (*v, *s)).collect();
            ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut above = 0.0;
            let reached = |(_, s): &&(f64, f64)| {
                above += s;
                above > exceeded_s
            };
            ranked.iter().find(reached)?.0
        }
    })
}

fn how() -> impl Strategy<Value = Aggregate> {
    (0..Aggregate::ALL.len()).prop_map(|i| Aggregate::ALL[i].0)
}

proptest! {
    /// Where there are fewer samples than stretches a window is what all of its readings say.
    #[test]
    fn a_short_window_is_exact(
        how in how(),
        window in 10_u32..60,
        ticks in prop::collection::vec(
            (prop_oneof![8 => Just(1.0), 1 => Just(0.0), 1 => 0.2..5.0_f64],
             prop::option::of(prop_oneof![0.0..100.0_f64, Just(50.0)])),
            0..300,
        ),
    ) {
        let mut span = Span::new(how, Duration::from_secs(window.into()));
        let (mut own_s, mut seen) = (0.0, Vec::new());
        for (dt, value) in ticks {
            own_s += dt;
            span.push(own_s, dt, value);
            seen.extend(value.filter(|_| dt > 0.0).map(|v| (own_s, dt, v)));
            let (found, right) = (span.value(own_s), naive(how, window.into(), own_s, &seen));
            prop_assert_eq!(found.is_some(), right.is_some(), "{:?} {:?}", found, right);
            if let (Some(found), Some(right)) = (found, right) {
                prop_assert!((found - right).abs() < 1e-6, "{} {}", found, right);
            }
        }
    }

    /// A long one is off by what comes and goes within a stretch, and never grows.
    #[test]
    fn a_long_window_is_bounded(
        how in how(),
        levels in prop::collection::vec((0.0..100.0_f64, 100_u32..2000), 1..8),
    ) {
        const WINDOW: f64 = 600.0;
        // At a sample in 0.25 s.
        const STRETCH: f64 = 0.75;
        let mut span = Span::new(how, Duration::from_secs(600));
        let (mut own_s, mut seen) = (0.0, Vec::new());
        let changes = levels.len() as f64;
        for (level, ticks) in levels {
            for i in 0..ticks {
                own_s += 0.25;
                let value = level + f64::from(i % 3) / 100.0;
                span.push(own_s, 0.25, Some(value));
                seen.push((own_s, 0.25, value));
            }
            prop_assert!(span.len() <= 1001, "{}", span.len());
            let found = span.value(own_s);
            prop_assert_eq!(found.is_some(), own_s >= WINDOW);
            let Some(found) = found else { continue };
            // One stretch more, and one on either side at each change of level.
            let mut right = Vec::new();
            for window in [WINDOW, WINDOW + STRETCH] {
                for off in [-STRETCH * changes, 0.0, STRETCH * (changes + 1.0)] {
                    let inside = inside(window, own_s, &seen);
                    right.extend(exact(how, inside, 0.05 * WINDOW + off));
                }
            }
            let least = right.iter().copied().fold(f64::INFINITY, f64::min);
            let most = right.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!((least - 0.2..=most + 0.2).contains(&found), "{} {:?}", found, right);
        }
    }

    /// An absurd reading is forgotten with its window.
    #[test]
    fn nothing_absurd_stays(how in how(), absurd in prop_oneof![
        Just(f64::MAX), Just(f64::MIN), Just(f64::INFINITY), Just(f64::NAN), Just(1e30),
    ]) {
        let mut span = Span::new(how, Duration::from_secs(60));
        for t in 1..=200_u32 {
            let value = if (20..=70).contains(&t) { absurd } else { 7.0 };
            span.push(t.into(), 1.0, Some(value));
        }
        let right = if how == Aggregate::Rise { 0.0 } else { 7.0 };
        let found = span.value(200.0).unwrap();
        prop_assert!((found - right).abs() < 1e-9, "{}", found);
    }
}
