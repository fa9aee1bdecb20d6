//! What was typed. One thin file a command.
//!
//! Owns parsing of the command line, its errors and exit codes. Nothing imports it.

mod parse;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "gpuwatch", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What progress is read off this output
    Parse(parse::ParseArgs),
}

/// Runs what the command line says.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Parse(args) => parse::run(&args),
    }
}
