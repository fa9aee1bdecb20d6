//! Scalars of a profile: durations, sizes, repeats, severities.

use std::time::Duration;

use super::error::shown;
use super::node::Node;
use crate::model::units::UnitError;
use crate::model::{GpuChoice, Listen, MemLimit, Phase, Repeat, RunNews, Severity, units};
use crate::plan::nearest::suggestion;

/// Severities as they are written.
pub const SEVERITIES: &[&str] = &["note", "warning", "critical"];

/// A duration; a bare 0 is one, too.
pub fn duration(node: &Node) -> Result<Duration, String> {
    match node.text() {
        Some(text) => units::duration(text).map_err(|e| e.to_string()),
        None if node.number() == Some(0.0) => Ok(Duration::ZERO),
        None => Err(format!(
            "{} can't be a duration: write it like 30s or 10m",
            node.kind()
        )),
    }
}

/// Which GPUs: a word, a count, or `id:` and a list.
pub fn gpu_choice(node: &Node) -> Result<GpuChoice, String> {
    const WORDS: [&str; 3] = ["free", "auto", "none"];
    let count = node.number().map(|count| count.to_string());
    let text = node.text().map(str::to_owned).or(count);
    let text =
        text.ok_or_else(|| format!("{} names no GPUs: write it like free or 2", node.kind()))?;
    text.parse().map_err(|why: String| match shown(&text) {
        Some(word) => format!("{why}{}", suggestion(word, WORDS)),
        None => "this names no GPUs: write free, auto, none, a count, or id:0,1".to_owned(),
    })
}

/// A size in MiB: `512MiB`, `20 GiB`, `1TiB`, or 0.
pub fn size_mib(node: &Node) -> Result<f64, String> {
    const EXAMPLE: &str = "write it like 512MiB or 20GiB";
    let Some(text) = node.text() else {
        return match node.number() {
            Some(0.0) => Ok(0.0),
            Some(_) => Err(format!("the number has no unit: {EXAMPLE}")),
            None => Err(format!("{} can't be a size: {EXAMPLE}", node.kind())),
        };
    };
    units::size_mib(text).map_err(|error| match error {
        UnitError::Unit { .. } => format!("the size has no unit that is known here: {EXAMPLE}"),
        _ => format!("this is no size: {EXAMPLE}"),
    })
}

/// `6GiB` or `80%`.
pub fn mem_limit(node: &Node) -> Result<MemLimit, String> {
    const FORMS: &str = "write a size like 6GiB or a share like 80%";
    let text = node
        .text()
        .ok_or_else(|| format!("{} can't be a limit of memory: {FORMS}", node.kind()))?;
    text.parse().map_err(|why: String| match shown(text) {
        Some(_) => why,
        None => format!("this is no limit of memory: {FORMS}"),
    })
}

/// A port, or an address with one.
pub fn listen(node: &Node) -> Result<Listen, String> {
    const FORMS: &str = "write a port like 9400, or an address like 127.0.0.1:9400";
    let port = node.number().map(|port| port.to_string());
    let text = node.text().map(str::to_owned).or(port);
    let text =
        text.ok_or_else(|| format!("{} is no address to listen at: {FORMS}", node.kind()))?;
    text.parse().map_err(|why: String| match shown(&text) {
        Some(_) => why,
        None => format!("this is no address to listen at: {FORMS}"),
    })
}

/// `never`, `2x`, or a duration.
pub fn repeat(node: &Node) -> Result<Repeat, String> {
    const EXAMPLE: &str = "write never, a factor like 2x, or a duration like 30m";
    let text = node.text().ok_or_else(|| EXAMPLE.to_owned())?;
    if text == "never" {
        return Ok(Repeat::Never);
    }
    if let Some(factor) = text.strip_suffix('x') {
        let factor = factor.parse::<f64>().ok().filter(|f| f.is_finite());
        return match factor {
            Some(factor) if factor > 1.0 => Ok(Repeat::Growing(factor)),
            Some(_) => Err("the factor must be above 1, like 2x".to_owned()),
            None => Err(EXAMPLE.to_owned()),
        };
    }
    match units::duration(text) {
        Ok(every) if every >= Duration::from_secs(60) => Ok(Repeat::Every(every)),
        Ok(_) => Err("more often than once a minute is a storm: write 1m or more".to_owned()),
        Err(_) => Err(EXAMPLE.to_owned()),
    }
}

/// A severity, if it is one.
pub fn severity(node: &Node) -> Option<Severity> {
    match node.text()? {
        "note" => Some(Severity::Note),
        "warning" => Some(Severity::Warning),
        "critical" => Some(Severity::Critical),
        _ => None,
    }
}

/// Which ends of runs, if it is one of the words.
pub fn run_news(node: &Node) -> Option<RunNews> {
    match node.text()? {
        "never" => Some(RunNews::Never),
        "failed" => Some(RunNews::Failed),
        "always" => Some(RunNews::Always),
        _ => None,
    }
}

/// A phase, if it is one.
pub fn phase(node: &Node) -> Option<Phase> {
    match node.text()? {
        "train" => Some(Phase::Train),
        "eval" => Some(Phase::Eval),
        "other" => Some(Phase::Other),
        _ => None,
    }
}
