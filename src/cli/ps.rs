//! `gpuwatch ps`: runs in progress on this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use serde::Serialize;

use super::output::{complain, note, print, print_json};
use crate::observe::identity;
use crate::record::now::{RunNow, Running, running};
use crate::record::{RecordError, root_for_reading};
use crate::report::ps::table;

/// List your runs in progress on this machine, newest first
#[derive(Args, Debug)]
pub struct PsArgs {
    /// Where runs are recorded [default: gpuwatch/runs in the user's state directory]
    #[arg(long, value_name = "DIR", env = "GPUWATCH_DIR")]
    dir: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    runs: &'a [RunNow],
}

/// Runs the command: 0 (also where nothing runs), or 1 where the records can't be read.
pub fn run(args: &PsArgs) -> ExitCode {
    let found = match in_progress(args.dir.as_deref()) {
        Ok(found) => found,
        Err(error) => return complain(&error),
    };
    found.problems.iter().for_each(note);
    if args.json {
        return print_json(&Document {
            schema: 1,
            runs: &found.runs,
        });
    }
    if found.runs.is_empty() {
        note(&"no run is in progress here");
        return ExitCode::SUCCESS;
    }
    print(&table(&found.runs))
}

/// The runs in progress on this machine that are recorded in `dir`, or where they are by default.
///
/// # Errors
/// The records can't be read.
pub fn in_progress(dir: Option<&Path>) -> Result<Running, RecordError> {
    let host = identity::host();
    match root_for_reading(dir)? {
        Some(root) => running(&root, host.as_deref(), SystemTime::now()),
        None => Ok(Running::default()),
    }
}
