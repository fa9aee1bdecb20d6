//! A checked and merged tree to a typed profile.
//!
//! Owns defaults and everything that isn't a matter of one key's type: ranges, names that must
//! exist, expressions, patterns.

use std::path::PathBuf;
use std::time::Duration;

use super::channel;
use super::error::ProfileError;
use super::node::Node;
use super::patrol;
use super::pattern::pattern;
use super::rule;
use super::values;
use super::{End, Env, Gpus, Metrics, Profile, Progress, Record, Variable};
use crate::model::names::FINDINGS;
use crate::model::{
    ANY_FAILURE, ActSettings, Action, CAUSES, EndSettings, FindingSettings, Gate, GpuChoice,
    JudgeSettings, Leftovers, Limit, PatrolSettings, Restart, SIGNALS, TellSettings, signal_named,
};
use crate::plan::expression::{self, Names, Scope};
use crate::plan::nearest::suggestion;

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);

/// Reads a tree.
///
/// # Errors
/// The first mistake.
pub fn profile(tree: &Node) -> Result<Profile, ProfileError> {
    let rule_nodes = tree.get("rules").map_or(&[][..], Node::items);
    let names = rule::names(rule_nodes)?;
    let mut known: Vec<String> = FINDINGS.iter().map(|name| (*name).to_owned()).collect();
    known.extend(names.iter().cloned());
    let rules = rule::rules(rule_nodes, &names)?;
    let tell = channel::tell(tree.get("tell"), &known)?;
    Ok(Profile {
        env: env(tree.get("env"))?,
        gpus: gpus(tree.get("gpus"))?,
        interval: interval(tree.at(&["sample", "interval"]))?,
        progress: progress(tree.get("progress"))?,
        judge: judge(tree.get("judge"))?,
        rules,
        patrol: patrol::patrol(tree.get("patrol"), &tell)?,
        tell,
        act: act(tree.get("act"), &known)?,
        metrics: metrics(tree.get("metrics"))?,
        record: record(tree.get("record"))?,
        end: end(tree.get("end"), &names, &known)?,
    })
}

/// What holds where no profile says anything.
pub fn unwritten() -> Profile {
    let findings = FINDINGS.iter();
    let judge = findings.map(|name| ((*name).to_owned(), FindingSettings::default()));
    Profile {
        env: Env::default(),
        gpus: Gpus::default(),
        interval: INTERVAL,
        progress: Progress::default(),
        judge: JudgeSettings(judge.collect()),
        rules: Vec::new(),
        tell: TellSettings::default(),
        act: ActSettings::default(),
        metrics: Metrics::default(),
        record: Record::default(),
        end: End::default(),
        patrol: PatrolSettings::default(),
    }
}

pub(super) fn at(node: &Node, path: impl Into<String>) -> impl FnOnce(String) -> ProfileError {
    let (place, path) = (node.place.clone(), path.into());
    move |what| ProfileError::new(&place, path, what)
}

pub(super) fn duration(node: Option<&Node>, path: &str) -> Result<Option<Duration>, ProfileError> {
    node.map(|node| values::duration(node).map_err(at(node, path)))
        .transpose()
}

/// A duration that is more than nothing.
fn lasting(node: Option<&Node>, path: &str) -> Result<Option<Duration>, ProfileError> {
    match (node, duration(node, path)?) {
        (Some(node), Some(Duration::ZERO)) => {
            let what = "must be above 0; leave it empty for none".to_owned();
            Err(ProfileError::new(&node.place, path, what))
        }
        (_, lasting) => Ok(lasting),
    }
}

fn size(node: Option<&Node>, path: &str) -> Result<Option<f64>, ProfileError> {
    node.map(|node| values::size_mib(node).map_err(at(node, path)))
        .transpose()
}

fn count(node: Option<&Node>) -> Option<u64> {
    node.and_then(Node::number).map(|number| number as u64)
}

/// The texts of a list.
pub fn texts(list: Option<&Node>) -> Vec<String> {
    let items = list.map_or(&[][..], Node::items);
    items
        .iter()
        .filter_map(Node::text)
        .map(str::to_owned)
        .collect()
}

/// A finding's name as a person writes it, checked, with hyphens.
pub fn finding_name(node: &Node, path: &str, known: &[String]) -> Result<String, ProfileError> {
    let name = node.text().unwrap_or_default();
    let plain = name.replace('-', "_");
    if known.contains(&plain) {
        return Ok(plain.replace('_', "-"));
    }
    let near = suggestion(name, known.iter().map(String::as_str));
    let what = format!("there is no finding of this name{near}");
    Err(ProfileError::new(&node.place, path, what))
}

