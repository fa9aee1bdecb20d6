//! `gpuwatch replay`: records judged again.
//!
//! Owns which runs are meant and how findings are printed. Must not know how they are found.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};

use super::layers;
use super::output::{EXIT_NO, complain, note};
use super::profile::lines;
use crate::judge::{Finding, Input, JobFacts, Judge};
use crate::model::units::seconds_text;
use crate::model::{Event, Exit, FindingState, JudgeSettings, Rule, RunRecord, Severity};
use crate::plan::profile::ProfileError;
use crate::plan::resolve::{self, Flags};
use crate::plan::rules;
use crate::record::run_dir::RUN_JSON;
use crate::record::samples::SAMPLES;
use crate::record::{RecordError, Recorded, Replay, find, root_for_reading};
use crate::report::text::clean;

/// Judge records again: which findings they give
#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// Runs by id, name, `last` or directory; a directory of runs stands for all of them
    #[arg(required = true, value_name = "RUN|DIR")]
    pub runs: Vec<String>,
    /// Where runs are recorded [default: gpuwatch/runs in the user's state directory]
    #[arg(long, value_name = "DIR", env = "GPUWATCH_DIR")]
    pub dir: Option<PathBuf>,
    /// Judge by this profile instead of the recorded settings: a name, or a file. No other
    /// file of this machine is read
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// Print one JSON object a line for every finding
    #[arg(long)]
    pub json: bool,
}

/// One line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    elapsed_s: f64,
    name: &'a str,
    cause: Option<&'a str>,
    severity: Severity,
    state: FindingState,
    because: Option<&'a str>,
    since_s: f64,
    evidence: &'a Map<String, Value>,
    advice: Option<&'a str>,
}

/// Runs the command: 0 whatever is found, 1 where a run can't be read.
pub fn run(args: &ReplayArgs) -> ExitCode {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut unread = false;
    let profile = match args.profile.as_deref().map(profile).transpose() {
        Ok(profile) => profile,
        Err(error) => {
            super::errors::complain(&lines(&error));
            return ExitCode::from(EXIT_NO);
        }
    };
    for word in &args.runs {
        let dirs = lookup(word, args.dir.as_deref()).unwrap_or_else(|e| {
            note(&e);
            unread = true;
            Vec::new()
        });
        for dir in dirs {
            let mut text = String::new();
            if let Err(e) = replay(&dir, profile.as_ref(), args.json, &mut text) {
                note(&e);
                unread = true;
            }
            match out.write_all(text.as_bytes()) {
                // Whoever closed the pipe has seen enough.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
                Err(e) => return complain(&format!("cannot write the answer: {e}")),
                Ok(()) => {}
            }
        }
    }
    match out.flush() {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot write the answer: {e}"))
        }
        _ if unread => ExitCode::from(EXIT_NO),
        _ => ExitCode::SUCCESS,
    }
}

/// The directories that a word names, in the order of their names.
fn lookup(word: &str, root: Option<&Path>) -> Result<Vec<PathBuf>, RecordError> {
    let dir = Path::new(word);
    if dir.join(SAMPLES).exists() {
        return Ok(vec![dir.to_owned()]);
    }
    if dir.is_dir() && !dir.join(RUN_JSON).exists() {
        let mut inside: Vec<PathBuf> = dir
            .read_dir()
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.join(SAMPLES).exists())
            .collect();
        inside.sort();
        if !inside.is_empty() {
            return Ok(inside);
        }
    }
    // A directory is found whatever becomes of the place for records.
    let root = match root_for_reading(root) {
        Err(_) if word.contains('/') => None,
        other => other?,
    };
    Ok(vec![find(root.as_deref(), word)?])
}

/// How runs are judged.
type Settings = (JudgeSettings, Vec<Rule>);

fn profile(name: &str) -> Result<Settings, ProfileError> {
    let layers = layers::alone(name)?;
    let resolved = resolve::settings(layers.trees, &layers.name, &Flags::default())?;
    Ok((resolved.judge, resolved.rules))
}

/// As it was judged when it ran.
fn recorded(record: &RunRecord) -> Result<Settings, String> {
    let judge = rules::judge_from_map(&record.judge)?;
    Ok((judge, rules::from_values(&record.rules)?))
}

fn replay(
    dir: &Path,
    profile: Option<&Settings>,
    json: bool,
    text: &mut String,
) -> Result<(), String> {
    let unread = |e: RecordError| e.to_string();
    let stream = Replay::open(dir).map_err(unread)?;
    let record = stream.record().cloned();
    let known = record.clone().unwrap_or_default();
    let id = match dir.file_name() {
        Some(name) if known.id.is_empty() => name.to_string_lossy().into_owned(),
        _ => known.id.clone(),
    };
    let (settings, rules) = match profile {
        Some(profile) => profile.clone(),
        None => recorded(&known).map_err(|e| format!("{}: {RUN_JSON}: {e}", dir.display()))?,
    };
    let mut facts = JobFacts::of(&known);
    if stream.tells_framework() {
        facts.framework = None;
    }
    let mut judge = Judge::new(settings, rules, facts);
    let mut end = (record.is_none() || known.ended.is_some()).then_some(known.exit);
    let mut now = 0.0;
    for entry in stream {
        let findings = match &entry.map_err(unread)? {
            Recorded::Sample(sample) => {
                now = sample.stamp.elapsed_s;
                judge.step(Input::Sample(sample))
            }
            Recorded::Event(logged) => {
                now = logged.stamp.elapsed_s;
                if let Event::Exited { code, signal } = logged.event {
                    end = Some(Exit { code, signal });
                }
                judge.step(Input::Event(logged))
            }
        };
        for finding in &findings {
            print(&id, now, finding, json, text);
        }
    }
    if let Some(exit) = end {
        for finding in judge.finish(&exit, now) {
            print(&id, now, &finding, json, text);
        }
    }
    Ok(())
}

fn print(run: &str, elapsed_s: f64, finding: &Finding, json: bool, text: &mut String) {
    let line = Line {
        run,
        elapsed_s,
        name: &finding.name,
        cause: finding.cause.as_deref(),
        severity: finding.severity,
        state: finding.state,
        because: finding.because.as_deref(),
        since_s: finding.since_s,
        evidence: &finding.evidence,
        advice: finding.advice.as_deref(),
    };
    let said = if json {
        serde_json::to_string(&line).unwrap_or_default()
    } else {
        clean(&sentence(&line))
    };
    text.push_str(&said);
    text.push('\n');
}

/// `train-7f3a  12m 05s  raised  stalled (spin), critical, since 11m 00s: step 50 ...`
fn sentence(line: &Line<'_>) -> String {
    let word = |value: Value| value.as_str().map(str::to_owned).unwrap_or_default();
    let state = serde_json::to_value(line.state).map(word);
    let severity = serde_json::to_value(line.severity).map(word);
    let cause = line.cause.map_or_else(String::new, |c| format!(" ({c})"));
    let because = line
        .because
        .map_or_else(String::new, |b| format!(", because {b}"));
    let mut said = format!(
        "{}  {}  {}  {}{cause}, {}{because}, since {}",
        line.run,
        seconds_text(line.elapsed_s),
        state.unwrap_or_default(),
        line.name,
        severity.unwrap_or_default(),
        seconds_text(line.since_s),
    );
    for (i, (name, value)) in line.evidence.iter().enumerate() {
        // Writing into memory can't fail.
        let _ = write!(said, "{}{name} {value}", if i == 0 { ": " } else { ", " });
    }
    said
}
