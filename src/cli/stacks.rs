//! `gpuwatch stacks`: where a run in progress stands.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::output::{complain, note, print, print_json};
use super::show::lookup;
use crate::supervise;

/// Where a run in progress stands: the function of each Python process, the rank that differs
///
/// Stacks (by py-spy, if it is installed), wait channels, open connections, pipes and files, GPUs,
/// the last lines and what NCCL left are written to the run's evidence folder, as they are when a
/// run is found to be stalled. The run doesn't notice.
#[derive(Args, Debug)]
pub struct StacksArgs {
    /// An id or the beginning of one, a name, `last`, `@-2` (the last but one), or a directory
    #[arg(default_value = "last", value_name = "RUN")]
    run: String,
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
    id: &'a str,
    stacks: &'a [String],
    file: String,
}

/// Runs the command: 0, or 1 where there is no such run, or it isn't in progress here.
pub fn run(args: &StacksArgs) -> ExitCode {
    let run = match lookup(&args.run, args.dir.as_deref()) {
        Ok(run) => run,
        Err(error) => return complain(&error),
    };
    run.problems.iter().for_each(note);
    let (answer, path) = match supervise::evidence::of_run(&run.dir, &run.record) {
        Ok(found) => found,
        Err(why) => return complain(&format!("{}: {why}", run.record.id)),
    };
    let file = run.dir.join(path).to_string_lossy().into_owned();
    if args.json {
        return print_json(&Document {
            schema: 1,
            id: &run.record.id,
            stacks: &answer.digest,
            file,
        });
    }
    let mut text = String::new();
    for line in answer.digest.iter().chain([&format!("all of it: {file}")]) {
        text.push_str(line);
        text.push('\n');
    }
    print(&text)
}
