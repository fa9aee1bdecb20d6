//! `gpuwatch parse [FILE|-]`: what progress is read off this output.
//!
//! Owns the input formats, raw bytes, asciicast v2 and TensorBoard's event files, and how changes
//! are printed. Must not know how progress is read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Deserialize;

use super::layers;
use super::output::{EXIT_NO, complain};
use super::profile::lines;
use crate::model::{Mark, Metric, Phase, Stream, units};
use crate::plan::resolve::{self, Flags};
use crate::read::{EventFile, Layout, Patterns, ProgressReader};

#[path = "parse_events.rs"]
mod events;

/// What progress is read off this output
#[derive(Debug, clap::Args)]
pub struct ParseArgs {
    /// Recorded output: raw bytes, or an asciicast v2; `-` is standard input. Or TensorBoard's
    /// event file, or a directory with such files
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Try the `progress.patterns` of this profile: a built-in one or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// One JSON object a line for every change
    #[arg(long)]
    pub json: bool,
}

/// The longest line of a recording that is taken in; a longer one is no recording of ours.
const LONGEST_EVENT: u64 = 64 * 1024 * 1024;
/// How much of raw output is read at once.
const PIECE: usize = 64 * 1024;

/// Prints every change of progress that the file shows. Exit code 0 whatever it finds, 1 where
/// the file can't be read.
pub fn run(args: &ParseArgs) -> ExitCode {
    let stdout = io::stdout().lock();
    let mut printer = Printer {
        out: io::BufWriter::new(stdout),
        json: args.json,
    };
    let patterns = match patterns(args.profile.as_deref()) {
        Ok(patterns) => patterns,
        Err(why) => {
            super::errors::complain(&why);
            return ExitCode::from(EXIT_NO);
        }
    };
    match parse(&args.file, &patterns, &mut printer) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody listens any more: the reader of a pipe has seen enough.
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Write(error)) => complain(&format!(
            "cannot write to standard output: {error}; free some space or write elsewhere"
        )),
        Err(Failure::Read(error)) => {
            let advice = match error.kind() {
                io::ErrorKind::NotFound => "check the path",
                io::ErrorKind::PermissionDenied => "ask its owner for read permission",
                io::ErrorKind::IsADirectory => "name a file in it",
                _ => "give a file that can be read, or '-' for standard input",
            };
            complain(&format!(
                "cannot read '{}': {}; {advice}",
                args.file.display(),
                reason(&error)
            ))
        }
    }
}

/// The system's words, without the number behind them.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

enum Failure {
    Read(io::Error),
    Write(io::Error),
}

struct Printer<W: Write> {
    out: W,
    json: bool,
}

/// Of this profile alone: what is tried must not depend on where one stands.
fn patterns(profile: Option<&str>) -> Result<Patterns, String> {
    let Some(name) = profile else {
        return Ok(Patterns::default());
    };
    let layers = layers::alone(name).map_err(|error| lines(&error))?;
    let settings = resolve::settings(layers.trees, &layers.name, &Flags::default());
    let settings = settings.map_err(|error| lines(&error))?;
    Patterns::new(&settings.patterns).map_err(|error| error.to_string())
}

fn parse<W: Write>(
    file: &Path,
    patterns: &Patterns,
    printer: &mut Printer<W>,
) -> Result<(), Failure> {
    if file.is_dir() {
        return events::below(file, printer);
    }
    let input: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(file).map_err(Failure::Read)?)
    };
    let mut input = BufReader::with_capacity(PIECE, input);
    let mut first = Vec::new();
    if EventFile::begins(input.fill_buf().map_err(Failure::Read)?) {
        return events::file(&mut input, printer);
    }
    if input.fill_buf().map_err(Failure::Read)?.first() == Some(&b'{') {
        (&mut input)
            .take(LONGEST_EVENT)
            .read_until(b'\n', &mut first)
            .map_err(Failure::Read)?;
    }
    let result = match serde_json::from_slice::<Header>(&first) {
        Ok(header) if header.version == 2 => recording(&header, &mut input, patterns, printer),
        _ => raw(&first, &mut input, patterns, printer),
    };
    result.and_then(|()| printer.out.flush().map_err(Failure::Write))
}

/// Raw bytes: one stream, no clock, no terminal.
fn raw<W: Write>(
    first: &[u8],
    input: &mut impl BufRead,
    patterns: &Patterns,
    printer: &mut Printer<W>,
) -> Result<(), Failure> {
    let plain = Layout::Plain;
    let mut reader = ProgressReader::with_patterns(plain, plain, patterns.clone());
    printer.print(&reader.feed(Stream::Out, None, first))?;
    loop {
        let bytes = input.fill_buf().map_err(Failure::Read)?;
        if bytes.is_empty() {
            break;
        }
        let used = bytes.len();
        printer.print(&reader.feed(Stream::Out, None, bytes))?;
        input.consume(used);
    }
    printer.print(&reader.finish(None))
}

