//! What was typed. One thin file a command.
//!
//! Owns parsing of the command line, its errors and exit codes. Nothing imports it.

use std::process::ExitCode;

/// Runs what the command line says.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
