//! Real trainings of four frameworks, in a pipe and in a terminal: progress stands beside the
//! samples, is never ahead of the truth, and at half of the steps the time that is left is known.
//!
//! The scripts know their own course (`tests/scripts/course.py`) and write it down. `tests/run`
//! makes the interpreters and names them in `GPUWATCH_TEST_TF_PYTHON` and
//! `GPUWATCH_TEST_TORCH_PYTHON`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use serde_json::Value;
use support::{Row, Sandbox, for_each, provided, script};

const EPOCHS: usize = 4;
/// Training steps of an epoch.
const STEPS: usize = 40;
/// Steps of the validation that ends each epoch.
const VALIDATION: usize = 8;
/// Sleep of a step of either kind: long beside its work, so that the pace is a steady one.
const STEP_S: &str = "0.1";
/// A display is drawn a few times a second, and a row is at most a second old.
const LAG_S: f64 = 4.0;

/// What of its course a display shows.
enum Shows {
    /// The step of an epoch, and the epoch, of which the first has this number.
    StepOfEpoch(usize),
    /// The step of the whole run.
    StepOfRun,
    /// A line when an epoch begins, and one when it is over.
    WholeEpochs,
    /// Epochs that are done, or steps that other bars interrupt.
    Otherwise,
}

/// Whether the display says how long the run is.
#[derive(PartialEq)]
enum Total {
    Shown,
    Nowhere,
}

struct Case {
    python: &'static str,
    script: &'static str,
    options: &'static [&'static str],
    shows: Shows,
    total: Total,
}

const KERAS: &str = "GPUWATCH_TEST_TF_PYTHON";
const TORCH: &str = "GPUWATCH_TEST_TORCH_PYTHON";

#[test]
fn keras() {
    both_ways(&Case {
        python: KERAS,
        script: "train_keras.py",
        options: &[],
        shows: Shows::StepOfEpoch(1),
        total: Total::Shown,
    });
}

#[test]
fn keras_with_a_line_an_epoch() {
    both_ways(&Case {
        python: KERAS,
        script: "train_keras.py",
        options: &["--verbose", "2"],
        shows: Shows::WholeEpochs,
        total: Total::Shown,
    });
}

#[test]
fn pytorch_with_a_bar_an_epoch() {
    both_ways(&Case {
        python: TORCH,
        script: "train_torch.py",
        options: &[],
        shows: Shows::StepOfEpoch(1),
        total: Total::Shown,
    });
}

#[test]
fn pytorch_with_bars_in_bars() {
    both_ways(&Case {
        python: TORCH,
        script: "train_torch.py",
        options: &["--bars", "nested"],
        shows: Shows::Otherwise,
        total: Total::Shown,
    });
}

/// Its bar never names the number of epochs: the time that is left is unknown, and said to be.
#[test]
fn lightning() {
    both_ways(&Case {
        python: TORCH,
        script: "train_lightning.py",
        options: &[],
        shows: Shows::StepOfEpoch(0),
        total: Total::Nowhere,
    });
}

/// Rich draws nothing into a pipe before the end.
#[test]
fn lightning_with_richs_bar() {
    let case = Case {
        python: TORCH,
        script: "train_lightning.py",
        options: &["--bar", "rich"],
        shows: Shows::StepOfEpoch(0),
        total: Total::Shown,
    };
    watched(&case, true);
}

#[test]
fn transformers() {
    both_ways(&Case {
        python: TORCH,
        script: "train_transformers.py",
        options: &[],
        shows: Shows::StepOfRun,
        total: Total::Shown,
    });
}

/// At once: a training sleeps most of its time.
fn both_ways(case: &Case) {
    for_each(&[false, true], |on_terminal| watched(case, *on_terminal));
}

fn watched(case: &Case, on_terminal: bool) {
    let Some(python) = provided(case.python) else {
        return;
    };
    let sandbox = Sandbox::new();
    let (script, course) = (script(case.script), sandbox.arg("course.json"));
    let numbers = [EPOCHS, STEPS, VALIDATION].map(|n| n.to_string());
    let mut words = vec![&*python, &*script, &*course, "--step-s", STEP_S];
    for (option, number) in ["--epochs", "--steps", "--validation"].iter().zip(&numbers) {
        words.extend([*option, number.as_str()]);
    }
    words.extend(case.options);
    let options = ["-q", "--gpus", "none", "--interval", "500ms"];
    let job = sandbox.watched(&options, &words);
    let job = job.env("TF_CPP_MIN_LOG_LEVEL", "3");
    let ended = job.run_either_way(on_terminal);
    assert!(ended.status.success(), "{}{}", ended.out(), ended.err());

    let course = Course::read(&support::content(&sandbox.path("course.json")));
    let rows = sandbox.record().samples();
    let form = if on_terminal { "terminal" } else { "pipe" };
    let of_run = |row: &&Row| (course.began..=course.ended).contains(&moment(row));
    let rows: Vec<&Row> = rows.iter().filter(of_run).collect();
    stands_beside_the_samples(&rows, form);
    never_ahead(&rows, &course, &case.shows, form);
    never_falls(&rows, form);
    let half = at(&rows, course.steps[course.steps.len() / 2 - 1]);
    match case.total {
        Total::Shown => is_near(half, &course, &case.shows, form),
        Total::Nowhere => {
            let guessed = rows.iter().find(|row| !row["eta_s"].is_empty());
            assert!(guessed.is_none(), "{form}: {guessed:?}");
        }
    }
}