fn env(node: Option<&Node>) -> Result<Env, ProfileError> {
    let set = node.and_then(|node| node.get("set"));
    let frameworks = node.and_then(|node| node.get("frameworks"));
    let framework = node.and_then(|node| node.get("framework"));
    let mut env = Env {
        set: variables(set)?,
        framework: framework
            .and_then(|node| Some((node.text()?.to_owned(), node.place.source.to_string()))),
        ..Env::default()
    };
    for (key, set) in frameworks.map_or(&[][..], Node::entries) {
        env.frameworks
            .insert(key.name.clone(), variables(Some(set))?);
    }
    Ok(env)
}

fn variables(map: Option<&Node>) -> Result<Vec<Variable>, ProfileError> {
    let mut found = Vec::new();
    for (key, value) in map.map_or(&[][..], Node::entries) {
        if key.name.contains('-') || key.name.starts_with(|c: char| c.is_ascii_digit()) {
            let what = "this can't be a variable's name: use letters, digits and '_'";
            return Err(ProfileError::new(&key.place, "env", what));
        }
        let Some(text) = value.text() else {
            continue;
        };
        if text.contains('\0') {
            let what = "a variable's value can't hold a NUL";
            return Err(ProfileError::new(
                &value.place,
                format!("env.{}", key.name),
                what,
            ));
        }
        found.push(Variable {
            name: key.name.clone(),
            value: text.to_owned(),
            source: value.place.source.to_string(),
        });
    }
    Ok(found)
}

fn gpus(node: Option<&Node>) -> Result<Gpus, ProfileError> {
    let get = |key| node.and_then(|node: &Node| node.get(key));
    Ok(Gpus {
        choose: get("choose").map_or(Ok(GpuChoice::Free), |node| {
            values::gpu_choice(node).map_err(at(node, "gpus.choose"))
        })?,
        min_free_mib: size(get("min_free"), "gpus.min_free")?.unwrap_or_default(),
        wait: duration(get("wait"), "gpus.wait")?.unwrap_or_default(),
        mem_limit: get("mem_limit")
            .map(|node| values::mem_limit(node).map_err(at(node, "gpus.mem_limit")))
            .transpose()?,
    })
}

fn interval(node: Option<&Node>) -> Result<Duration, ProfileError> {
    const PATH: &str = "sample.interval";
    let Some(node) = node else {
        return Ok(INTERVAL);
    };
    let interval = values::duration(node).map_err(at(node, PATH))?;
    if interval < Duration::from_millis(100) || interval > Duration::from_secs(3600) {
        let what = "this is out of range: 100ms is the least, 1h the most";
        return Err(ProfileError::new(&node.place, PATH, what));
    }
    Ok(interval)
}

fn progress(node: Option<&Node>) -> Result<Progress, ProfileError> {
    let patterns = node.and_then(|node| node.get("patterns"));
    let patterns = patterns.map_or(&[][..], Node::items).iter().enumerate();
    Ok(Progress {
        patterns: patterns
            .map(|(i, node)| pattern(node, &format!("progress.patterns[{i}]")))
            .collect::<Result<_, _>>()?,
        follow: texts(node.and_then(|node| node.get("follow")))
            .into_iter()
            .map(PathBuf::from)
            .collect(),
    })
}

pub(super) fn required(node: &Node, key: &str, path: &str) -> Result<String, ProfileError> {
    let text = node
        .get(key)
        .and_then(Node::text)
        .filter(|text| !text.trim().is_empty());
    text.map(str::to_owned)
        .ok_or_else(|| ProfileError::new(&node.place, path, format!("'{key}' is missing")))
}

fn judge(node: Option<&Node>) -> Result<JudgeSettings, ProfileError> {
    let mut settings = JudgeSettings::default();
    for name in FINDINGS {
        let node = node.and_then(|node| node.get(name));
        settings.0.insert((*name).to_owned(), finding(node, name)?);
    }
    Ok(settings)
}

fn finding(node: Option<&Node>, name: &str) -> Result<FindingSettings, ProfileError> {
    let get = |key| node.and_then(|node: &Node| node.get(key));
    let after = get("after").filter(|after| after.text() != Some("auto"));
    let path = |key: &str| format!("judge.{name}.{key}");
    Ok(FindingSettings {
        on: get("on").and_then(Node::flag).unwrap_or(true),
        severity: get("severity").and_then(values::severity),
        after: duration(after, &path("after"))?.map_or(Limit::Auto, Limit::After),
        below: get("below").and_then(Node::number),
        lasting: duration(get("for"), &path("for"))?,
    })
}

fn act(node: Option<&Node>, known: &[String]) -> Result<ActSettings, ProfileError> {
    let mut settings = ActSettings::default();
    for (key, actions) in node.map_or(&[][..], Node::entries) {
        let plain = key.name.replace('-', "_");
        if !known.contains(&plain) {
            let near = suggestion(&key.name, known.iter().map(String::as_str));
            let what = format!("there is no finding of this name{near}");
            return Err(ProfileError::new(&key.place, "act", what));
        }
        let mut list = Vec::new();
        for (i, node) in actions.items().iter().enumerate() {
            list.push(action(node, &format!("act.{}[{i}]", key.name))?);
        }
        settings.0.insert(plain.replace('_', "-"), list);
    }
    Ok(settings)
}

