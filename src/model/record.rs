//! `run.json`: what a run was asked to do, what it was given, and how it ended.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Exit, GateVerdict, GpuInfo, RunState, TimeSpent, Verdict};

/// One environment variable that we set, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvSetting {
    /// The value that the child saw.
    pub value: String,
    /// Where it comes from: `profile default`, `chosen: free`, `--env`.
    pub why: String,
}

/// The working tree that the run was started in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    /// Abbreviated commit.
    pub commit: Option<String>,
    /// Whether tracked files differ from it.
    pub dirty: Option<bool>,
}

/// Which part of a distributed job this run is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobIds {
    /// The scheduler's job id.
    pub id: Option<String>,
    /// Global rank.
    pub rank: Option<u32>,
    /// Number of ranks.
    pub world: Option<u32>,
    /// Rank on this machine.
    pub local_rank: Option<u32>,
}

impl JobIds {
    /// `rank 1: `, before words that stand among those of other ranks; else nothing.
    pub fn label(&self) -> String {
        let rank = self.rank.filter(|_| self.world != Some(1));
        rank.map(|rank| format!("rank {rank}: "))
            .unwrap_or_default()
    }

    /// `job 4711, rank 1 of 2`, as far as it is known.
    pub fn text(&self) -> Option<String> {
        let id = self.id.as_ref().map(|id| format!("job {id}"));
        let rank = self.rank.map(|rank| match self.world {
            Some(world) => format!("rank {rank} of {world}"),
            None => format!("rank {rank}"),
        });
        let parts: Vec<String> = id.into_iter().chain(rank).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// A rank among those of its job on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// What all ranks of one start of the job have in common, and no other job has.
    pub job: Vec<String>,
    /// Its global rank.
    pub rank: u32,
}

/// The run in numbers; null is "not known", never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Seconds from start to end, suspend left out.
    #[serde(default, with = "super::number")]
    pub duration_s: Option<f64>,
    /// Mean over samples and watched GPUs, %.
    #[serde(default, with = "super::number")]
    pub gpu_util_pct_mean: Option<f64>,
    /// 95th percentile over samples and watched GPUs (nearest rank), %.
    #[serde(default, with = "super::number")]
    pub gpu_util_pct_p95: Option<f64>,
    /// The most that the job held on all watched GPUs together at one tick, MiB.
    #[serde(default, with = "super::number")]
    pub job_mem_mib_max: Option<f64>,
    /// Mean over ticks of the watched GPUs' power together, W.
    #[serde(default, with = "super::number")]
    pub power_w_mean: Option<f64>,
    /// Energy of the watched GPUs together since the start, J.
    #[serde(default, with = "super::number")]
    pub energy_j: Option<f64>,
    /// Last epoch as displayed.
    #[serde(default, with = "super::number")]
    pub epoch: Option<f64>,
    /// Total epochs.
    #[serde(default, with = "super::number")]
    pub epochs: Option<f64>,
    /// Last step as displayed.
    pub step: Option<u64>,
    /// Total steps.
    pub steps: Option<u64>,
    /// Percent of the whole run.
    #[serde(default, with = "super::number")]
    pub overall_pct: Option<f64>,
    /// What the time was spent on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeSpent>,
}

/// Where a record comes from, if it is no run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A job that `gpuwatch patrol` found: nobody launched it with gpuwatch.
    Found,
    /// The machine, as a patrol sees it: its job is all processes that hold GPU memory.
    Machine,
}

/// The command was started again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RestartRecord {
    /// When, in seconds of the run.
    pub elapsed_s: f64,
    /// The cause or the finding because of which.
    pub why: String,
    /// How the attempt before ended.
    pub exit: Exit,
}

/// `run.json`, schema 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Always 1.
    pub schema: u32,
    /// `YYYYMMDD-HHMMSS-<name>-<4 hex>`; the directory's name.
    pub id: String,
    /// `--name`, else from the command.
    pub name: String,
    /// `--tag`, in the order given.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The command; bytes that aren't UTF-8 are escaped losslessly, secrets masked.
    #[serde(default)]
    pub argv: Vec<String>,
    /// Where it was started.
    #[serde(default)]
    pub cwd: Option<String>,
    /// The git work tree's root, else the working directory.
    #[serde(default)]
    pub project: Option<String>,
    /// Login name, else the numeric id.
    #[serde(default)]
    pub user: Option<String>,
    /// Host name.
    #[serde(default)]
    pub host: Option<String>,
    /// The host's main memory, MiB.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "super::number"
    )]
    pub host_mem_mib: Option<f64>,
    /// Null outside a git work tree.
    #[serde(default)]
    pub git: Option<GitState>,
    /// The watched GPUs.
    #[serde(default)]
    pub gpus: Vec<GpuInfo>,
    /// Driver version.
    #[serde(default)]
    pub driver: Option<String>,
    /// CUDA version of the driver.
    #[serde(default)]
    pub cuda: Option<String>,
    /// What we set: name to value and reason.
    #[serde(default)]
    pub env: std::collections::BTreeMap<String, EnvSetting>,
    /// The profile's name.
    #[serde(default)]
    pub profile: Option<String>,
    /// The framework, once known.
    #[serde(default)]
    pub framework: Option<String>,
    /// Scheduler and rank.
    #[serde(default)]
    pub job: JobIds,
    /// The main process.
    #[serde(default)]
    pub pid: Option<u32>,
    /// RFC 3339 with milliseconds and offset.
    pub started: String,
    /// Null while it runs.
    #[serde(default)]
    pub ended: Option<String>,
    /// As written: a run whose supervisor is gone still says `running` here and is read as lost.
    pub state: RunState,
    /// Null members while it runs.
    #[serde(default)]
    pub exit: Exit,
    /// Each further start of the command; absent where there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<RestartRecord>,
    /// The finding because of which the run was ended; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_for: Option<String>,
    /// `exact`, `device-wide: why` or `unknown: why`; null where no GPU is watched.
    #[serde(default)]
    pub attribution: Option<String>,
    /// The judgement at the end.
    #[serde(default)]
    pub verdict: Verdict,
    /// Absent of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The resolved settings of the judge.
    #[serde(default)]
    pub judge: Map<String, Value>,
    /// The resolved rules of the user.
    #[serde(default)]
    pub rules: Vec<Value>,
    /// The run in numbers.
    #[serde(default)]
    pub summary: Summary,
    /// What became of the gates (`--fail-if`); absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateVerdict>,
}
