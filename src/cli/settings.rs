//! Flags of `gpuwatch run` that profiles can settle, too.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{FalseyValueParser, OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::gpu_args::GpuArgs;
use super::layers;
use crate::model::names::FRAMEWORKS;
use crate::model::{Action, Channel, Leftovers, Listen, SIGNALS, signal_named, units};
use crate::plan::nearest::nearest;
use crate::plan::profile::{ProfileError, channel_for};
use crate::plan::resolve::{self, Flags, Resolved};

/// Those flags.
#[derive(Args)]
pub struct SettingArgs {
    /// Settings for this run: default, tensorflow, pytorch, jax, ci, workstation, or a file
    #[arg(
        long,
        value_name = "NAME|FILE",
        env = "GPUWATCH_PROFILE",
        hide_env_values = true,
        help_heading = "Environment"
    )]
    profile: Option<String>,

    /// The framework that the command uses: tensorflow, pytorch or jax. What helps it is set where
    /// it is not set already (see --dry-run)
    #[arg(long, value_name = "NAME", value_parser = framework, env = "GPUWATCH_FRAMEWORK", hide_env_values = true, help_heading = "Environment")]
    framework: Option<String>,

    /// Time between two samples, like 500ms, 1s, 10s [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = interval, env = "GPUWATCH_INTERVAL", hide_env_values = true, help_heading = "Watching")]
    interval: Option<Duration>,

    /// Call the run stalled after exactly this long without progress and activity; by default
    /// the limit adapts to the run
    #[arg(long, value_name = "DURATION", value_parser = lasting, env = "GPUWATCH_STALL_AFTER", hide_env_values = true, help_heading = "Watching")]
    stall_after: Option<Duration>,

    /// Call the run idle when the mean use of its GPUs is below this [default: 20, with --idle-for]
    #[arg(long, value_name = "PERCENT", value_parser = percent, env = "GPUWATCH_IDLE_BELOW", hide_env_values = true, help_heading = "Watching")]
    idle_below: Option<f64>,

    /// ... for this long [default: 10m, with --idle-below]
    #[arg(long, value_name = "DURATION", value_parser = lasting, env = "GPUWATCH_IDLE_FOR", hide_env_values = true, help_heading = "Watching")]
    idle_for: Option<Duration>,

    /// Read progress off this file, too, as it grows (a log), or off TensorBoard's event files
    /// below this directory (repeatable). It need not exist yet [env: `GPUWATCH_FOLLOW`]
    #[arg(long, value_name = "FILE|DIR", help_heading = "Watching")]
    follow: Vec<PathBuf>,

    /// Send alarms and the run's end there: an address, `env:NAME` or `file:PATH` where one is
    /// kept (repeatable). Services are known by their host, or by a short form: `slack://`,
    /// `discord://`, `teams://`, `feishu://`, `lark://`, `dingtalk://`, `wecom://`,
    /// `telegram://TOKEN@CHAT`, `ntfy://TOPIC`, `alertmanager://HOST:9093`, `heartbeat://`,
    /// `mailto:me@example.com` (by the server in `GPUWATCH_SMTP`)
    #[arg(long, value_name = "URL", value_parser = channel_for, value_delimiter = ' ', env = "GPUWATCH_NOTIFY", hide_env_values = true, help_heading = "Telling")]
    notify: Vec<Channel>,

    /// Show alarms on the desktop, whatever the circumstances
    #[arg(
        long,
        value_parser = FalseyValueParser::new(),
        env = "GPUWATCH_DESKTOP",
        hide_env_values = true,
        help_heading = "Telling"
    )]
    desktop: bool,

    /// Send nothing: show at the end what would have been sent, and where, secrets masked
    #[arg(long, help_heading = "Telling")]
    notify_dry_run: bool,

    /// Serve metrics for Prometheus while the run lasts: at a port that only this machine
    /// reaches, like 9400, or at an address, like 192.0.2.7:9400; 0 takes a free port and says
    /// which
    #[arg(long, value_name = "ADDRESS", value_parser = listen, env = "GPUWATCH_METRICS", hide_env_values = true, help_heading = "Telling")]
    metrics: Option<Asked<Listen>>,

    /// Write metrics to this directory, where node_exporter's textfile collector finds them
    #[arg(
        long,
        value_name = "DIR",
        value_parser = OsStringValueParser::new().map(PathBuf::from),
        env = "GPUWATCH_METRICS_TEXTFILE",
        hide_env_values = true,
        help_heading = "Telling"
    )]
    metrics_textfile: Option<PathBuf>,

    /// When the run is stalled, besides taking its stacks: stop (TERM, then KILL after
    /// --kill-after, or 30s; exit code 123), restart (the same, and it is started again, 3 times
    /// at most or as often as --restart says), or `signal:NAME`, to the main process, like
    /// signal:USR1
    #[arg(long, value_name = "ACTION", value_parser = on_stall, env = "GPUWATCH_ON_STALL", hide_env_values = true, help_heading = "Telling")]
    on_stall: Option<Asked<Action>>,

    /// What becomes of processes that the command leaves behind [default: report]
    #[arg(
        long,
        value_enum,
        env = "GPUWATCH_LEFTOVERS",
        hide_env_values = true,
        help_heading = "Ending"
    )]
    leftovers: Option<LeftoversArg>,

    /// End the command after this, like 90m or 12h, with exit code 124: TERM, then KILL after
    /// --kill-after, or 30s. Time in which the machine sleeps, or the job is stopped by Ctrl-Z,
    /// doesn't count
    #[arg(long, value_name = "DURATION", value_parser = lasting, env = "GPUWATCH_TIME_LIMIT", hide_env_values = true, help_heading = "Ending")]
    time_limit: Option<Duration>,

    /// Kill what was asked to end (by INT, TERM, HUP, QUIT, --time-limit or --leftovers kill)
    /// and still lives after this. Without it a signal from outside is never followed by KILL
    #[arg(long, value_name = "DURATION", value_parser = lasting, env = "GPUWATCH_KILL_AFTER", hide_env_values = true, help_heading = "Ending")]
    kill_after: Option<Duration>,

    /// Start the command again so many times at most when it fails: of anything, or of what the
    /// profile's end.restart.on names. It waits 30s before the first time (the profile's
    /// `end.restart.backoff`), then twice as long each time. Whoever stops the run ends it for good
    #[arg(long, value_name = "TIMES", value_parser = times, env = "GPUWATCH_RESTART", hide_env_values = true, help_heading = "Ending")]
    restart: Option<Asked<u32>>,

    /// End with exit code 3 if this holds of the whole run and the command succeeded
    /// (repeatable), like 'gpu.util.mean < 30', 'job.mem.peak > 22GiB', `finding.gpu_unused`.
    /// What there is no reading of fails nothing, and is said [env: `GPUWATCH_FAIL_IF`]
    #[arg(long, value_name = "EXPR", help_heading = "Ending")]
    fail_if: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum LeftoversArg {
    /// They are named at the end and left alone
    Report,
    /// They are waited for; Ctrl-C (or another INT, TERM, HUP, QUIT) ends the wait
    Wait,
    /// They are ended: TERM, then KILL after --kill-after, or 10s
    Kill,
}

