//! `gpuwatch runs`: the history.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::output::{complain, note, print, print_json};
use crate::model::RunState;
use crate::record::{IndexEntry, Listing, RecordError, list, root_for_reading};
use crate::report;

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

/// Runs the command: 0 (also where no run fits), or 1 where the records can't be read.
pub fn run(args: &RunsArgs) -> ExitCode {
    let limit = args.limit.or((!args.json).then_some(SHOWN));
    // One more than is shown tells whether there are more.
    let listing = match lookup(args, limit.map(|n| n.saturating_add(1))) {
        Ok(listing) => listing,
        Err(e) => return complain(&e),
    };
    listing.unreadable.iter().for_each(note);
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

fn lookup(args: &RunsArgs, limit: Option<usize>) -> Result<Listing, RecordError> {
    let keep = |entry: &IndexEntry| {
        args.name.as_ref().is_none_or(|name| *name == entry.name)
            && args.tag.iter().all(|tag| entry.tags.contains(tag))
            && (args.state.is_empty() || args.state.iter().any(|s| s.state() == entry.state))
    };
    match root_for_reading(args.dir.as_deref())? {
        Some(root) => list(&root, limit, keep),
        None => Ok(Listing::default()),
    }
}
