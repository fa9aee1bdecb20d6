//! What was typed. One thin file a command.
//!
//! Owns parsing of the command line, its errors and exit codes. Nothing imports it.

pub mod output;
pub mod runs;
pub mod show;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser, Debug)]
#[command(name = "gpuwatch", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Runs(runs::RunsArgs),
    Show(show::ShowArgs),
}

/// Runs what the command line says.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Runs(args) => runs::run(&args),
        Command::Show(args) => show::run(&args),
    }
}
