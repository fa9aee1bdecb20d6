//! What one alert says, before it is put into a channel's words.
//!
//! Owns the facts and their serialised form, in which the outbox keeps them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::{Exit, GpuInfo, JobIds, Outcome, ProgressState, RunRecord, Severity, Verdict};

/// The run that alerts are about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// `YYYYMMDD-HHMMSS-<name>-<4 hex>`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The command as recorded: secrets masked.
    pub argv: Vec<String>,
    /// Login name.
    pub user: Option<String>,
    /// Host name.
    pub host: Option<String>,
    /// The watched GPUs.
    pub gpus: Vec<GpuInfo>,
    /// Which part of a job it is.
    #[serde(default)]
    pub job: JobIds,
}

impl From<&RunRecord> for RunFacts {
    fn from(record: &RunRecord) -> Self {
        Self {
            id: record.id.clone(),
            name: record.name.clone(),
            argv: record.argv.clone(),
            user: record.user.clone(),
            host: record.host.clone(),
            gpus: record.gpus.clone(),
            job: record.job.clone(),
        }
    }
}

/// Where an alert's subject stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It holds from now on (for the run's own news: it happened).
    Raised,
    /// It still holds.
    Reminded,
    /// It no longer holds.
    Cleared,
}

/// What an alert is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The run began.
    Started,
    /// The run ended.
    Finished(End),
    /// A finding.
    Finding(Finding),
    /// Nothing happened: somebody tries the channel.
    Test,
}

/// A finding's facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// From the closed list, or a user's rule.
    pub name: String,
    /// Its cause, where one is named.
    pub cause: Option<String>,
    /// The finding that explains it.
    pub because: Option<String>,
    /// `elapsed_s` when its condition began.
    pub since_s: f64,
    /// Numbers.
    pub evidence: Map<String, Value>,
    /// What to do.
    pub advice: Option<String>,
}

/// How the run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Code or signal.
    pub exit: Exit,
    /// What it means.
    pub verdict: Verdict,
}

impl End {
    /// Whether nobody needs to look at it.
    pub fn is_well(&self) -> bool {
        match self.verdict.outcome {
            Some(outcome) => matches!(outcome, Outcome::Ok | Outcome::Cancelled),
            None => self.exit.is_success(),
        }
    }
}

/// Where training stood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Epoch as displayed.
    pub epoch: Option<f64>,
    /// Total epochs.
    pub epochs: Option<f64>,
    /// Step as displayed.
    pub step: Option<u64>,
    /// Total steps.
    pub steps: Option<u64>,
    /// Percent of the whole run.
    pub overall_pct: Option<f64>,
    /// Remaining seconds.
    pub eta_s: Option<f64>,
    /// Seconds since it last moved.
    pub age_s: Option<f64>,
}

impl Progress {
    /// As it stands now, having moved this many seconds ago.
    pub fn new(state: &ProgressState, age_s: Option<f64>) -> Self {
        Self {
            epoch: state.epoch,
            epochs: state.epochs,
            step: state.step,
            steps: state.steps,
            overall_pct: state.overall_pct,
            eta_s: state.eta_s,
            age_s,
        }
    }
}

/// One of the alerts that were put into one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// The finding.
    pub name: String,
    /// Where it stands.
    pub state: State,
    /// How serious.
    pub severity: Severity,
}

/// What one rank of the job on this machine says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankNote {
    /// Its global rank.
    pub rank: u32,
    /// Its run's id.
    pub run: String,
    /// What holds there; None: the rank has ended.
    pub finding: Option<String>,
    /// The finding's cause, or its end's.
    pub cause: Option<String>,
    /// When that began, in the `elapsed_s` of the run that tells.
    pub since_s: Option<f64>,
    /// How it ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
}

/// What an alert says of the ranks beside its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfRanks {
    /// The rank that stands out: cause, evidence, advice and stacks are its.
    pub rank: Option<u32>,
    /// Every rank of the job on this machine that has something to say, that one first.
    pub ranks: Vec<RankNote>,
}

/// One alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// What it is about.
    pub about: About,
    /// Where that stands.
    pub state: State,
    /// How serious.
    pub severity: Severity,
    /// RFC 3339.
    pub time: String,
    /// Seconds since the run's start.
    pub elapsed_s: f64,
    /// Where training stood.
    pub progress: Progress,
    /// The function in which each process sits: a few lines.
    pub stacks: Vec<String>,
    /// How often it was raised in this run, this time included.
    pub times: u32,
    /// Others that came at the same time and are told in this one, the first ones.
    pub others: Vec<Brief>,
    /// How many others came; more than `others` has, if they were many.
    pub more: u32,
    /// Of a job's ranks.
    #[serde(default)]
    pub of_ranks: OfRanks,
}

impl Alert {
    /// `stalled`, `run.finished`: what the record calls it.
    pub fn subject(&self) -> &str {
        match &self.about {
            About::Started => "run.started",
            About::Finished(_) => "run.finished",
            About::Finding(finding) => &finding.name,
            About::Test => "test",
        }
    }

    /// `job.stalled`, `run.finished`: its `type` on the wire.
    pub fn kind(&self) -> String {
        match &self.about {
            About::Started | About::Finished(_) => self.subject().to_owned(),
            About::Finding(_) | About::Test => format!("job.{}", self.subject()),
        }
    }
}
