//! The names that profiles know: values of expressions with their units, and findings.
//!
//! Owns the closed lists, so that what is parsed and what is judged are the same names.

use super::units::{mib_text, number_text, seconds_text};

/// What a named value is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// %
    Percent,
    /// MiB
    Mib,
    /// Seconds.
    Seconds,
    /// Watts.
    Watts,
    /// Degrees Celsius.
    Celsius,
    /// MHz
    Megahertz,
    /// 10^6 bytes a second.
    MbPerSecond,
    /// A plain number.
    Number,
}

impl Unit {
    /// A value in this unit, for people.
    pub fn text(self, value: f64) -> String {
        let unit = match self {
            Self::Mib => return mib_text(value),
            Self::Seconds => return seconds_text(value),
            Self::Number => return number_text(value),
            Self::Percent => "%",
            Self::Watts => "W",
            Self::Celsius => "C",
            Self::Megahertz => "MHz",
            Self::MbPerSecond => "MB/s",
        };
        format!("{} {unit}", number_text(value))
    }
}

/// Values that `rules` compare: name, unit, meaning. One that is missing is neither above nor
/// below anything. `finding.<name>` is a name besides these, for each of [`FINDINGS`].
pub const NAMES: &[(&str, Unit, &str)] = &[
    ("gpu.util", Unit::Percent, "use of the watched GPUs, mean"),
    ("gpu.util.min", Unit::Percent, "use of the least used one"),
    ("gpu.util.max", Unit::Percent, "use of the most used one"),
    (
        "gpu.mem",
        Unit::Mib,
        "memory used on the watched GPUs, by anybody, together",
    ),
    (
        "gpu.mem.pct",
        Unit::Percent,
        "the share of its memory that is used on the fullest one, by anybody",
    ),
    (
        "gpu.power",
        Unit::Watts,
        "power of the watched GPUs together",
    ),
    (
        "gpu.power.pct",
        Unit::Percent,
        "power of the watched GPUs, of what their limits allow together",
    ),
    ("gpu.temp", Unit::Celsius, "the hottest watched GPU"),
    (
        "gpu.clock",
        Unit::Megahertz,
        "clock of the slowest watched GPU",
    ),
    (
        "gpu.pcie",
        Unit::MbPerSecond,
        "PCIe traffic of the watched GPUs together",
    ),
    (
        "job.mem",
        Unit::Mib,
        "GPU memory that the job holds, on all GPUs together",
    ),
    (
        "job.mem.pct",
        Unit::Percent,
        "the share of a GPU's memory that the job holds, where it holds most",
    ),
    (
        "job.sm",
        Unit::Percent,
        "the job's own use of the watched GPUs, mean",
    ),
    ("job.cpu", Unit::Number, "processor cores that the job uses"),
    ("job.rss", Unit::Mib, "main memory that the job holds"),
    ("job.procs", Unit::Number, "processes of the job"),
    (
        "job.read",
        Unit::MbPerSecond,
        "what the job reads from storage",
    ),
    (
        "job.write",
        Unit::MbPerSecond,
        "what the job writes to storage",
    ),
    ("host.cpu", Unit::Percent, "use of the host's processors"),
    (
        "host.io_pressure",
        Unit::Percent,
        "share of time in which something on the host waited for storage",
    ),
    (
        "progress.age",
        Unit::Seconds,
        "time since progress was last made",
    ),
    (
        "progress.rate",
        Unit::Number,
        "steps a second, as displayed",
    ),
    ("progress.epoch", Unit::Number, "epoch, as displayed"),
    ("progress.step", Unit::Number, "step, as displayed"),
    ("progress.loss", Unit::Number, "loss, as displayed"),
    ("progress.percent", Unit::Percent, "percent, as displayed"),
    (
        "progress.overall",
        Unit::Percent,
        "how far the run has come in all",
    ),
    (
        "progress.eta",
        Unit::Seconds,
        "time that the run still needs",
    ),
    (
        "out.age",
        Unit::Seconds,
        "time since the job last printed anything",
    ),
    ("run.age", Unit::Seconds, "time since the run's start"),
];

/// Values that `fail_if` compares, over the whole run: name, unit, meaning.
/// `finding.<name>` is a name besides these: whether it was raised.
pub const SUMMARY_NAMES: &[(&str, Unit, &str)] = &[
    ("gpu.util.mean", Unit::Percent, "mean use of the GPUs"),
    (
        "gpu.util.p95",
        Unit::Percent,
        "95th percentile of the GPUs' use",
    ),
    (
        "job.mem.peak",
        Unit::Mib,
        "the most GPU memory that the job held",
    ),
    ("power.mean", Unit::Watts, "mean power of the GPUs together"),
    ("duration", Unit::Seconds, "how long the run took"),
    (
        "progress.overall",
        Unit::Percent,
        "how far the run came in all",
    ),
];

/// Every finding, with underscores as profiles and expressions write it.
pub const FINDINGS: &[&str] = &[
    "starting",
    "preparing",
    "checkpointing",
    "evaluating",
    "stalled",
    "no_visible_progress",
    "waiting_for_input",
    "suspended",
    "idle_interactive",
    "idle_serving",
    "gpu_unused",
    "idle_holding",
    "orphans",
    "defunct",
    "unexplained_memory",
    "data_starved",
    "cpu_bound",
    "low_use",
    "small_batch",
    "memory_bound",
    "memory_leak",
    "near_oom",
    "oom",
    "host_oom",
    "nan",
    "program_fault",
    "hardware",
    "restarted",
    "xid_info",
    "throttled",
    "overheating",
    "imbalanced",
    "slow_step",
    "behind",
];

/// Frameworks that `--framework` and profiles know.
pub const FRAMEWORKS: &[&str] = &["tensorflow", "pytorch", "jax"];
