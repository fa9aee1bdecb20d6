//! The nouns that every room speaks: what was read, what happened, what a run is.
//!
//! Owns the types and their serialised names, which are the file formats of
//! `run.json`, `samples.csv` and `events.jsonl`. Must not know clocks, files,
//! threads, NVML, or where a value came from: it may use the standard library's
//! collections and serde, nothing else.

mod act;
mod end;
mod event;
mod gate;
mod inventory;
pub mod known;
mod listen;
mod mark;
mod mem_limit;
pub mod names;
mod number;
mod outcome;
mod patrol;
mod pattern;
mod process;
mod program;
mod reading;
mod record;
mod rule;
mod sample;
mod secret;
mod settings;
mod spent;
mod stamp;
mod tap;
mod tell;
pub mod units;
mod wish;

pub use act::{ActSettings, Action, SIGNALS, signal_named};
pub use end::{ANY_FAILURE, CAUSES, EndSettings, Leftovers, Restart};
pub use event::{
    AlertState, Event, FindingState, GpuChange, Logged, ProcessChange, ProgressChange, Severity,
    SourceState,
};
pub use gate::{Gate, GateVerdict};
pub use inventory::{GpuInfo, Instance, Inventory};
pub use listen::Listen;
pub use mark::{LineSource, Mark, Metric, Phase, Stream};
pub use mem_limit::{MOST_GPU_MIB, MemLimit};
pub use outcome::{Exit, Outcome, RunState, Verdict};
pub use patrol::{Exemption, PatrolSettings};
pub use pattern::Pattern;
pub use process::ProcessId;
pub use program::{OwnProcesses, Program, Programs};
pub use reading::{Reading, Why};
pub use record::{EnvSetting, GitState, JobIds, Origin, RestartRecord, RunRecord, Seat, Summary};
pub use rule::{Aggregate, Comparison, Condition, Rule, Term, filled};
pub use sample::{GpuProcess, GpuSample, HostSample, JobSample, ProgressState, Sample, Throttle};
pub use secret::{Hidden, MASK, SecretRef};
pub use settings::{FindingSettings, JudgeSettings, Limit, duration_text};
pub use spent::TimeSpent;
pub use stamp::Stamp;
pub use tap::Tap;
pub use tell::{
    Channel, Language, OwnTexts, Repeat, Route, RunNews, Switch, TellSettings, Webhook,
};
pub use wish::{GpuChoice, GpuWish, Wait, fits};
