//! Two runs side by side: `gpuwatch compare`.
//!
//! Owns what is compared and the words for it. What one of them lacks is said, never subtracted.
//! Pure.

use serde::Serialize;

use super::table::lined_up;
use super::text::{clean, command, energy, exit, short, standing};
use crate::model::units::{mib_text, seconds_text};
use crate::model::{Event, GpuInfo, Logged, Phase, ProgressChange, RunRecord, Sample};
use crate::record::FindingRecord;

/// Changes below this aren't worth a word, %.
const SAME_PCT: f64 = 2.0;

/// What is measured of a run besides its summary.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    rate_sum: f64,
    rate_n: u64,
    epoch_began_s: Option<f64>,
    epochs_s: Vec<f64>,
}

impl Pace {
    /// Takes in one tick.
    pub fn sample(&mut self, sample: &Sample) {
        if let Some(rate) = sample.progress.rate.filter(|rate| rate.is_finite()) {
            self.rate_sum += rate;
            self.rate_n += 1;
        }
    }

    /// Takes in one event: an epoch lasts from the end of the one before it, the first from the
    /// first progress.
    pub fn event(&mut self, logged: &Logged) {
        let Event::Progress { change, phase, .. } = &logged.event else {
            return;
        };
        let now = logged.stamp.elapsed_s;
        match change {
            ProgressChange::First | ProgressChange::Reset => self.epoch_began_s = Some(now),
            ProgressChange::EpochEnd if *phase != Phase::Eval => {
                if let Some(began) = self.epoch_began_s.replace(now) {
                    self.epochs_s.push(now - began);
                }
            }
            ProgressChange::EpochEnd => {}
        }
    }

    /// Mean of the displayed steps a second.
    fn rate(&self) -> Option<f64> {
        (self.rate_n > 0).then(|| self.rate_sum / self.rate_n as f64)
    }

    /// The median epoch.
    fn epoch_s(&self) -> Option<f64> {
        let mut sorted = self.epochs_s.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    }
}

/// One of the two.
#[derive(Clone, Debug)]
pub struct Side {
    /// `run.json`.
    pub record: RunRecord,
    /// Its findings.
    pub findings: Vec<FindingRecord>,
    /// What was measured besides.
    pub pace: Pace,
}

/// One measured value of both.
#[derive(Clone, Debug, Serialize)]
pub struct Measure {
    /// What.
    pub name: &'static str,
    /// Its unit in `a` and `b`.
    pub unit: &'static str,
    /// The first run's; null where it isn't known.
    pub a: Option<f64>,
    /// The second's.
    pub b: Option<f64>,
    /// (b - a) / a in %; null where one of them isn't known or a is 0.
    pub change_pct: Option<f64>,
    #[serde(skip)]
    show: fn(f64) -> String,
    /// What more of it is: `longer`, `higher`.
    #[serde(skip)]
    words: (&'static str, &'static str),
}

/// Something that isn't the same in both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What.
    pub what: String,
    /// The first run's; null where it has none.
    pub a: Option<String>,
    /// The second's.
    pub b: Option<String>,
}

/// Two runs side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The first run's id.
    pub a: String,
    /// The second's.
    pub b: String,
    /// Numbers.
    pub measures: Vec<Measure>,
    /// Findings that only the first has.
    pub findings_only_a: Vec<String>,
    /// Findings that only the second has.
    pub findings_only_b: Vec<String>,
    /// How they ended, command, environment, GPUs, git.
    pub differences: Vec<Difference>,
}

/// Compares.
pub fn compare(a: &Side, b: &Side) -> Comparison {
    let only = |these: &Side, others: &Side| {
        let mut names: Vec<String> = these.findings.iter().map(|f| f.name.clone()).collect();
        names.retain(|name| others.findings.iter().all(|f| f.name != *name));
        names.sort();
        names.dedup();
        names
    };
    Comparison {
        a: a.record.id.clone(),
        b: b.record.id.clone(),
        measures: measures(a, b),
        findings_only_a: only(a, b),
        findings_only_b: only(b, a),
        differences: differences(&a.record, &b.record),
    }
}

fn percent(x: f64) -> String {
    format!("{} %", short(x))
}

fn watts(x: f64) -> String {
    format!("{} W", short(x))
}

fn rate(x: f64) -> String {
    format!("{x:.2}/s")
}