/// The first line of an asciicast v2.
#[derive(Deserialize)]
struct Header {
    version: u32,
    #[serde(default = "default_cols")]
    width: u16,
    #[serde(default = "default_rows")]
    height: u16,
    /// asciinema itself knows UTF-8 only; `latin-1` stands for one byte a character.
    #[serde(default)]
    x_encoding: Option<String>,
    #[serde(default)]
    env: std::collections::HashMap<String, Option<String>>,
}

const fn default_cols() -> u16 {
    80
}

const fn default_rows() -> u16 {
    24
}

fn recording<W: Write>(
    header: &Header,
    input: &mut impl BufRead,
    patterns: &Patterns,
    printer: &mut Printer<W>,
) -> Result<(), Failure> {
    // Recordings of pipes say so by an empty TERM; asciinema itself records terminals alone.
    let piped = header
        .env
        .get("TERM")
        .is_some_and(|t| t.as_deref().unwrap_or("").is_empty());
    let layout = if piped {
        Layout::Plain
    } else {
        Layout::Terminal {
            cols: header.width,
            rows: header.height,
        }
    };
    let latin = header.x_encoding.as_deref() == Some("latin-1");
    let mut reader = ProgressReader::with_patterns(layout, layout, patterns.clone());
    let mut line = Vec::new();
    let mut now = None;
    loop {
        line.clear();
        let read = (&mut *input)
            .take(LONGEST_EVENT)
            .read_until(b'\n', &mut line)
            .map_err(Failure::Read)?;
        if read == 0 {
            break;
        }
        // A torn last line, or an event of a later version: nothing to read in it.
        let Ok((t, code, data)) = serde_json::from_slice::<(f64, String, String)>(&line) else {
            continue;
        };
        now = Some(t);
        let stream = match code.as_str() {
            "o" => Stream::Out,
            "e" => Stream::Err,
            "r" => {
                if let Some((cols, rows)) = size(&data) {
                    reader.resize(Stream::Out, cols, rows);
                }
                continue;
            }
            _ => continue,
        };
        let marks = if latin {
            let bytes: Vec<u8> = data.chars().map(|c| c as u32 as u8).collect();
            reader.feed(stream, now, &bytes)
        } else {
            reader.feed(stream, now, data.as_bytes())
        };
        printer.print(&marks)?;
    }
    printer.print(&reader.finish(now))
}

/// `120x40`.
fn size(data: &str) -> Option<(u16, u16)> {
    let (cols, rows) = data.split_once('x')?;
    Some((cols.parse().ok()?, rows.parse().ok()?))
}

impl<W: Write> Printer<W> {
    fn print(&mut self, marks: &[Mark]) -> Result<(), Failure> {
        for mark in marks {
            let line = if self.json {
                serde_json::to_string(mark).map_err(|e| Failure::Write(e.into()))?
            } else {
                sentence(mark)
            };
            writeln!(self.out, "{line}").map_err(Failure::Write)?;
        }
        if !marks.is_empty() {
            // Whoever watches a live stream wants to see it now.
            self.out.flush().map_err(Failure::Write)?;
        }
        Ok(())
    }
}

/// A mark as a person reads it: `12.3 s  train  epoch 2/5  step 30/100  loss 0.31 ...`.
fn sentence(mark: &Mark) -> String {
    let of = |n: String, total: Option<String>| match total {
        Some(total) => format!("{n}/{total}"),
        None => n,
    };
    let mut parts = Vec::new();
    if let Some(t) = mark.t {
        parts.push(format!("{t:9.3}"));
    }
    parts.push(
        match mark.phase {
            Phase::Train => "train",
            Phase::Eval => "eval",
            Phase::Other => "other",
        }
        .to_owned(),
    );
    if let Some(rank) = mark.rank {
        parts.push(format!("rank {rank}"));
    }
    if let Some(epoch) = mark.epoch {
        parts.push(format!(
            "epoch {}",
            of(epoch.to_string(), mark.epochs.map(|n| n.to_string()))
        ));
    }
    if let Some(step) = mark.step {
        parts.push(format!(
            "step {}",
            of(step.to_string(), mark.steps.map(|n| n.to_string()))
        ));
    }
    if let Some(percent) = mark.percent {
        parts.push(format!("{percent}%"));
    }
    let numbers = mark.loss.iter().map(|l| ("loss", l));
    let numbers = numbers.chain(mark.metrics.iter().map(|(n, m)| (n.as_str(), m)));
    parts.extend(numbers.map(|(name, Metric(value))| format!("{name} {value}")));
    if let Some(rate) = mark.rate {
        parts.push(format!("{rate} steps/s"));
    }
    if let Some(pct) = mark.overall_pct {
        parts.push(format!("overall {pct:.1}%"));
    }
    if let Some(eta) = mark.overall_eta_s {
        parts.push(format!("{} left", units::seconds_text(eta)));
    }
    parts.push(format!("[{}]", mark.source));
    parts.join("  ")
}
