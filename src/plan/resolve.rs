//! Layers and flags to the settings of one run. Pure.
//!
//! Owns what a flag means on top of the profiles, and which settings this version reads but
//! does not act on yet.

use std::path::PathBuf;
use std::time::Duration;

use crate::model::{
    ANY_FAILURE, ActSettings, Action, Channel, EndSettings, Gate, GpuChoice, GpuWish,
    JudgeSettings, Leftovers, Limit, Listen, MemLimit, PatrolSettings, Pattern, Restart, Route,
    Rule, RunNews, Severity, Switch, TellSettings, Wait,
};

use super::expression::{self, Names, Scope};
use super::profile::{self, Node, Profile, ProfileError, Variable};

/// What the literal rule of `idle_holding` compares with where only one of its keys is given.
const IDLE_BELOW: f64 = 20.0;
const IDLE_FOR: Duration = Duration::from_secs(600);

/// Flags that settle something which a profile could settle, too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    /// `--gpus`
    pub gpus: Option<GpuChoice>,
    /// `--min-free`, MiB
    pub min_free_mib: Option<f64>,
    /// `--gpu-type`
    pub gpu_type: Option<String>,
    /// `--wait`
    pub wait: Option<Wait>,
    /// `--mem-limit`
    pub mem_limit: Option<MemLimit>,
    /// `--framework`
    pub framework: Option<String>,
    /// `--follow`
    pub follow: Vec<PathBuf>,
    /// `--interval`
    pub interval: Option<Duration>,
    /// `--stall-after`
    pub stall_after: Option<Duration>,
    /// `--idle-below`
    pub idle_below: Option<f64>,
    /// `--idle-for`
    pub idle_for: Option<Duration>,
    /// `--notify`
    pub notify: Vec<Channel>,
    /// `--desktop`
    pub desktop: bool,
    /// `--notify-dry-run`
    pub notify_dry_run: bool,
    /// `--metrics-textfile`
    pub metrics_textfile: Option<PathBuf>,
    /// `--metrics`
    pub metrics: Option<Listen>,
    /// `--leftovers`
    pub leftovers: Option<Leftovers>,
    /// `--time-limit`
    pub time_limit: Option<Duration>,
    /// `--kill-after`
    pub kill_after: Option<Duration>,
    /// `--on-stall`
    pub on_stall: Option<Action>,
    /// `--restart`
    pub restart: Option<u32>,
    /// `--fail-if`, as typed.
    pub fail_if: Vec<String>,
}

/// The settings of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The profile's name, for the record.
    pub profile: String,
    /// Variables for the command, with the profile that names each.
    pub env: Vec<Variable>,
    /// The framework that the command is said to use, and who says so.
    pub framework: Option<(String, String)>,
    /// Variables for that framework.
    pub framework_env: Vec<Variable>,
    /// How much memory of each GPU the command is told to use.
    pub mem_limit: Option<MemLimit>,
    /// Whether that was asked for this run, and not by a profile.
    pub mem_limit_asked: bool,
    /// Which GPUs.
    pub gpus: GpuWish,
    /// Time between two samples.
    pub interval: Duration,
    /// Lines of the user's own that show progress.
    pub patterns: Vec<Pattern>,
    /// Files and directories beside the output in which progress is written.
    pub follow: Vec<PathBuf>,
    /// The findings.
    pub judge: JudgeSettings,
    /// The user's own findings.
    pub rules: Vec<Rule>,
    /// Whom to tell; its routes say it in full.
    pub tell: TellSettings,
    /// What to do about findings.
    pub act: ActSettings,
    /// What others can scrape.
    pub metrics: profile::Metrics,
    /// How the run may end.
    pub end: EndSettings,
    /// When a run that succeeded fails all the same: the profile's and the flags'.
    pub gates: Vec<Gate>,
    /// What a patrol is told.
    pub patrol: PatrolSettings,
    /// What of a patrol's records is kept.
    pub record: profile::Record,
    /// Keys that are set but not acted on by this version, for a note.
    pub unheeded: Vec<String>,
}