const LONGER: (&str, &str) = ("longer", "shorter");
const FASTER: (&str, &str) = ("faster", "slower");
const HIGHER: (&str, &str) = ("higher", "lower");
const MORE: (&str, &str) = ("more", "less");

fn measures(first: &Side, second: &Side) -> Vec<Measure> {
    let measure = |name, unit, show: fn(f64) -> String, words, value: fn(&Side) -> Option<f64>| {
        let (a, b) = (value(first), value(second));
        let change = a.zip(b).filter(|(a, _)| *a != 0.0);
        Measure {
            name,
            unit,
            a,
            b,
            change_pct: change.map(|(a, b)| ((b - a) / a.abs() * 1e4).round() / 100.0),
            show,
            words,
        }
    };
    vec![
        measure("duration", "s", seconds_text, LONGER, |side| {
            side.record.summary.duration_s
        }),
        measure("epoch", "s", seconds_text, LONGER, |side| {
            side.pace.epoch_s()
        }),
        measure("step rate", "steps/s", rate, FASTER, |side| {
            side.pace.rate()
        }),
        measure("GPU use, mean", "%", percent, HIGHER, |side| {
            side.record.summary.gpu_util_pct_mean
        }),
        measure("GPU use, p95", "%", percent, HIGHER, |side| {
            side.record.summary.gpu_util_pct_p95
        }),
        measure("GPU memory, peak", "MiB", mib_text, MORE, |side| {
            side.record.summary.job_mem_mib_max
        }),
        measure("power, mean", "W", watts, MORE, |side| {
            side.record.summary.power_w_mean
        }),
        measure("energy", "J", energy, MORE, |side| {
            side.record.summary.energy_j
        }),
    ]
}

fn differences(a: &RunRecord, b: &RunRecord) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut say = |what: &str, a: Option<String>, b: Option<String>| {
        if a != b {
            found.push(Difference {
                what: what.to_owned(),
                a,
                b,
            });
        }
    };
    let outcome = |r: &RunRecord| {
        let word = standing(r.state, r.verdict.outcome);
        Some(exit(r.exit).map_or_else(|| word.to_owned(), |exit| format!("{word} ({exit})")))
    };
    say("outcome", outcome(a), outcome(b));
    say("cause", a.verdict.cause.clone(), b.verdict.cause.clone());
    let argv = |r: &RunRecord| (!r.argv.is_empty()).then(|| command(&r.argv));
    say("command", argv(a), argv(b));
    say("directory", a.cwd.clone(), b.cwd.clone());
    let git = |r: &RunRecord| {
        let git = r.git.as_ref()?;
        let changed = if git.dirty == Some(true) {
            ", changed"
        } else {
            ""
        };
        Some(format!("{}{changed}", git.commit.as_ref()?))
    };
    say("git", git(a), git(b));
    say("host", a.host.clone(), b.host.clone());
    say("user", a.user.clone(), b.user.clone());
    let gpus = |r: &RunRecord| (!r.gpus.is_empty()).then(|| gpus(&r.gpus));
    say("GPUs", gpus(a), gpus(b));
    say("driver", a.driver.clone(), b.driver.clone());
    say("framework", a.framework.clone(), b.framework.clone());
    say("profile", a.profile.clone(), b.profile.clone());
    let names: std::collections::BTreeSet<&String> = a.env.keys().chain(b.env.keys()).collect();
    // Each run has paths of its own in these.
    for name in names
        .into_iter()
        .filter(|name| !OF_EACH_RUN.contains(&name.as_str()))
    {
        let value = |r: &RunRecord| r.env.get(name).map(|setting| setting.value.clone());
        say(&format!("set {name}"), value(a), value(b));
    }
    found
}

/// Variables that differ in any two runs.
const OF_EACH_RUN: [&str; 3] = ["GPUWATCH_PROGRESS", "GPUWATCH_RUN_DIR", "GPUWATCH_RUN_ID"];