impl From<LeftoversArg> for Leftovers {
    fn from(arg: LeftoversArg) -> Self {
        match arg {
            LeftoversArg::Report => Self::Report,
            LeftoversArg::Wait => Self::Wait,
            LeftoversArg::Kill => Self::Kill,
        }
    }
}

impl SettingArgs {
    /// The profiles of this machine under the flags.
    ///
    /// # Errors
    /// What is wrong with a profile.
    pub fn resolve(&self, gpus: &GpuArgs) -> Result<Resolved, ProfileError> {
        let mut flags = Flags {
            interval: self.interval,
            stall_after: self.stall_after,
            idle_below: self.idle_below,
            idle_for: self.idle_for,
            follow: self.followed(),
            notify: self.notify.clone(),
            desktop: self.desktop,
            notify_dry_run: self.notify_dry_run,
            metrics: self.metrics.and_then(|asked| asked.0),
            metrics_textfile: self
                .metrics_textfile
                .clone()
                .filter(|dir| !dir.as_os_str().is_empty()),
            leftovers: self.leftovers.map(Leftovers::from),
            time_limit: self.time_limit,
            kill_after: self.kill_after,
            on_stall: self.on_stall.clone().and_then(|asked| asked.0),
            restart: self.restart.and_then(|asked| asked.0),
            fail_if: self.gates(),
            // As below.
            framework: self.framework.clone().filter(|name| !name.is_empty()),
            ..Flags::default()
        };
        gpus.fill(&mut flags);
        // A variable that is set to nothing is how scripts take one away.
        let layers = layers::brief(self.profile.as_deref().filter(|p| !p.is_empty()))?;
        resolve::settings(layers.trees, &layers.name, &flags)
    }

