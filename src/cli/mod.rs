//! What was typed. One thin file a command.
//!
//! Owns parsing of the command line, its errors and exit codes. Nothing imports it.

use std::process::ExitCode;

use clap::Parser;

mod gpus;
mod helper;

#[derive(Debug, Parser)]
#[command(name = "gpuwatch", version)]
enum Cli {
    /// GPUs, who holds them, which are free
    Gpus(gpus::GpusArgs),
    #[command(hide = true)]
    Helper(helper::HelperArgs),
}

/// Runs what the command line says.
pub fn main() -> ExitCode {
    match Cli::parse() {
        Cli::Gpus(args) => gpus::run(&args),
        Cli::Helper(args) => helper::run(&args),
    }
}
