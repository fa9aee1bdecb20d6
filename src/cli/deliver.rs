//! `gpuwatch deliver`: shows one message on the desktop of the user that runs it. Hidden: a patrol
//! starts it as the owner of a job.
//!
//! Owns where the message is read: in the variables that every program of a channel gets.

use std::process::ExitCode;

use super::output::complain;
use crate::model::Severity;
use crate::tell::show_text;

/// Shows `GPUWATCH_TITLE` and `GPUWATCH_TEXT`.
pub fn run() -> ExitCode {
    let read = |name: &str| std::env::var(name).unwrap_or_default();
    let severity = match read("GPUWATCH_SEVERITY").as_str() {
        "critical" => Severity::Critical,
        "warning" => Severity::Warning,
        _ => Severity::Note,
    };
    match show_text(&read("GPUWATCH_TITLE"), &read("GPUWATCH_TEXT"), severity) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => complain(&why),
    }
}
