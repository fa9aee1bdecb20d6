//! `gpuwatch runs`: the history.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::output::{complain, note, print, print_json};
use super::span::{Since, since};
use crate::model::RunState;
use crate::record::{IndexEntry, Listing, RecordError, list, root_for_reading};
use crate::report;
use crate::report::count::{Count, CountBy, count, counts_table};

/// How many runs a table shows where nobody says.
const SHOWN: usize = 20;

/// List recorded runs, newest first
#[derive(Args, Debug)]
pub struct RunsArgs {
    /// Where runs are recorded [default: gpuwatch/runs in the user's state directory]
    #[arg(long, value_name = "DIR", env = "GPUWATCH_DIR")]
    pub dir: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// At most so many [default: 20; all of them with --json]
    #[arg(short = 'n', long = "limit", value_name = "N", value_parser = how_many)]
    pub limit: Option<usize>,
    /// Only runs of this name
    #[arg(long)]
    pub name: Option<String>,
    /// Only runs with this tag; repeated: with all of them
    #[arg(long)]
    pub tag: Vec<String>,
    /// Only runs in this state; repeated: in one of them
    #[arg(long, value_enum)]
    pub state: Vec<StateArg>,
    /// Only runs with this finding, like oom; repeated: with all of them
    #[arg(long, value_name = "NAME")]
    pub finding: Vec<String>,
    /// Only runs that ended in this time, or still run, like 7d or 12h
    #[arg(long, value_name = "DURATION", value_parser = since)]
    pub since: Option<Since>,
    /// Count them by what they have in common instead of listing them
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "limit")]
    pub count_by: Option<CountArg>,
}

/// What runs are counted by, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CountArg {
    /// The command with its arguments
    Command,
    /// Whose they were
    User,
    /// The git work tree, else the working directory
    Project,
    /// How they ended
    Outcome,
    /// The verdict's cause
    Cause,
    /// Each finding
    Finding,
}

impl CountArg {
    fn what(self) -> CountBy {
        match self {
            Self::Command => CountBy::Command,
            Self::User => CountBy::User,
            Self::Project => CountBy::Project,
            Self::Outcome => CountBy::Outcome,
            Self::Cause => CountBy::Cause,
            Self::Finding => CountBy::Finding,
        }
    }
}

/// A run's state as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StateArg {
    /// Its supervisor lives
    Running,
    /// It ended
    Finished,
    /// Somebody ended it by a signal
    Cancelled,
    /// Its supervisor was killed
    Lost,
}

impl StateArg {
    fn state(self) -> RunState {
        match self {
            Self::Running => RunState::Running,
            Self::Finished => RunState::Finished,
            Self::Cancelled => RunState::Cancelled,
            Self::Lost => RunState::Lost,
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    runs: &'a [IndexEntry],
}

#[derive(Serialize)]
struct Tally<'a> {
    schema: u32,
    count_by: CountBy,
    counts: &'a [Count],
}

fn count_runs(args: &RunsArgs, by: CountBy) -> ExitCode {
    let listing = match lookup(args, None) {
        Ok(listing) => listing,
        Err(e) => return complain(&e),
    };
    listing.unreadable.iter().for_each(note);
    let counts = count(&listing.runs, by);
    if args.json {
        return print_json(&Tally {
            schema: 1,
            count_by: by,
            counts: &counts,
        });
    }
    if counts.is_empty() {
        note(&"no such run is recorded");
        return ExitCode::SUCCESS;
    }
    print(&counts_table(&counts, by))
}

/// Runs the command: 0 (also where no run fits), or 1 where the records can't be read.
pub fn run(args: &RunsArgs) -> ExitCode {
    if let Some(by) = args.count_by {
        return count_runs(args, by.what());
    }
    let limit = args.limit.or((!args.json).then_some(SHOWN));
    // One more than is shown tells whether there are more.
    let mut listing = match lookup(args, limit.map(|n| n.saturating_add(1))) {
        Ok(listing) => listing,
        Err(e) => return complain(&e),
    };
    listing.unreadable.iter().for_each(note);
    // What only the index has is shown by `waste`: here a run is the same without an index.
    listing.runs.iter_mut().for_each(|run| run.usage = None);
    let shown = listing.runs.len().min(limit.unwrap_or(usize::MAX));
    let runs = &listing.runs[..shown];
    if args.json {
        return print_json(&Document { schema: 1, runs });
    }
    if listing.runs.is_empty() {
        note(&"no such run is recorded");
        return ExitCode::SUCCESS;
    }
    let code = print(&report::table(runs));
    if listing.runs.len() > shown {
        note(&format!(
            "there are older ones: -n {} shows more",
            shown.saturating_mul(5)
        ));
    }
    code
}

fn how_many(text: &str) -> Result<usize, String> {
    match text.trim().parse() {
        Ok(0) => Err("'0' shows no run: write 1 or more".to_owned()),
        Ok(n) => Ok(n),
        Err(_) => Err(format!(
            "'{text}' is no number of runs: write one like {SHOWN}"
        )),
    }
}

/// Whether a run has this finding, whose name may be written with underscores as in a profile.
fn has(entry: &IndexEntry, name: &str) -> bool {
    let name = name.replace('_', "-");
    entry.findings.iter().any(|f| f.replace('_', "-") == name)
}

fn lookup(args: &RunsArgs, limit: Option<usize>) -> Result<Listing, RecordError> {
    let keep = |entry: &IndexEntry| {
        args.name.as_ref().is_none_or(|name| *name == entry.name)
            && args.tag.iter().all(|tag| entry.tags.contains(tag))
            && args.finding.iter().all(|name| has(entry, name))
            && args.since.is_none_or(|since| since.keeps(entry))
            && (args.state.is_empty() || args.state.iter().any(|s| s.state() == entry.state))
    };
    match root_for_reading(args.dir.as_deref())? {
        Some(root) => list(&root, limit, keep),
        None => Ok(Listing::default()),
    }
}
