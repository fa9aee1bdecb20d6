//! `events.jsonl`: everything that the judge saw or said, besides the samples.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{LineSource, Mark, Metric, Phase, Stamp};

/// One line of `events.jsonl`: `{"time", "elapsed_s", "kind", ...}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    /// When.
    #[serde(flatten)]
    pub stamp: Stamp,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What a `progress` event announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgressChange {
    /// The first progress of the run.
    First,
    /// An epoch was completed.
    EpochEnd,
    /// A counter went back: a new run of the loop, a sweep's next trial.
    Reset,
}

/// What happened to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessChange {
    /// It joined the job.
    Started,
    /// It ended.
    Exited,
    /// It ended and nobody has reaped it.
    Zombie,
    /// It was stopped (job control or a tracer).
    Stopped,
    /// It was continued.
    Continued,
    /// Its parent ended and we took it over.
    Reparented,
    /// It waits on something (`on`).
    Blocked,
    /// It runs again.
    Running,
    /// It listens on a socket (`on`).
    Listening,
}

/// What happened to a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuChange {
    /// It no longer answers.
    Lost,
    /// It answers again.
    Recovered,
    /// The driver reported an XID (`code`).
    Xid,
    /// Uncorrectable errors were counted (`code`: how many).
    Ecc,
    /// Nothing can be read of it: it may not be opened, or every call fails.
    Unavailable,
}

/// The health of something that we read from or write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// It works.
    Ok,
    /// It doesn't.
    Failed,
    /// It doesn't answer in time.
    Slow,
}

/// How serious a finding is: warnings and criticals are alarms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For the summary.
    Note,
    /// An alarm.
    Warning,
    /// An alarm that can't wait.
    Critical,
}

/// Where a finding stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingState {
    /// It holds from now on.
    Raised,
    /// It still holds, and its evidence changed.
    Updated,
    /// It no longer holds.
    Cleared,
}

/// What became of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// Delivered.
    Sent,
    /// Not delivered.
    Failed,
    /// Kept for the next run, or `alert flush`.
    Kept,
    /// Only shown, in a dry run.
    Shown,
}

/// The kinds of event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The main process runs.
    Started {
        /// Its PID.
        pid: u32,
    },
    /// An output line that some fingerprint cares about.
    Line {
        /// Where it was printed.
        stream: LineSource,
        /// The line, without its end, control characters removed.
        text: String,
        /// The followed file that it stands in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
    /// Progress worth a line of its own.
    Progress {
        /// What this announces.
        change: ProgressChange,
        /// Who drew it.
        source: String,
        /// Train, eval or other.
        phase: Phase,
        /// Rank, if known.
        rank: Option<u32>,
        /// Epoch as displayed.
        #[serde(default, with = "super::number")]
        epoch: Option<f64>,
        /// Total epochs.
        #[serde(default, with = "super::number")]
        epochs: Option<f64>,
        /// Step as displayed.
        step: Option<u64>,
        /// Total steps.
        steps: Option<u64>,
        /// Percent as displayed.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            with = "super::number"
        )]
        percent: Option<f64>,
        /// Loss as displayed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loss: Option<Metric>,
    },
    /// A change of a process of the job.
    Process {
        /// Its PID.
        pid: u32,
        /// Its parent's.
        ppid: Option<u32>,
        /// Its short name (`comm`).
        name: Option<String>,
        /// Its rank, if known.
        rank: Option<u32>,
        /// What changed.
        change: ProcessChange,
        /// What it waits on or listens to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<String>,
        /// Exit code, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// Signal, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
    /// Which framework the job uses; the last one counts.
    Framework {
        /// `tensorflow`, `pytorch`, `jax`, ...
        name: String,
        /// Whether it is a build for GPUs, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gpu: Option<bool>,
        /// How that is known: a library and the program that mapped it, or who said so.
        why: String,
    },
    /// A change of a GPU.
    Gpu {
        /// NVML index (a number) or `MIG-<uuid>`.
        #[serde(with = "super::number::gpu")]
        gpu: String,
        /// What changed.
        change: GpuChange,
        /// XID or error count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<u64>,
    },
    /// The host's or cgroup's out-of-memory killer struck.
    Host {
        /// Its counter.
        oom_kill: u64,
    },
    /// The clocks moved apart.
    Clock {
        /// Seconds in suspend.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        suspended_s: Option<f64>,
        /// Seconds that the wall clock was set forward (negative: back).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_s: Option<f64>,
    },
    /// Whoever reads our output doesn't.
    Relay {
        /// For how long, so far.
        blocked_s: f64,
    },
    /// The health of a source or sink changed.
    Source {
        /// `nvml`, `nvml/2/pcie_mb_s`, `record`, `output.log`, `index`, ...
        name: String,
        /// How it is now.
        state: SourceState,
        /// Why, when it isn't ok.
        why: Option<String>,
    },
    /// A signal arrived.
    Signal {
        /// `TERM`, `INT`, ...
        name: String,
        /// `terminal`, `group`, or the sender's PID.
        from: String,
        /// Whether we passed it on.
        forwarded: bool,
        /// The short name of the process that sent it, where it could be looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sender: Option<String>,
    },
    /// Something was lost to us (never to the user).
    Dropped {
        /// What: `output`, `events`, `samples`.
        what: String,
        /// How many: bytes of output, else entries.
        n: u64,
    },
    /// The judge's word.
    Finding {
        /// From the closed list, or a user's rule.
        name: String,
        /// The finding's cause, where one is named.
        cause: Option<String>,
        /// How serious.
        severity: Severity,
        /// Raised, updated, cleared.
        state: FindingState,
        /// The finding that explains this one.
        because: Option<String>,
        /// `elapsed_s` when the condition began.
        since_s: f64,
        /// Numbers.
        evidence: Map<String, Value>,
        /// What to do.
        advice: Option<String>,
    },
    /// Something that we did.
    Action {
        /// `stacks`, `leftovers`, ...
        what: String,
        /// A path, a count, an error.
        result: String,
    },
    /// An alert's fate.
    Alert {
        /// The channel's name.
        channel: String,
        /// The finding or run event.
        about: String,
        /// Sent, failed, kept.
        state: AlertState,
        /// Why not.
        why: Option<String>,
    },
    /// The command is started again; what follows is another attempt.
    Restarted {
        /// Which start after the first this is, from 1 on.
        number: u32,
        /// So many there may be.
        of: u32,
        /// The cause or the finding because of which.
        why: String,
        /// How the attempt before ended: exit code,
        code: Option<i32>,
        /// or signal.
        signal: Option<i32>,
    },
    /// The main process ended.
    Exited {
        /// Exit code.
        code: Option<i32>,
        /// Signal.
        signal: Option<i32>,
    },
}

impl Event {
    /// Whether it came of judging: a judge isn't fed with it.
    pub fn is_judged(&self) -> bool {
        matches!(
            self,
            Self::Finding { .. } | Self::Alert { .. } | Self::Action { .. }
        )
    }

    /// A `progress` event with the numbers of a mark.
    pub fn progress(change: ProgressChange, mark: &Mark) -> Self {
        Self::Progress {
            change,
            source: mark.source.clone(),
            phase: mark.phase,
            rank: mark.rank,
            epoch: mark.epoch,
            epochs: mark.epochs,
            step: mark.step,
            steps: mark.steps,
            percent: mark.percent,
            loss: mark.loss,
        }
    }
}
