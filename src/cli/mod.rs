//! What was typed. One thin file a command.
//!
//! Owns parsing of the command line, its errors and exit codes. Nothing imports it.

mod alert;
mod compare;
mod deliver;
mod doctor;
mod errors;
mod export;
mod follow_files;
mod gpu_args;
mod gpus;
mod helper;
mod layers;
mod output;
mod parse;
mod patrol;
mod profile;
mod ps;
mod replay;
mod report;
mod run;
mod runs;
mod settings;
mod show;
mod span;
mod stacks;
mod top;
mod trust;
mod waste;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Wrong usage of every command but `run`.
const USAGE: u8 = 2;

/// Our own failure before the start of a run, wrong usage included.
const NOT_STARTED: u8 = 125;

/// A launcher and job supervisor for GPU training.
#[derive(Parser)]
#[command(name = "gpuwatch", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Launch a command and watch it
    Run(Box<run::RunArgs>),
    /// The GPUs of this machine, who holds them and which are free
    Gpus(gpus::GpusArgs),
    /// Why doesn't my job use the GPU?
    Doctor(doctor::DoctorArgs),
    /// The runs that were recorded
    Runs(runs::RunsArgs),
    /// One run: what happened
    Show(show::ShowArgs),
    /// Write a record for other programs: as it was sampled, as lines of JSON, or as metrics
    Export(export::ExportArgs),
    /// One run as an HTML page with plots
    Report(report::ReportArgs),
    /// Two runs side by side
    Compare(compare::CompareArgs),
    /// What GPUs were used for: hours active, held idle, stalled, lost
    Waste(waste::WasteArgs),
    /// Judge records again: which findings they give
    Replay(replay::ReplayArgs),
    /// Your runs in progress on this machine
    Ps(ps::PsArgs),
    /// Your runs in progress, live on the terminal
    Top(top::TopArgs),
    /// Where a run in progress stands: stacks of its processes, the rank that differs
    Stacks(stacks::StacksArgs),
    /// Try the channels of alerts, and send what could not be sent
    Alert(alert::AlertArgs),
    /// Watch every process that holds a GPU on this machine (service)
    Patrol(Box<patrol::PatrolArgs>),
    /// What progress is read off this output
    Parse(parse::ParseArgs),
    /// Profiles: those there are, what they hold, what is wrong with them
    Profile(profile::ProfileArgs),
    #[command(hide = true)]
    Helper(helper::HelperArgs),
    #[command(hide = true)]
    FollowFiles(follow_files::FollowFilesArgs),
    #[command(hide = true)]
    Deliver,
}

/// `gpuwatch run` alone: building all commands takes longer than starting one.
#[derive(Parser)]
struct Launcher {
    #[command(flatten)]
    run: run::RunArgs,
}

/// Runs what the command line says.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "run")
        && let Ok(launcher) = Launcher::try_parse_from(&words[1..])
    {
        return run::run(launcher.run);
    }
    // What is wrong with it is said by the whole.
    match Cli::try_parse_from(&words) {
        Ok(cli) => match cli.command {
            Command::Run(args) => run::run(*args),
            Command::Gpus(args) => gpus::run(&args),
            Command::Doctor(args) => doctor::run(&args),
            Command::Runs(args) => runs::run(&args),
            Command::Show(args) => show::run(&args),
            Command::Export(args) => export::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Compare(args) => compare::run(&args),
            Command::Waste(args) => waste::run(&args),
            Command::Replay(args) => replay::run(&args),
            Command::Ps(args) => ps::run(&args),
            Command::Top(args) => top::run(&args),
            Command::Stacks(args) => stacks::run(&args),
            Command::Alert(args) => alert::run(&args),
            Command::Parse(args) => parse::run(&args),
            Command::Profile(args) => profile::run(&args),
            Command::Patrol(args) => patrol::run(&args),
            Command::Deliver => deliver::run(),
            Command::Helper(args) => helper::run(&args),
            Command::FollowFiles(args) => follow_files::run(&args),
        },
        Err(error) => errors::refuse(&error, &words),
    }
}
