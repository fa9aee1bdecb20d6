//! `gpuwatch export RUN`: a record for other programs.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::output::{complain, note, unwritten};
use super::show::lookup;
use crate::export::{Board, Format, Raised, Scrape, merged, render, row};
use crate::model::FindingState;
use crate::record::samples::{Rows, open_rows};
use crate::record::{EventReader, RecordError, Recorded, Replay, Run};

/// Write a record for other programs: as it was sampled, as lines of JSON, or as metrics
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// An id or the beginning of one, a name, `last`, `@-2` (the last but one), or a directory
    #[arg(default_value = "last", value_name = "RUN")]
    run: String,
    /// What to write
    #[arg(long, value_enum, default_value_t)]
    format: As,
    /// Where runs are recorded [default: gpuwatch/runs in the user's state directory]
    #[arg(long, value_name = "DIR", env = "GPUWATCH_DIR")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum As {
    /// The samples: a row for each GPU and sample
    #[default]
    Csv,
    /// Samples and events, a line each, in the order in which they happened
    Jsonl,
    /// What Prometheus would have scraped last
    Prometheus,
}

/// Why there is no answer, or not all of it.
enum Failed {
    Record(RecordError),
    /// What can't be read, and why.
    Samples(PathBuf, String),
    Written(io::Error),
}

impl From<RecordError> for Failed {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Written(error)
    }
}

/// Runs the command: 0, or 1 where there is no such run or it can't be read.
pub fn run(args: &ExportArgs) -> ExitCode {
    let run = match lookup(&args.run, args.dir.as_deref()) {
        Ok(run) => run,
        Err(error) => return complain(&error),
    };
    run.problems.iter().for_each(note);
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match args.format {
        As::Csv => csv(&run.dir, &mut out),
        As::Jsonl => jsonl(&run.dir, &mut out),
        As::Prometheus => prometheus(&run, &mut out),
    };
    match written.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever closed the pipe has seen enough.
        Err(Failed::Written(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failed::Written(error)) => complain(&unwritten(&error)),
        Err(Failed::Record(error)) => complain(&error),
        Err(Failed::Samples(path, why)) => {
            complain(&format!("cannot read {}: {why}", path.display()))
        }
    }
}

fn samples(dir: &Path) -> Result<(PathBuf, Rows), Failed> {
    match open_rows(dir) {
        Ok((rows, path)) => Ok((path, rows)),
        Err((error, path)) => Err(Failed::Samples(path, error.to_string())),
    }
}

fn csv(dir: &Path, out: &mut impl Write) -> Result<(), Failed> {
    let (path, rows) = samples(dir)?;
    let mut rows = BufReader::with_capacity(64 * 1024, rows);
    loop {
        let some = rows.fill_buf();
        let some = some.map_err(|e| Failed::Samples(path.clone(), e.to_string()))?;
        if some.is_empty() {
            return Ok(());
        }
        out.write_all(some)?;
        let n = some.len();
        rows.consume(n);
    }
}

fn jsonl(dir: &Path, out: &mut impl Write) -> Result<(), Failed> {
    let (path, file) = samples(dir)?;
    let unreadable = |error: ::csv::Error| Failed::Samples(path.clone(), error.to_string());
    // The last row of a run that goes on may be half there.
    let mut reader = ::csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(BufReader::new(file));
    let columns = reader.headers().map_err(&unreadable)?.clone();
    let mut problem = None;
    let whole = |row: &::csv::StringRecord| row.len() == columns.len();
    let rows = reader.into_records().map_while(|row| match row {
        Ok(row) => Some(row),
        Err(error) => {
            problem = Some(unreadable(error));
            None
        }
    });
    let rows = rows
        .filter(whole)
        .map(|fields| row(columns.iter(), fields.iter()));
    // A record without events has none to show; what is wrong with some was noted.
    let events = EventReader::open(dir).ok().into_iter().flatten();
    let events = events.filter_map(|read| serde_json::to_value(read.ok()?).ok());
    for entry in merged(events, rows) {
        writeln!(out, "{entry}")?;
    }
    problem.map_or(Ok(()), Err)
}

fn prometheus(run: &Run, out: &mut impl Write) -> Result<(), Failed> {
    let mut board = Board::default();
    board.know(&run.record);
    for entry in Replay::open(&run.dir)? {
        if let Recorded::Sample(sample) = entry? {
            board.sample(&sample);
        }
    }
    let mut scrape: Scrape = board.scrape();
    let findings = run.findings.iter();
    let holds = findings.filter(|finding| finding.state != FindingState::Cleared);
    let raised = holds.map(|finding| Raised {
        name: finding.name.clone(),
        severity: finding.severity,
        cause: finding.cause.clone(),
    });
    if let Some(job) = scrape.jobs.first_mut() {
        job.findings = raised.collect();
    }
    out.write_all(render(&scrape, Format::Text).as_bytes())?;
    Ok(())
}