/// What a training says of itself, in seconds since 1970.
struct Course {
    began: f64,
    /// When each training step was done.
    steps: Vec<f64>,
    ended: f64,
}

impl Course {
    fn read(text: &str) -> Self {
        let json: Value = serde_json::from_str(text).unwrap();
        let steps = json["steps"].as_array().unwrap();
        assert_eq!(steps.len(), EPOCHS * STEPS);
        Self {
            began: json["began"].as_f64().unwrap(),
            steps: steps.iter().map(|s| s.as_f64().unwrap()).collect(),
            ended: json["ended"].as_f64().unwrap(),
        }
    }

    fn done_by(&self, moment: f64) -> usize {
        self.steps.partition_point(|step| *step <= moment)
    }
}

fn moment(row: &Row) -> f64 {
    let time: jiff::Timestamp = row["time"].parse().unwrap();
    time.as_millisecond() as f64 / 1e3
}

fn at<'r>(rows: &[&'r Row], moment_s: f64) -> &'r Row {
    let apart = |row: &&&Row| ((moment(row) - moment_s).abs() * 1e3) as u64;
    rows.iter().min_by_key(apart).unwrap()
}

/// Once something was shown, each row has some of it.
fn stands_beside_the_samples(rows: &[&Row], form: &str) {
    let shown = |row: &&&Row| {
        let names = ["epoch", "step", "percent"];
        names.iter().any(|name| !row[*name].is_empty())
    };
    let blank = rows.iter().skip_while(|row| !shown(row));
    let blank: Vec<_> = blank.filter(|row| !shown(row)).collect();
    let with = rows.iter().filter(shown).count();
    assert!(blank.is_empty(), "{form}: {blank:?}");
    assert!(
        with * 2 > rows.len(),
        "{form}: {with} of {} rows",
        rows.len()
    );
}

/// A row's step was done when the row was written, and not long before.
fn never_ahead(rows: &[&Row], course: &Course, shows: &Shows, form: &str) {
    let number = |row: &Row, name: &str| row[name].parse::<f64>().ok().map(|n| n as usize);
    // A validation counts its own steps.
    for row in rows
        .iter()
        .filter(|row| row["steps"] != VALIDATION.to_string())
    {
        let Some(step) = number(row, "step") else {
            continue;
        };
        let done = match shows {
            Shows::StepOfRun => step,
            Shows::StepOfEpoch(first) => (number(row, "epoch").unwrap() - first) * STEPS + step,
            Shows::WholeEpochs | Shows::Otherwise => continue,
        };
        let (now, before) = (moment(row), moment(row) - LAG_S);
        // A step is shown a moment before the script has written it down.
        let possible = course.done_by(before)..=course.done_by(now + 0.2) + 1;
        assert!(
            possible.contains(&done),
            "{form}: {done} of {possible:?}: {row:?}"
        );
    }
}

fn never_falls(rows: &[&Row], form: &str) {
    let shares: Vec<f64> = rows
        .iter()
        .filter_map(|r| r["overall_pct"].parse().ok())
        .collect();
    let falls = shares.windows(2).find(|pair| pair[1] < pair[0]);
    assert!(falls.is_none(), "{form}: {falls:?}");
}

/// Within 20 % of the time that was left. Where the machine's own pace changed meanwhile, the
/// first half's is as good a truth, and the first epoch's where nothing is shown but epochs (it
/// may be a longer one: graphs are made in it). Nobody can know more then.
fn is_near(half: &Row, course: &Course, shows: &Shows, form: &str) {
    let eta: f64 = half["eta_s"]
        .parse()
        .unwrap_or_else(|_| panic!("{form}: {half:?}"));
    let left = course.ended - moment(half);
    // The first half lacks the validation of its last epoch.
    let validation = VALIDATION as f64 * STEP_S.parse::<f64>().unwrap();
    let as_before = moment(half) - course.began + 2.0 * validation;
    let epoch = course.steps[STEPS - 1] - course.began + validation;
    let as_epochs = epoch * EPOCHS as f64 - (moment(half) - course.began);
    let truths = match shows {
        Shows::WholeEpochs => vec![left, as_before, as_epochs],
        _ => vec![left, as_before],
    };
    let least = truths.iter().copied().fold(f64::INFINITY, f64::min);
    let most = truths.iter().copied().fold(0.0, f64::max);
    assert!(
        (0.8 * least..=1.2 * most).contains(&eta),
        "{form}: {eta} s where {left:.1} s were left (by the pace so far: {truths:.1?}): {half:?}"
    );
}