/// The settings of merged `layers`, strongest first, under the flags; without any layer those of
/// the embedded default.
///
/// # Errors
/// The first mistake of the profiles.
pub fn settings(layers: Vec<Node>, name: &str, flags: &Flags) -> Result<Resolved, ProfileError> {
    let profile = match profile::layer::merge(layers) {
        Some(merged) => profile::profile(&merged)?,
        None => profile::embedded_default(),
    };
    let unheeded = unheeded(&profile);
    let (framework, framework_env) = framework(&profile.env, flags);
    let gates = gates(&profile, flags)?;
    let mut resolved = Resolved {
        profile: name.to_owned(),
        framework,
        framework_env,
        mem_limit: flags.mem_limit.or(profile.gpus.mem_limit),
        mem_limit_asked: flags.mem_limit.is_some(),
        env: profile.env.set,
        gpus: wish(&profile.gpus, flags),
        interval: flags.interval.unwrap_or(profile.interval),
        patterns: profile.progress.patterns,
        follow: if flags.follow.is_empty() {
            profile.progress.follow
        } else {
            flags.follow.clone()
        },
        judge: profile.judge,
        rules: profile.rules,
        tell: profile.tell,
        act: act(profile.act, flags),
        metrics: profile::Metrics {
            textfile: flags.metrics_textfile.clone().or(profile.metrics.textfile),
            listen: flags.metrics.or(profile.metrics.listen),
        },
        end: end(profile.end.settings, flags),
        gates,
        patrol: profile.patrol,
        record: profile.record,
        unheeded,
    };
    judge(&mut resolved.judge, flags);
    deadline(&mut resolved.judge, resolved.end.time_limit);
    tell(&mut resolved.tell, flags);
    Ok(resolved)
}

/// The profile's and the typed ones: who adds a gate doesn't open another.
fn gates(profile: &Profile, flags: &Flags) -> Result<Vec<Gate>, ProfileError> {
    let own: Vec<String> = profile
        .rules
        .iter()
        .map(|r| r.name.replace('-', "_"))
        .collect();
    let names = Names {
        scope: Scope::Gates,
        findings: &own,
    };
    let typed = flags.fail_if.iter().map(|text| {
        let condition = expression::parse(text, names).map_err(|error| {
            let what = format!("--fail-if: {}", error.what);
            ProfileError::general(what).marked(error.underlined())
        })?;
        Ok(Gate {
            text: text.clone(),
            condition,
        })
    });
    profile
        .end
        .fail_if
        .iter()
        .cloned()
        .map(Ok)
        .chain(typed)
        .collect()
}

fn end(profile: EndSettings, flags: &Flags) -> EndSettings {
    EndSettings {
        leftovers: flags.leftovers.unwrap_or(profile.leftovers),
        time_limit: flags.time_limit.or(profile.time_limit),
        kill_after: flags.kill_after.or(profile.kill_after),
        restart: restart(profile.restart, flags.restart),
    }
}

/// Who types how often, and whose profile doesn't say after what, means any failure.
fn restart(profile: Restart, typed: Option<u32>) -> Restart {
    let Some(max) = typed else { return profile };
    let on = if profile.on.is_empty() {
        vec![ANY_FAILURE.to_owned()]
    } else {
        profile.on
    };
    Restart { on, max, ..profile }
}

/// What is typed comes after what the profile has done, evidence above all.
fn act(mut profile: ActSettings, flags: &Flags) -> ActSettings {
    if let Some(action) = &flags.on_stall {
        let stalled = profile.0.entry("stalled".to_owned()).or_default();
        stalled.retain(|known| known == &Action::Stacks || matches!(known, Action::Command(_)));
        if !stalled.contains(action) {
            stalled.push(action.clone());
        }
    }
    profile
}

