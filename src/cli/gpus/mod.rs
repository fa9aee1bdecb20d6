//! `gpuwatch gpus`: the GPUs, who holds them, which are free.

pub(super) mod ask;
mod document;
mod log;
mod table;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use self::ask::{Heard, Session};
use self::document::{Document, document};
use self::log::Log;
use super::output::{complain, note, unwritten};
use crate::model::units;
use crate::model::{GpuSample, Inventory};

/// What was typed.
#[derive(Debug, clap::Args)]
pub struct GpusArgs {
    /// Print JSON: one document, or with --watch one a line
    #[arg(long)]
    json: bool,
    /// Look again and again until interrupted
    #[arg(long)]
    watch: bool,
    /// Append the readings to this file, a row a GPU, instead of printing them
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// How often --watch looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    interval: Duration,
}

/// Clears a terminal and starts at its top.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Prints the GPUs. Exit code 1 and one line on standard error where there is no driver
/// or it doesn't answer in time.
pub fn run(args: &GpusArgs) -> ExitCode {
    match show(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => complain(&why),
    }
}

fn show(args: &GpusArgs) -> Result<(), String> {
    let mut log = match &args.csv {
        Some(path) => Some(Log::open(path)?),
        None => None,
    };
    let interval = args.interval.max(Duration::from_millis(100));
    let (mut session, inventory) = Session::start(interval)?;
    let mut silent = false;
    loop {
        match session.tick()? {
            Heard::Tick(samples) => {
                silent = false;
                if !put(args, log.as_mut(), &inventory, &samples)? {
                    return Ok(());
                }
            }
            Heard::Nothing(why) if args.watch => {
                // Said once; the driver may yet answer.
                if !silent {
                    note(&why);
                }
                silent = true;
            }
            Heard::Nothing(why) => {
                put(args, log.as_mut(), &inventory, &[])?;
                return Err(why);
            }
        }
        if !args.watch {
            return Ok(());
        }
    }
}

/// Shows one look; false if nobody reads any more.
fn put(
    args: &GpusArgs,
    log: Option<&mut Log>,
    inventory: &Inventory,
    samples: &[GpuSample],
) -> Result<bool, String> {
    if let Some(log) = log {
        return log.append(inventory, samples);
    }
    let text = text(args, &document(inventory, samples)).map_err(|error| unwritten(&error))?;
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        // A reader that closed the pipe has what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(unwritten(&error)),
    }
}

fn text(args: &GpusArgs, document: &Document) -> io::Result<String> {
    Ok(if args.json && args.watch {
        serde_json::to_string(document)? + "\n"
    } else if args.json {
        serde_json::to_string_pretty(document)? + "\n"
    } else if args.watch && io::stdout().is_terminal() {
        CLEAR.to_owned() + &table::table(document)
    } else {
        table::table(document)
    })
}
