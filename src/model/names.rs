//! The names that profiles know: values of expressions with their units, and findings.
//!
//! Owns the closed lists, so that what is parsed and what is judged are the same names.

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
    /// A plain number.
    Number,
}

/// Values that `rules` compare: name, unit, meaning. One that is missing is neither above nor
/// below anything. `finding.<name>` is a name besides these, for each of [`FINDINGS`].
pub const NAMES: &[(&str, Unit, &str)] = &[
    ("gpu.util", Unit::Percent, "use of the watched GPUs, mean"),
    (
        "gpu.mem",
        Unit::Mib,
        "memory used on the watched GPUs, by anybody, together",
    ),
    (
        "gpu.power",
        Unit::Watts,
        "power of the watched GPUs together",
    ),
    ("gpu.temp", Unit::Celsius, "the hottest watched GPU"),
    (
        "job.mem",
        Unit::Mib,
        "GPU memory that the job holds, on all GPUs together",
    ),
    (
        "job.sm",
        Unit::Percent,
        "the job's own use of the watched GPUs, mean",
    ),
    ("job.cpu", Unit::Number, "processor cores that the job uses"),
    ("job.rss", Unit::Mib, "main memory that the job holds"),
    ("host.cpu", Unit::Percent, "use of the host's processors"),
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
    (
        "out.age",
        Unit::Seconds,
        "time since the job last printed anything",
    ),
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
    "xid_info",
    "throttled",
    "overheating",
    "imbalanced",
    "slow_step",
    "behind",
];

/// Frameworks that `--framework` and profiles know.
pub const FRAMEWORKS: &[&str] = &["tensorflow", "pytorch", "jax"];
