//! `gpuwatch compare`: two runs side by side.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::output::{complain, note, print, print_json};
use super::show;
use crate::record::{RecordError, Recorded, Replay, Run};
use crate::report::compare::{Comparison, Pace, Side, compare};

/// Compare two runs: how long, how much of the GPUs, what was found, what was started differently
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// The first: an id or the beginning of one, a name, `last`, `@-2`, or a directory
    #[arg(value_name = "A")]
    pub a: String,
    /// The second
    #[arg(value_name = "B")]
    pub b: String,
    /// Where runs are recorded [default: gpuwatch/runs in the user's state directory]
    #[arg(long, value_name = "DIR", env = "GPUWATCH_DIR")]
    pub dir: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Runs the command: 0, or 1 where one of them isn't there or can't be read.
pub fn run(args: &CompareArgs) -> ExitCode {
    let side = |what: &str| show::lookup(what, args.dir.as_deref()).map(side);
    let (a, b) = match (side(&args.a), side(&args.b)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(e), _) | (_, Err(e)) => return complain(&e),
    };
    let comparison = compare(&a, &b);
    if args.json {
        print_json(&Document {
            schema: 1,
            comparison: &comparison,
        })
    } else {
        print(&comparison.text())
    }
}

fn side(run: Run) -> Side {
    run.problems.iter().for_each(note);
    let mut pace = Pace::default();
    if let Err(e) = measure(&run, &mut pace) {
        note(&e);
    }
    Side {
        record: run.record,
        findings: run.findings,
        pace,
    }
}

fn measure(run: &Run, pace: &mut Pace) -> Result<(), RecordError> {
    for entry in Replay::open(&run.dir)? {
        match entry? {
            Recorded::Sample(sample) => pace.sample(&sample),
            Recorded::Event(logged) => pace.event(&logged),
        }
    }
    Ok(())
}
