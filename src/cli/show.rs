//! `gpuwatch show`: one run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::output::{complain, note, print, print_json};
use crate::model::RunRecord;
use crate::record::{FindingRecord, RecordError, Run, find, load, root_for_reading};
use crate::report;

/// Show one run: what happened, verdict, findings
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// An id or the beginning of one, a name, `last`, `@-2` (the last but one), or a directory
    #[arg(default_value = "last", value_name = "RUN")]
    pub run: String,
    /// Where runs are recorded [default: gpuwatch/runs in the user's state directory]
    #[arg(long, value_name = "DIR", env = "GPUWATCH_DIR")]
    pub dir: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `run.json`'s object and the findings.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    record: &'a RunRecord,
    findings: &'a [FindingRecord],
}

/// Runs the command: 0, or 1 where there is no such run or it can't be read.
pub fn run(args: &ShowArgs) -> ExitCode {
    let run = match lookup(&args.run, args.dir.as_deref()) {
        Ok(run) => run,
        Err(e) => return complain(&e),
    };
    run.problems.iter().for_each(note);
    if args.json {
        print_json(&Document {
            record: &run.record,
            findings: &run.findings,
        })
    } else {
        let dir = run.dir.to_string_lossy();
        print(&report::show(&run.record, &run.findings, &dir))
    }
}

/// The run of this name in this directory of records.
pub fn lookup(run: &str, dir: Option<&Path>) -> Result<Run, RecordError> {
    // A directory is found whatever becomes of the place for records.
    let root = match root_for_reading(dir) {
        Err(_) if run.contains('/') => None,
        other => other?,
    };
    load(&find(root.as_deref(), run)?)
}
