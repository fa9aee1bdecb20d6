//! `gpuwatch replay`: records judged again.
//!
//! Owns how findings, and differences between two judgements, are printed. Must not know how they
//! are found.

mod judged;
mod lookup;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};

use super::output::{EXIT_NO, complain, note, unwritten};
use super::profile::lines;
use super::span::{Since, since};
use crate::judge::Finding;
use crate::model::{FindingState, Severity};
use crate::record::FindingRecord;
use crate::report::replay::{Changes, Difference, Tally, difference, differences, moment};
use crate::report::text::clean;
use judged::{By, Judged, Judgement, judge};
use lookup::Found;

/// Judge records again: which findings they give
///
/// Each finding stands on a line of its own, where it was raised, updated or cleared; of several
/// runs a table follows. With --diff, a finding that only the first settings give is marked -, one
/// that only PROFILE gives +, and one that both give, but at another time or otherwise, ~.
#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// Runs by id, name, `last` or directory; a directory of runs stands for all of them
    #[arg(required_unless_present = "since", value_name = "RUN|DIR")]
    pub runs: Vec<String>,
    /// All recorded runs that ended in this time, or still run, like 7d or 12h
    #[arg(long, value_name = "DURATION", value_parser = since, conflicts_with = "runs")]
    pub since: Option<Since>,
    /// Where runs are recorded [default: gpuwatch/runs in the user's state directory]
    #[arg(long, value_name = "DIR", env = "GPUWATCH_DIR")]
    pub dir: Option<PathBuf>,
    /// Judge by this profile instead of the recorded settings: a name, or a file. No other
    /// file of this machine is read
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// Judge by this profile as well, and print what differs
    #[arg(long, value_name = "NAME|FILE")]
    pub diff: Option<String>,
    /// Print one JSON object a line for every finding, or every difference
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
    profile: &'a str,
}

/// One line of `--diff --json`.
#[derive(Serialize)]
struct DiffLine<'a> {
    run: &'a str,
    #[serde(flatten)]
    difference: &'a Difference<'a>,
    before_profile: &'a str,
    after_profile: &'a str,
}

/// Runs the command: 0 whatever is found, 1 where a run can't be read.
pub fn run(args: &ReplayArgs) -> ExitCode {
    let by = match settings(args) {
        Ok(by) => by,
        Err(error) => {
            super::errors::complain(&lines(&error));
            return ExitCode::from(EXIT_NO);
        }
    };
    let mut found = match args.since {
        None => Found::named(&args.runs, args.dir.as_deref()),
        Some(since) => match Found::recent(since, args.dir.as_deref()) {
            Ok(found) if found.dirs.is_empty() && !found.unread => {
                note(&"no such run is recorded");
                return ExitCode::SUCCESS;
            }
            Ok(found) => found,
            Err(error) => return complain(&error),
        },
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = if let [before, after] = &by[..] {
        Diff::new(args.json, before, after).print(&mut found, &by, &mut out)
    } else {
        print(&mut found, &by, args.json, &mut out)
    };
    match written.and_then(|()| out.flush()) {
        // Whoever closed the pipe has seen enough.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(e) => complain(&unwritten(&e)),
        Ok(()) if found.unread => ExitCode::from(EXIT_NO),
        Ok(()) => ExitCode::SUCCESS,
    }
}

fn settings(args: &ReplayArgs) -> Result<Vec<By>, crate::plan::profile::ProfileError> {
    let mut by = vec![By::profile(args.profile.as_deref())?];
    if let Some(profile) = &args.diff {
        by.push(By::profile(Some(profile))?);
    }
    Ok(by)
}

/// Judges each run; what can't be read is said, and the others go on.
fn each(
    found: &mut Found,
    by: &[By],
    mut tell: impl FnMut(&Judged) -> io::Result<()>,
) -> io::Result<()> {
    for dir in &found.dirs {
        let broken = match judge(dir, by) {
            Ok(judged) => {
                tell(&judged)?;
                judged.broken
            }
            Err(error) => Some(error),
        };
        if let Some(why) = broken {
            note(&why);
            found.unread = true;
        }
    }
    Ok(())
}

fn print(found: &mut Found, by: &[By], json: bool, out: &mut impl Write) -> io::Result<()> {
    let mut tally = Tally::default();
    each(found, by, |judged| {
        let [one] = &judged.by[..] else { return Ok(()) };
        for (elapsed_s, finding) in &one.said {
            let said = if json {
                json_line(&judged.run, *elapsed_s, finding, one)
            } else {
                moment(&judged.run, *elapsed_s, &as_record(*elapsed_s, finding))
            };
            writeln!(out, "{said}")?;
        }
        if judged.broken.is_none() {
            tally.add(&one.profile, &one.findings());
        }
        Ok(())
    })?;
    if !json && tally.runs() > 1 {
        write!(out, "\n{}", tally.text())?;
    }
    Ok(())
}

fn json_line(run: &str, elapsed_s: f64, finding: &Finding, by: &Judgement) -> String {
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
        profile: &by.profile,
    };
    serde_json::to_string(&line).unwrap_or_default()
}

fn as_record(elapsed_s: f64, finding: &Finding) -> FindingRecord {
    FindingRecord {
        name: finding.name.clone(),
        cause: finding.cause.clone(),
        severity: finding.severity,
        state: finding.state,
        because: finding.because.clone(),
        since_s: finding.since_s,
        evidence: finding.evidence.clone(),
        advice: finding.advice.clone(),
        raised_s: elapsed_s,
        cleared_s: None,
    }
}

/// What two settings make of the same runs.
struct Diff {
    json: bool,
    /// Which settings the signs stand for.
    heads: String,
    changes: Changes,
}

impl Diff {
    fn new(json: bool, before: &By, after: &By) -> Self {
        Self {
            json,
            heads: clean(&format!("- {}", before.about()))
                + "\n"
                + &clean(&format!("+ {}", after.about()))
                + "\n",
            changes: Changes::default(),
        }
    }

    fn print(mut self, found: &mut Found, by: &[By], out: &mut impl Write) -> io::Result<()> {
        if !self.json {
            out.write_all(self.heads.as_bytes())?;
        }
        each(found, by, |judged| self.one(judged, out))?;
        if !self.json {
            write!(out, "\n{}", self.changes.text())?;
        }
        Ok(())
    }

    fn one(&mut self, judged: &Judged, out: &mut impl Write) -> io::Result<()> {
        let ([before, after], None) = (&judged.by[..], &judged.broken) else {
            return Ok(());
        };
        let (left, right) = (before.findings(), after.findings());
        for found in differences(&left, &right) {
            let said = if self.json {
                let line = DiffLine {
                    run: &judged.run,
                    difference: &found,
                    before_profile: &before.profile,
                    after_profile: &after.profile,
                };
                serde_json::to_string(&line).unwrap_or_default()
            } else {
                difference(&judged.run, &found)
            };
            writeln!(out, "{said}")?;
        }
        self.changes.add(&left, &right);
        Ok(())
    }
}
