//! Users' rules: a condition that has held for so long.
//!
//! Owns the values behind the names of `model::names` and the time that a condition has held.
//! A value that is missing makes a condition neither true nor false.

use crate::model::{Condition, Reading, Rule, Sample};

use super::finding::{Book, Claim, Evidence};
use super::view::View;

/// A condition that can't be told for so long has to hold anew, seconds.
const BLIND_S: f64 = 60.0;

/// All rules.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Held>);

#[derive(Clone, Debug)]
struct Held {
    rule: Rule,
    /// Since when it holds: seconds of the run, and of the judge.
    since: Option<(f64, f64)>,
    /// Own seconds in which it couldn't be told.
    blind_s: f64,
}

impl Rules {
    /// These rules.
    pub fn new(rules: Vec<Rule>) -> Self {
        let held = |rule| Held {
            rule,
            since: None,
            blind_s: 0.0,
        };
        Self(rules.into_iter().map(held).collect())
    }

    /// Takes in one sample.
    pub fn sample(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        for held in &mut self.0 {
            held.sample(sample, v, book);
        }
    }
}

impl Held {
    fn sample(&mut self, sample: &Sample, v: &View<'_>, book: &mut Book) {
        let now = (v.s.now.elapsed_s, v.s.now.own_s);
        let holds = {
            let value = |name: &str| value(name, sample, v, book);
            self.rule.condition.holds(&value)
        };
        match holds {
            Some(true) => {
                let since = *self.since.get_or_insert(now);
                self.blind_s = 0.0;
                if now.1 - since.1 >= self.rule.lasting.as_secs_f64() {
                    self.raise(since.0, sample, v, book);
                }
            }
            Some(false) => {
                self.since = None;
                book.clear(&self.rule.name);
            }
            None => {
                self.blind_s += v.s.dt;
                if self.blind_s > BLIND_S {
                    self.since = None;
                }
            }
        }
    }

    fn raise(&self, since: f64, sample: &Sample, v: &View<'_>, book: &mut Book) {
        if book.holds(&self.rule.name) {
            return;
        }
        let mut names = Vec::new();
        named(&self.rule.condition, &mut names);
        let evidence = names.iter().fold(Evidence::new(), |all, name| {
            all.num(name, value(name, sample, v, book))
        });
        let say = self.rule.say.clone();
        let claim = Claim::new(&self.rule.name, self.rule.severity, since)
            .evidence(evidence)
            .advice(say.unwrap_or_else(|| self.rule.when.clone()));
        book.raise(claim);
    }
}

fn named<'a>(condition: &'a Condition, names: &mut Vec<&'a str>) {
    match condition {
        Condition::Compare { name, .. } | Condition::Holds(name) => names.push(name),
        Condition::And(a, b) | Condition::Or(a, b) => {
            named(a, names);
            named(b, names);
        }
        Condition::Not(a) => named(a, names),
    }
}

/// The value of a name, in the unit that `model::names` gives it.
fn value(name: &str, sample: &Sample, v: &View<'_>, book: &Book) -> Option<f64> {
    let gpus = &sample.gpus;
    match name {
        "gpu.util" => mean(gpus.iter().map(|g| g.util_pct.get())),
        "gpu.mem" => sum(gpus.iter().map(|g| g.mem_used_mib.get())),
        "gpu.power" => sum(gpus.iter().map(|g| g.power_w.get())),
        "gpu.temp" => gpus.iter().filter_map(|g| g.temp_c.get()).reduce(f64::max),
        "job.mem" => sum(sample.job_mem_mib.iter().map(Reading::get)),
        "job.sm" => mean(sample.job_sm_pct.iter().map(Reading::get)),
        "job.cpu" => sample.job.cpu_cores.get(),
        "job.rss" => sample.job.rss_mib.get(),
        "host.cpu" => sample.host.cpu_pct.get(),
        "progress.age" => v.s.advances.begun.then(|| v.s.progress_age()),
        "progress.rate" => sample.progress.rate,
        "progress.epoch" => sample.progress.epoch,
        "progress.step" => sample.progress.step.map(|s| s as f64),
        "progress.loss" => sample.progress.loss.map(|l| l.0),
        "out.age" => Some(v.s.now.own_s - v.s.printed.own_s),
        _ => {
            let finding = name.strip_prefix("finding.")?.replace('_', "-");
            Some(f64::from(u8::from(book.holds(&finding))))
        }
    }
}

/// Together; missing where nothing or not everything is told.
fn sum(mut values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let first = values.next()??;
    values.try_fold(first, |sum, value| Some(sum + value?))
}

/// The mean of those that are told.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (sum, n) = values
        .flatten()
        .fold((0.0, 0_u32), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}
