//! Every key of a profile, what may stand there, and what it means.
//!
//! Owns the one table that checking, the JSON Schema and the nearest right name come from.

use super::values::SEVERITIES;
use crate::model::names::FRAMEWORKS;

/// A key of a section.
#[derive(Debug)]
pub struct KeyOf {
    /// Its name.
    pub name: &'static str,
    /// What may stand there; null may stand anywhere and means the default.
    pub kind: Kind,
    /// What it means, for the schema.
    pub doc: &'static str,
}

/// What may stand somewhere.
#[derive(Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// `true` or `false`.
    Flag,
    /// `true`, `false` or `auto`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A duration, or this word.
    Duration(Option<&'static str>),
    /// When to say something again.
    Repeat,
    /// Which GPUs.
    Gpus,
    /// A size.
    Size,
    /// A size, or a share of what there is.
    MemLimit,
    /// A number from 0 to 100.
    Percent,
    /// A whole number, 0 or more.
    Count,
    /// An address to listen at, or a port.
    Listen,
    /// Text that is never shown.
    Secret,
    /// An expression.
    Expression,
    /// `stacks`, `stop`, `restart`, `{signal: NAME}`, or `{command: [...]}`.
    Action,
    /// A list.
    List(&'static Kind),
    /// Names that the user chooses.
    Map(&'static Kind),
    /// One entry a finding.
    Findings(&'static [KeyOf]),
    /// These keys.
    Section(&'static [KeyOf]),
}

const fn key(name: &'static str, kind: Kind, doc: &'static str) -> KeyOf {
    KeyOf { name, kind, doc }
}

/// The top of a profile.
pub const PROFILE: &[KeyOf] = &[
    key(
        "extends",
        Kind::Text,
        "the profile that this one changes: a name, or a file beside this one",
    ),
    key(
        "env",
        Kind::Section(ENV),
        "variables for the command, where they are not set already",
    ),
    key("gpus", Kind::Section(GPUS), "which GPUs the run gets"),
    key("sample", Kind::Section(SAMPLE), "how often is looked"),
    key(
        "progress",
        Kind::Section(PROGRESS),
        "what else is read as progress",
    ),
    key("judge", Kind::Findings(FINDING), "how each finding is set"),
    key(
        "rules",
        Kind::List(&Kind::Section(RULE)),
        "findings of your own",
    ),
    key("tell", Kind::Section(TELL), "whom to tell what"),
    key(
        "act",
        Kind::Map(&Kind::List(&Kind::Action)),
        "what is done about a finding",
    ),
    key(
        "metrics",
        Kind::Section(METRICS),
        "what others can scrape while a run lasts",
    ),
    key("record", Kind::Section(RECORD), "what is kept, and where"),
    key("end", Kind::Section(END), "how a run may end"),
    key(
        "patrol",
        Kind::Section(PATROL),
        "gpuwatch patrol alone: whom it leaves alone, how it reaches owners",
    ),
];

const TEXTS: Kind = Kind::Map(&Kind::Text);

/// `env`
pub const ENV: &[KeyOf] = &[
    key("set", TEXTS, "names and values"),
    key(
        "framework",
        Kind::Choice(FRAMEWORKS),
        "the one that the command uses",
    ),
    key(
        "frameworks",
        Kind::Section(OF_FRAMEWORKS),
        "more of them for one framework",
    ),
];

/// `env.frameworks`, one key a framework
pub const OF_FRAMEWORKS: &[KeyOf] = &[
    key("tensorflow", TEXTS, "names and values for TensorFlow"),
    key("pytorch", TEXTS, "names and values for PyTorch"),
    key("jax", TEXTS, "names and values for JAX"),
];

/// `gpus`
pub const GPUS: &[KeyOf] = &[
    key(
        "choose",
        Kind::Gpus,
        "free: all that nobody uses, if there are any; a count, or auto for one; id:0,1: these; none: no GPU is chosen or watched",
    ),
    key(
        "min_free",
        Kind::Size,
        "a GPU with less free memory is not free",
    ),
    key(
        "wait",
        Kind::Duration(None),
        "how long to wait for a free GPU",
    ),
    key(
        "mem_limit",
        Kind::MemLimit,
        "how much memory of a GPU the command is told to use: 6GiB, or 80%",
    ),
];

/// `sample`
pub const SAMPLE: &[KeyOf] = &[key(
    "interval",
    Kind::Duration(None),
    "time between two samples, 100ms to 1h",
)];

/// `progress`
pub const PROGRESS: &[KeyOf] = &[
    key(
        "patterns",
        Kind::List(&Kind::Section(PATTERN)),
        "lines of your own that show progress",
    ),
    key(
        "follow",
        Kind::List(&Kind::Text),
        "files whose lines are read as output",
    ),
];

/// `progress.patterns[]`
pub const PATTERN: &[KeyOf] = &[
    key("name", Kind::Text, "a name for it"),
    key(
        "regex",
        Kind::Text,
        "with named groups: epoch, epochs, step, steps, percent, loss, rate",
    ),
    key(
        "phase",
        Kind::Choice(&["train", "eval", "other"]),
        "what the program does then",
    ),
];

/// `judge.<finding>`
pub const FINDING: &[KeyOf] = &[
    key("on", Kind::Flag, "whether it is looked for"),
    key(
        "severity",
        Kind::Choice(SEVERITIES),
        "how serious it is, in place of its own",
    ),
    key(
        "after",
        Kind::Duration(Some("auto")),
        "how long its condition must hold; auto adapts to the run",
    ),
    key(
        "below",
        Kind::Percent,
        "idle_holding alone: mean use of the GPUs below this, whatever else is seen",
    ),
    key(
        "for",
        Kind::Duration(None),
        "idle_holding alone: for this long",
    ),
];

/// `rules[]`
pub const RULE: &[KeyOf] = &[
    key("name", Kind::Text, "the finding's name, with hyphens"),
    key(
        "when",
        Kind::Expression,
        "the condition, like gpu.temp > 85 or mean(gpu.util, 10m) < 20",
    ),
    key("for", Kind::Duration(None), "how long it must hold"),
    key("severity", Kind::Choice(SEVERITIES), "how serious it is"),
    key(
        "say",
        Kind::Text,
        "what to say, with values of the condition in braces; the condition where absent",
    ),
];

/// `tell`
pub const TELL: &[KeyOf] = &[
    key(
        "language",
        Kind::Choice(&["auto", "en", "zh"]),
        "auto: by the locale",
    ),
    key(
        "channels",
        Kind::Map(&Kind::Section(CHANNEL)),
        "places to send to, by names of your own",
    ),
    key(
        "routes",
        Kind::List(&Kind::Section(ROUTE)),
        "who hears what; without any, every channel hears of alarms and of ends",
    ),
    key(
        "repeat",
        Kind::Repeat,
        "when something that still holds is said again: never, 2x (when it is twice as old), 30m",
    ),
    key(
        "texts",
        Kind::Section(OWN_TEXTS),
        "texts of your own, as templates",
    ),
    key(
        "desktop",
        Kind::Switch,
        "messages on the desktop; auto: for alarms, where there is a desktop and stderr is a terminal",
    ),
];

/// Types of channels.
pub const CHANNEL_TYPES: &[&str] = &[
    "webhook",
    "slack",
    "discord",
    "teams",
    "feishu",
    "dingtalk",
    "wecom",
    "telegram",
    "ntfy",
    "alertmanager",
    "heartbeat",
    "email",
    "desktop",
    "command",
];

/// `tell.texts`
pub const OWN_TEXTS: &[KeyOf] = &[
    key("title", Kind::Text, "the one line, in the place of ours"),
    key("body", Kind::Text, "the lines below it"),
];

/// `tell.channels.<name>`
pub const CHANNEL: &[KeyOf] = &[
    key("type", Kind::Choice(CHANNEL_TYPES), "what it is"),
    key(
        "url",
        Kind::Secret,
        "the address: itself, env:NAME or file:PATH",
    ),
    key(
        "secret",
        Kind::Secret,
        "signs what is sent: webhook, feishu and dingtalk",
    ),
    key(
        "token",
        Kind::Secret,
        "telegram: the bot's token; ntfy: an access token",
    ),
    key(
        "chat",
        Kind::Text,
        "telegram: the chat's number in quotes, or @channel",
    ),
    key(
        "template",
        Kind::Text,
        "webhook: the body, in the place of the standard one",
    ),
    key(
        "secrets",
        Kind::Map(&Kind::Secret),
        "webhook: what the template may name as secrets.NAME",
    ),
    key(
        "headers",
        Kind::Map(&Kind::Secret),
        "webhook and alertmanager: more headers",
    ),
    key("from", Kind::Text, "email: the sender"),
    key("to", Kind::List(&Kind::Text), "email: the receivers"),
    key(
        "argv",
        Kind::List(&Kind::Text),
        "command: the program and its arguments",
    ),
];

/// `tell.routes[]`
pub const ROUTE: &[KeyOf] = &[
    key(
        "severity",
        Kind::Choice(SEVERITIES),
        "findings at least as serious as this",
    ),
    key("findings", Kind::List(&Kind::Text), "only these findings"),
    key(
        "runs",
        Kind::Choice(&["never", "failed", "always"]),
        "which ends of runs",
    ),
    key("to", Kind::List(&Kind::Text), "names of channels"),
];

/// `metrics`
pub const METRICS: &[KeyOf] = &[
    key(
        "textfile",
        Kind::Text,
        "the directory of node_exporter's textfile collector, to which each run writes a file",
    ),
    key(
        "listen",
        Kind::Listen,
        "where metrics are served over HTTP: a port of this machine alone, or an address",
    ),
];

/// `record`
pub const RECORD: &[KeyOf] = &[
    key("dir", Kind::Text, "where runs are recorded"),
    key("output", Kind::Flag, "whether the output is kept"),
    key("keep", Kind::Section(KEEP), "which old runs stay"),
];

/// `record.keep`
pub const KEEP: &[KeyOf] = &[
    key("days", Kind::Count, "runs of so many days"),
    key("runs", Kind::Count, "so many runs"),
    key("size", Kind::Size, "runs of so much together"),
];

/// `end`
pub const END: &[KeyOf] = &[
    key(
        "leftovers",
        Kind::Choice(&["report", "wait", "kill"]),
        "what becomes of processes that the command leaves behind",
    ),
    key(
        "time_limit",
        Kind::Duration(None),
        "the run is ended after this, with exit code 124",
    ),
    key(
        "kill_after",
        Kind::Duration(None),
        "what was asked to end and lives on after this is killed",
    ),
    key(
        "restart",
        Kind::Section(RESTART),
        "whether the command is started again",
    ),
    key(
        "fail_if",
        Kind::List(&Kind::Expression),
        "a run that succeeded fails all the same (exit code 3)",
    ),
];

/// `end.restart`
pub const RESTART: &[KeyOf] = &[
    key(
        "on",
        Kind::List(&Kind::Text),
        "after these causes and findings; failure: after any",
    ),
    key("max", Kind::Count, "so many times"),
    key(
        "backoff",
        Kind::Duration(None),
        "after a pause of this, which doubles each time",
    ),
];

/// `patrol`
pub const PATROL: &[KeyOf] = &[
    key(
        "exempt",
        Kind::List(&Kind::Section(EXEMPTION)),
        "jobs that nobody is told about",
    ),
    key(
        "owners",
        Kind::Section(OWNERS),
        "how the owner of a job is told",
    ),
];

/// `patrol.exempt[]`
pub const EXEMPTION: &[KeyOf] = &[
    key("user", Kind::Text, "the owner's login name, or number"),
    key(
        "command",
        Kind::Text,
        "a pattern for the whole command: * is any text, ? any character",
    ),
    key("why", Kind::Text, "for people"),
];

/// `patrol.owners`
pub const OWNERS: &[KeyOf] = &[
    key(
        "desktop",
        Kind::Flag,
        "messages on the desktop of an owner who has a session",
    ),
    key(
        "mail",
        Kind::Text,
        "the channel of type email by which owners get mail",
    ),
    key(
        "domain",
        Kind::Text,
        "an owner's address is USER@ and this; needed with mail",
    ),
];

/// The names of a section's keys.
pub fn names(section: &'static [KeyOf]) -> impl Iterator<Item = &'static str> + Clone {
    section.iter().map(|key| key.name)
}