    /// Those that were typed, else the variable's.
    fn followed(&self) -> Vec<PathBuf> {
        if !self.follow.is_empty() {
            return self.follow.clone();
        }
        let set = std::env::var_os("GPUWATCH_FOLLOW").filter(|path| !path.is_empty());
        set.map(PathBuf::from).into_iter().collect()
    }

    /// Those that were typed, else the variable's. A typed one that is empty is a mistake; a
    /// variable that is set to nothing is how scripts take one away.
    fn gates(&self) -> Vec<String> {
        if !self.fail_if.is_empty() {
            return self.fail_if.clone();
        }
        let set = std::env::var_os("GPUWATCH_FAIL_IF").filter(|text| !text.is_empty());
        set.map(|text| text.to_string_lossy().into_owned())
            .into_iter()
            .collect()
    }
}

/// What a variable that is set to nothing doesn't ask for.
#[derive(Clone, Copy)]
pub(super) struct Asked<T>(pub(super) Option<T>);

pub(super) fn listen(text: &str) -> Result<Asked<Listen>, String> {
    if text.trim().is_empty() {
        return Ok(Asked(None));
    }
    text.parse().map(|listen| Asked(Some(listen)))
}

/// An action on the job, or nothing.
fn on_stall(text: &str) -> Result<Asked<Action>, String> {
    let action = match text.trim() {
        "" => return Ok(Asked(None)),
        "stacks" => Some(Action::Stacks),
        "stop" => Some(Action::Stop),
        "restart" => Some(Action::Restart),
        text => text
            .strip_prefix("signal:")
            .and_then(signal_named)
            .map(Action::Signal),
    };
    let list = SIGNALS.join(", ");
    action.map(|action| Asked(Some(action))).ok_or_else(|| {
        format!("'{text}' is none of stacks, stop, restart, signal:NAME with one of {list}")
    })
}

fn times(text: &str) -> Result<Asked<u32>, String> {
    if text.trim().is_empty() {
        return Ok(Asked(None));
    }
    let times = text.trim().parse();
    times
        .map(|times| Asked(Some(times)))
        .map_err(|_| format!("'{text}' is no number of times: write one like 3"))
}

/// One of those that are known, or nothing.
fn framework(text: &str) -> Result<String, String> {
    let name = text.trim().to_ascii_lowercase();
    if name.is_empty() || FRAMEWORKS.contains(&name.as_str()) {
        return Ok(name);
    }
    // What people call them, too.
    let nickname = match name.as_str() {
        "tf" | "keras" => Some("tensorflow"),
        "torch" | "lightning" => Some("pytorch"),
        "flax" => Some("jax"),
        _ => None,
    };
    let known = FRAMEWORKS.iter().copied();
    let near = nickname.or_else(|| nearest(&name, known));
    let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
    Err(format!(
        "there is no framework '{text}': known are {}{near}",
        FRAMEWORKS.join(", ")
    ))
}

/// Between 100 ms (a reading takes some) and an hour.
pub fn interval(text: &str) -> Result<Duration, String> {
    let interval = units::duration(text).map_err(|e| e.to_string())?;
    if interval < Duration::from_millis(100) || interval > Duration::from_secs(3600) {
        return Err(format!(
            "'{text}' is out of range: 100ms is the least, 1h the most"
        ));
    }
    Ok(interval)
}

/// More than nothing.
pub fn lasting(text: &str) -> Result<Duration, String> {
    let duration = units::duration(text).map_err(|e| e.to_string())?;
    if duration.is_zero() {
        return Err(format!("'{text}' is out of range: it must be above 0"));
    }
    Ok(duration)
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>();
    match number {
        Ok(number) if number > 0.0 && number <= 100.0 => Ok(number),
        _ => Err(format!(
            "'{text}' is no percentage: write a number up to 100, like 20"
        )),
    }
}