fn action(node: &Node, path: &str) -> Result<Action, ProfileError> {
    match node.text() {
        Some("stacks") => return Ok(Action::Stacks),
        Some("stop") => return Ok(Action::Stop),
        Some("restart") => return Ok(Action::Restart),
        _ => {}
    }
    if let Some(signal) = node.get("signal") {
        let name = signal.text().unwrap_or_default();
        let known = signal_named(name).filter(|_| node.get("command").is_none());
        return known.map(Action::Signal).ok_or_else(|| {
            let list = SIGNALS.join(", ");
            let what = format!(
                "'signal' must be one of {list}, and stand alone; what shall end the command is 'stop'"
            );
            ProfileError::new(&node.place, path, what)
        });
    }
    let argv = texts(node.get("command"));
    if argv.first().is_none_or(String::is_empty) {
        let what = "'command' must name a program at least, like command: [notify-send, stalled]";
        return Err(ProfileError::new(&node.place, path, what));
    }
    Ok(Action::Command(argv))
}

fn metrics(node: Option<&Node>) -> Result<Metrics, ProfileError> {
    let get = |key| node.and_then(|node: &Node| node.get(key));
    let named = |node: &&Node| node.text().is_some_and(|text| !text.is_empty());
    Ok(Metrics {
        textfile: get("textfile")
            .filter(named)
            .and_then(Node::text)
            .map(PathBuf::from),
        listen: get("listen")
            .map(|node| values::listen(node).map_err(at(node, "metrics.listen")))
            .transpose()?,
    })
}

fn record(node: Option<&Node>) -> Result<Record, ProfileError> {
    let get = |key| node.and_then(|node: &Node| node.get(key));
    let keep = |key| get("keep").and_then(|keep| keep.get(key));
    let usual = Record::default();
    Ok(Record {
        dir: get("dir").and_then(Node::text).map(PathBuf::from),
        output: get("output").and_then(Node::flag).unwrap_or(usual.output),
        keep_days: count(keep("days")).unwrap_or(usual.keep_days),
        keep_runs: count(keep("runs")).unwrap_or(usual.keep_runs),
        keep_mib: size(keep("size"), "record.keep.size")?.unwrap_or(usual.keep_mib),
    })
}

/// What a run may end of: a cause that the verdict knows, a finding, or any failure.
fn ending(node: &Node, findings: &[String]) -> Result<String, ProfileError> {
    let name = node.text().unwrap_or_default().replace('_', "-");
    if name == ANY_FAILURE || CAUSES.contains(&name.as_str()) {
        return Ok(name);
    }
    let causes = CAUSES.iter().map(|cause| cause.replace('-', "_"));
    let known: Vec<String> = findings.iter().cloned().chain(causes).collect();
    finding_name(node, "end.restart.on", &known)
}

fn end(node: Option<&Node>, own: &[String], known: &[String]) -> Result<End, ProfileError> {
    let get = |key| node.and_then(|node: &Node| node.get(key));
    let restart = |key| get("restart").and_then(|restart| restart.get(key));
    let usual = Restart::default();
    let on = restart("on").map_or(&[][..], Node::items).iter();
    let gates = get("fail_if")
        .map_or(&[][..], Node::items)
        .iter()
        .enumerate();
    Ok(End {
        settings: EndSettings {
            leftovers: match get("leftovers").and_then(Node::text) {
                Some("wait") => Leftovers::Wait,
                Some("kill") => Leftovers::Kill,
                _ => Leftovers::Report,
            },
            time_limit: lasting(get("time_limit"), "end.time_limit")?,
            kill_after: lasting(get("kill_after"), "end.kill_after")?,
            restart: Restart {
                on: on
                    .map(|node| ending(node, known))
                    .collect::<Result<_, _>>()?,
                max: count(restart("max"))
                    .map_or(usual.max, |max| u32::try_from(max).unwrap_or(u32::MAX)),
                backoff: duration(restart("backoff"), "end.restart.backoff")?
                    .unwrap_or(usual.backoff),
            },
        },
        fail_if: gates
            .map(|(i, node)| gate(node, &format!("end.fail_if[{i}]"), own))
            .collect::<Result<_, _>>()?,
    })
}

fn gate(node: &Node, path: &str, own: &[String]) -> Result<Gate, ProfileError> {
    let text = node.text().unwrap_or_default().to_owned();
    let names = Names {
        scope: Scope::Gates,
        findings: own,
    };
    let condition = expression::parse(&text, names).map_err(|error| {
        ProfileError::new(&node.place, path, error.what.clone()).marked(error.underlined())
    })?;
    Ok(Gate { text, condition })
}