/// What is said of the framework, and what that sets. What stands in the embedded default gives
/// way to what somebody wrote, else what is for one framework goes before what is for all.
fn framework(env: &profile::Env, flags: &Flags) -> (Option<(String, String)>, Vec<Variable>) {
    let typed = flags.framework.clone();
    let typed = typed.map(|name| (name, "--framework".to_owned()));
    let written = env.framework.clone();
    let written = written.map(|(name, source)| (name, format!("profile {source}")));
    let Some((name, by)) = typed.or(written) else {
        return (None, Vec::new());
    };
    let more = env.frameworks.get(&name).cloned().unwrap_or_default();
    let gives_way = |variable: &Variable| {
        variable.source == profile::DEFAULT && env.set.iter().any(|set| set.name == variable.name)
    };
    let more = more.into_iter().filter(|v| !gives_way(v)).collect();
    (Some((name, by)), more)
}

/// A profile's `free` gives way where there is none, as the default does; a flag doesn't, nor
/// does what a profile asks for by number, name or with a wait.
fn wish(profile: &profile::Gpus, flags: &Flags) -> GpuWish {
    let profiles = Some(&profile.choose).filter(|choice| **choice != GpuChoice::Free);
    let wait = flags.wait.unwrap_or(if profile.wait.is_zero() {
        Wait::No
    } else {
        Wait::For(profile.wait)
    });
    let typed = flags.gpus.is_some() || flags.min_free_mib.is_some() || flags.gpu_type.is_some();
    let choice = flags.gpus.as_ref().or(profiles).cloned();
    let particular = matches!(choice, Some(GpuChoice::Count(_) | GpuChoice::Named(_)));
    GpuWish {
        choice,
        min_free_mib: flags.min_free_mib.unwrap_or(profile.min_free_mib),
        gpu_type: flags.gpu_type.clone(),
        wait,
        asked: typed || particular || wait != Wait::No,
    }
}

fn judge(settings: &mut JudgeSettings, flags: &Flags) {
    if let Some(after) = flags.stall_after {
        let stalled = settings.0.entry("stalled".to_owned()).or_default();
        stalled.on = true;
        stalled.after = Limit::After(after);
    }
    let idle = settings.0.entry("idle_holding".to_owned()).or_default();
    if flags.idle_below.is_some() || flags.idle_for.is_some() {
        idle.on = true;
        idle.below = flags.idle_below.or(idle.below);
        idle.lasting = flags.idle_for.or(idle.lasting);
    }
    if idle.below.is_some() || idle.lasting.is_some() {
        idle.below = idle.below.or(Some(IDLE_BELOW));
        idle.lasting = idle.lasting.or(Some(IDLE_FOR));
    }
}

/// A run that will be ended by its time limit is behind when it won't be done by then.
fn deadline(settings: &mut JudgeSettings, limit: Option<Duration>) {
    let Some(limit) = limit else { return };
    let behind = settings.0.entry("behind".to_owned()).or_default();
    if behind.after == Limit::Auto {
        behind.after = Limit::After(limit);
    }
}

fn tell(settings: &mut TellSettings, flags: &Flags) {
    if settings.routes.is_empty() && !settings.channels.is_empty() {
        settings
            .routes
            .push(alarms_to(settings.channels.keys().cloned().collect()));
    }
    let mut added = Vec::new();
    let mut number = 0_u32;
    for channel in &flags.notify {
        // A profile's channel may have the name.
        let name = loop {
            number += 1;
            let name = format!("notify-{number}");
            if !settings.channels.contains_key(&name) {
                break name;
            }
        };
        settings.channels.insert(name.clone(), channel.clone());
        added.push(name);
    }
    if !added.is_empty() {
        settings.routes.push(alarms_to(added));
    }
    settings.dry_run = flags.notify_dry_run;
    if flags.desktop {
        settings.desktop = Switch::On;
    }
}

/// The route of those who didn't write one: alarms, and how runs end.
fn alarms_to(to: Vec<String>) -> Route {
    Route {
        severity: Severity::Warning,
        findings: Vec::new(),
        runs: RunNews::Always,
        to,
    }
}

/// A key that does nothing must not look as if it did.
fn unheeded(profile: &Profile) -> Vec<String> {
    let keys = [("record", profile.record != profile::Record::default())];
    keys.into_iter()
        .filter(|(_, set)| *set)
        .map(|(key, _)| key.to_owned())
        .collect()
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
