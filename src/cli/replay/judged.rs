//! Records judged again.
//!
//! Owns by which settings, and what the judge is fed. Must not know how findings are printed.

use std::path::Path;

use crate::cli::layers;
use crate::judge::{Finding, Input, JobFacts, Judge};
use crate::model::{Event, Exit, JudgeSettings, Logged, Rule, RunRecord, Stamp};
use crate::plan::profile::{DEFAULT, ProfileError};
use crate::plan::resolve::{self, Flags};
use crate::plan::rules;
use crate::record::run_dir::RUN_JSON;
use crate::record::{FindingFold, FindingRecord, Recorded, Replay};

/// How runs are judged.
type Settings = (JudgeSettings, Vec<Rule>);

/// By which settings runs are judged.
pub enum By {
    /// As they were when they ran.
    Recorded,
    /// By this profile.
    Profile(String, Settings),
}

impl By {
    /// By a profile, over the embedded default alone; without one, as they were.
    ///
    /// # Errors
    /// The first mistake in it, or a file that can't be read.
    pub fn profile(name: Option<&str>) -> Result<Self, ProfileError> {
        let Some(name) = name else {
            return Ok(Self::Recorded);
        };
        let layers = layers::alone(name)?;
        let resolved = resolve::settings(layers.trees, &layers.name, &Flags::default())?;
        let settings = (resolved.judge, resolved.rules);
        Ok(Self::Profile(name.to_owned(), settings))
    }

    /// For a person, whatever run it is.
    pub fn about(&self) -> String {
        match self {
            Self::Recorded => "the recorded settings".to_owned(),
            Self::Profile(name, _) => format!("the profile {name}"),
        }
    }

    /// The settings for a run, and the profile that they come from.
    fn of(&self, record: &RunRecord) -> Result<(String, Settings), String> {
        match self {
            Self::Profile(name, settings) => Ok((name.clone(), settings.clone())),
            Self::Recorded => {
                let judge = rules::judge_from_map(&record.judge)?;
                let profile = record.profile.as_deref().unwrap_or(DEFAULT);
                Ok((
                    profile.to_owned(),
                    (judge, rules::from_values(&record.rules)?),
                ))
            }
        }
    }
}

/// One judgement of a run.
pub struct Judgement {
    /// The profile by which.
    pub profile: String,
    /// What was said, each with the second of the input that it came of.
    pub said: Vec<(f64, Finding)>,
    judge: Judge,
}

impl Judgement {
    /// The findings, each over its whole life.
    pub fn findings(&self) -> Vec<FindingRecord> {
        let mut fold = FindingFold::default();
        for (elapsed_s, finding) in &self.said {
            fold.absorb(&Logged {
                stamp: Stamp {
                    time: String::new(),
                    elapsed_s: *elapsed_s,
                },
                event: finding.clone().into(),
            });
        }
        fold.into_list()
    }
}

/// A run, judged once for each of the settings.
pub struct Judged {
    /// Its id, else its directory's name.
    pub run: String,
    /// In the order of the settings.
    pub by: Vec<Judgement>,
    /// Why no more of it could be read.
    pub broken: Option<String>,
}

/// Judges a run by all of these settings in one reading.
///
/// # Errors
/// What can't be read of it, before anything was judged.
pub fn judge(dir: &Path, by: &[By]) -> Result<Judged, String> {
    let stream = Replay::open(dir).map_err(|e| e.to_string())?;
    let record = stream.record().cloned();
    let known = record.clone().unwrap_or_default();
    let mut facts = JobFacts::of(&known);
    if stream.tells_framework() {
        facts.framework = None;
    }
    let wrong = |e| format!("{}: {e}", dir.join(RUN_JSON).display());
    let judgement = |by: &By| {
        let (profile, (settings, rules)) = by.of(&known).map_err(wrong)?;
        Ok(Judgement {
            profile,
            said: Vec::new(),
            judge: Judge::new(settings, rules, facts.clone()),
        })
    };
    let mut judged = Judged {
        run: match dir.file_name() {
            Some(name) if known.id.is_empty() => name.to_string_lossy().into_owned(),
            _ => known.id.clone(),
        },
        by: by.iter().map(judgement).collect::<Result<_, String>>()?,
        broken: None,
    };
    let end = (record.is_none() || known.ended.is_some()).then_some(known.exit);
    judged.feed(stream, end);
    Ok(judged)
}

impl Judged {
    fn feed(&mut self, stream: Replay, mut end: Option<Exit>) {
        let mut now = 0.0;
        for entry in stream {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.broken = Some(error.to_string());
                    return;
                }
            };
            let input = match &entry {
                Recorded::Sample(sample) => {
                    now = sample.stamp.elapsed_s;
                    Input::Sample(sample)
                }
                Recorded::Event(logged) => {
                    now = logged.stamp.elapsed_s;
                    if let Event::Exited { code, signal } = logged.event {
                        end = Some(Exit { code, signal });
                    }
                    Input::Event(logged)
                }
            };
            for one in &mut self.by {
                let found = one.judge.step(input);
                one.said
                    .extend(found.into_iter().map(|finding| (now, finding)));
            }
        }
        let Some(exit) = end else { return };
        for one in &mut self.by {
            let found = one.judge.finish(&exit, now);
            one.said
                .extend(found.into_iter().map(|finding| (now, finding)));
        }
    }
}
