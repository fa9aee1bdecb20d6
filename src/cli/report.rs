//! `gpuwatch report`: one run as an HTML page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::output::{complain, note, print};
use super::show;
use crate::record::run_dir::write_report;
use crate::record::{RecordError, Run, SampleReader, output_log};
use crate::report::html::{Curves, Page, page};
use crate::report::text::clean;

/// How much of the output's end is looked at.
const TAIL: u64 = 256 * 1024;

/// Write one run as an HTML page with plots, which needs nothing besides itself
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// An id or the beginning of one, a name, `last`, `@-2` (the last but one), or a directory
    #[arg(default_value = "last", value_name = "RUN")]
    pub run: String,
    /// Where to write it; `-` is stdout [default: report.html in the run's directory]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where runs are recorded [default: gpuwatch/runs in the user's state directory]
    #[arg(long, value_name = "DIR", env = "GPUWATCH_DIR")]
    pub dir: Option<PathBuf>,
}

/// Runs the command: 0, or 1 where there is no such run, it can't be read, or the page can't be
/// written.
pub fn run(args: &ReportArgs) -> ExitCode {
    let run = match show::lookup(&args.run, args.dir.as_deref()) {
        Ok(run) => run,
        Err(e) => return complain(&e),
    };
    let html = made(&run);
    if args.output.as_deref() == Some(Path::new("-")) {
        return print(&html);
    }
    let written = match &args.output {
        None => write_report(&run.dir, html.as_bytes()).map_err(|e| e.to_string()),
        Some(path) => std::fs::write(path, &html)
            .map(|()| path.clone())
            .map_err(|e| {
                format!(
                    "cannot write {}: {e}; give another place with -o",
                    path.display()
                )
            }),
    };
    match written {
        Ok(path) => print(&format!("{}\n", clean(&path.to_string_lossy()))),
        Err(e) => complain(&e),
    }
}

fn made(run: &Run) -> String {
    let mut problems: Vec<String> = run.problems.iter().map(ToString::to_string).collect();
    let mut say = |error: &RecordError| {
        note(error);
        problems.push(error.to_string());
    };
    run.problems.iter().for_each(note);
    let record = &run.record;
    let mut curves = Curves::new(&record.gpus, record.summary.duration_s);
    if let Err(e) = samples(run, &mut curves) {
        say(&e);
    }
    let output = output_log::last_bytes(&run.dir, TAIL).unwrap_or_else(|e| {
        say(&e);
        Vec::new()
    });
    page(&Page {
        record,
        findings: &run.findings,
        curves: &curves,
        output: &output,
        problems: &problems,
    })
}

fn samples(run: &Run, curves: &mut Curves) -> Result<(), RecordError> {
    for sample in SampleReader::open(&run.dir, &run.record.gpus)? {
        curves.absorb(&sample?);
    }
    Ok(())
}
