//! What was typed. One thin file a command.
//!
//! Owns parsing of the command line, its errors and exit codes. Nothing imports it.

pub mod output;
pub mod runs;
pub mod show;

use std::process::ExitCode;

/// Runs what the command line says.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