fn gpus(gpus: &[GpuInfo]) -> String {
    let one = |gpu: &GpuInfo| match &gpu.name {
        Some(name) => format!("{} ({name})", gpu.label()),
        None => gpu.label(),
    };
    gpus.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Comparison {
    /// For a person.
    pub fn text(&self) -> String {
        let mut rows = vec![["", "A", "B", "B IS"].map(str::to_owned)];
        rows.push([
            "run".to_owned(),
            self.a.clone(),
            self.b.clone(),
            String::new(),
        ]);
        for m in &self.measures {
            let shown = |x: Option<f64>| x.map_or_else(|| "not known".to_owned(), m.show);
            rows.push([m.name.to_owned(), shown(m.a), shown(m.b), m.change()]);
        }
        let mut out = lined_up(rows, 4);
        let mut line = |text: String| {
            out.push_str(&clean(&text));
            out.push('\n');
        };
        for (who, names) in [("A", &self.findings_only_a), ("B", &self.findings_only_b)] {
            if !names.is_empty() {
                line(format!("findings of {who} alone: {}", names.join(", ")));
            }
        }
        if self.differences.is_empty() {
            line("the same outcome, command, environment, GPUs and git".to_owned());
        }
        for difference in &self.differences {
            let none = || "(none)".to_owned();
            line(format!("{} differs:", difference.what));
            line(format!(
                "  A  {}",
                difference.a.clone().unwrap_or_else(none)
            ));
            line(format!(
                "  B  {}",
                difference.b.clone().unwrap_or_else(none)
            ));
        }
        out
    }
}

impl Measure {
    fn change(&self) -> String {
        match (self.a, self.b, self.change_pct) {
            (Some(_), Some(_), Some(pct)) if pct.abs() < SAME_PCT => "about the same".to_owned(),
            (Some(_), Some(_), Some(pct)) => {
                let word = if pct > 0.0 {
                    self.words.0
                } else {
                    self.words.1
                };
                format!("{} % {word}", short(pct.abs()))
            }
            (Some(_), Some(b), None) if b.abs() < f64::MIN_POSITIVE => "about the same".to_owned(),
            (Some(_), Some(_), None) => "up from 0".to_owned(),
            _ => "can't be compared".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EnvSetting, Stamp, Summary};

    fn example() -> Side {
        let text = include_str!("../../tests/example-run/show.json");
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        Side {
            findings: serde_json::from_value(document["findings"].clone()).unwrap(),
            record: serde_json::from_value(document).unwrap(),
            pace: Pace::default(),
        }
    }

    #[test]
    fn what_differs_is_said_and_what_is_missing_is_not_subtracted() {
        let a = example();
        let mut b = example();
        b.record.id = "b".into();
        b.record.summary = Summary {
            duration_s: Some(62.8),
            gpu_util_pct_mean: Some(48.9),
            ..Summary::default()
        };
        b.findings.clear();
        b.record.argv.push("--lr\u{1b}=1".into());
        let setting = EnvSetting {
            value: "1".into(),
            why: "--env".into(),
        };
        b.record.env.insert("NEW".into(), setting);
        assert_eq!(
            compare(&a, &b).text(),
            "                  A                           B          B IS
run               20261130-091502-train-7f3a  b
duration          31.4 s                      1m 03s     100 % longer
epoch             not known                   not known  can't be compared
step rate         not known                   not known  can't be compared
GPU use, mean     48.2 %                      48.9 %     about the same
GPU use, p95      97 %                        not known  can't be compared
GPU memory, peak  18.0 GiB                    not known  can't be compared
power, mean       192.5 W                     not known  can't be compared
energy            6.0 kJ                      not known  can't be compared
findings of A alone: stalled
command differs:
  A  python train.py --epochs 2
  B  python train.py --epochs 2 '--lr?=1'
set NEW differs:
  A  (none)
  B  1
"
        );
        let same = compare(&a, &a);
        assert!(same.differences.is_empty() && same.findings_only_a.is_empty());
    }

    #[test]
    fn epochs_are_timed_by_their_ends() {
        let mut pace = Pace::default();
        for (at, change) in [
            (10.0, ProgressChange::First),
            (30.0, ProgressChange::EpochEnd),
            (40.0, ProgressChange::EpochEnd),
            (52.0, ProgressChange::EpochEnd),
        ] {
            let mark = crate::model::Mark::default();
            pace.event(&Logged {
                stamp: Stamp {
                    time: String::new(),
                    elapsed_s: at,
                },
                event: Event::progress(change, &mark),
            });
        }
        assert_eq!(pace.epoch_s(), Some(12.0));
        assert_eq!(pace.rate(), None);
    }
}
