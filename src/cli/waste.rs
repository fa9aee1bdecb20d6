//! `gpuwatch waste`: what GPUs were used for.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::output::{complain, note, print, print_json};
use super::span::{Since, since};
use crate::record::{IndexEntry, Listing, RecordError, history, root_for_reading};
use crate::report::waste::{By, Waste, waste};

/// Add up GPU hours: reserved, active, held idle, stalled, lost in failed runs
///
/// Of every second that a run had a GPU: STALLED is within a stalled finding, else ACTIVE is with
/// at least 5 % use by the job (the device's where the job's isn't known), HELD IDLE with memory
/// held by the job but no such use, UNUSED with neither, UNKNOWN without readings. RESERVED is
/// their sum. LOST is what failed, killed and lost runs reserved. WASTED is LOST and of the other
/// runs what was STALLED or HELD IDLE.
#[derive(Args, Debug)]
pub struct WasteArgs {
    /// Only runs that ended in this time, or still run, like 7d or 12h [default: all]
    #[arg(long, value_name = "DURATION", value_parser = since)]
    pub since: Option<Since>,
    /// What to group by
    #[arg(long, value_enum, default_value = "user")]
    pub by: ByArg,
    /// Where runs are recorded [default: gpuwatch/runs in the user's state directory]
    #[arg(long, value_name = "DIR", env = "GPUWATCH_DIR")]
    pub dir: Option<PathBuf>,
    /// Print one JSON document, in GPU seconds
    #[arg(long)]
    pub json: bool,
}

/// What to group by, as it is typed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ByArg {
    /// Whose the runs were
    User,
    /// The command with its arguments
    Command,
    /// The git work tree, else the working directory
    Project,
    /// Host and GPU
    Gpu,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    since: Option<String>,
    #[serde(flatten)]
    waste: &'a Waste,
}

/// Runs the command: 0, or 1 where the records can't be read.
pub fn run(args: &WasteArgs) -> ExitCode {
    let by = match args.by {
        ByArg::User => By::User,
        ByArg::Command => By::Command,
        ByArg::Project => By::Project,
        ByArg::Gpu => By::Gpu,
    };
    let listing = match lookup(args) {
        Ok(listing) => listing,
        Err(e) => return complain(&e),
    };
    listing.unreadable.iter().for_each(note);
    let waste = waste(&listing.runs, by);
    if args.json {
        let since = args.since.and_then(Since::text);
        return print_json(&Document {
            schema: 1,
            since,
            waste: &waste,
        });
    }
    if waste.groups.is_empty() {
        note(&"no such run had a GPU");
        return ExitCode::SUCCESS;
    }
    print(&waste.table())
}

fn lookup(args: &WasteArgs) -> Result<Listing, RecordError> {
    let keep = |run: &IndexEntry| args.since.is_none_or(|since| since.keeps(run));
    match root_for_reading(args.dir.as_deref())? {
        Some(root) => history(&root, keep),
        None => Ok(Listing::default()),
    }
}
