//! Answers on stdout and complaints on stderr, as every command gives them.
//!
//! Owns what a closed pipe and a failed write mean for the exit code.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::record::run_dir::json_text;
use crate::report::text::clean;

/// Not found, unreadable, or a negative answer.
pub const EXIT_NO: u8 = 1;

/// Prints an answer. Whoever closed the pipe has seen enough: that is no failure.
pub fn print(answer: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(answer.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => complain(&unwritten(&e)),
        _ => ExitCode::SUCCESS,
    }
}

/// Prints a document.
pub fn print_json(document: &impl Serialize) -> ExitCode {
    match json_text(document) {
        Ok(text) => print(&text),
        Err(e) => complain(&unwritten(&e)),
    }
}

/// What a failed write of an answer is called.
pub fn unwritten(error: &io::Error) -> String {
    format!("cannot write the answer: {error}")
}

/// Says one line on stderr.
pub fn note(what: &impl Display) {
    // Nobody is left to be told where stderr is closed.
    let _ = writeln!(io::stderr(), "gpuwatch: {}", clean(&what.to_string()));
}

/// Says what is wrong, and gives the exit code that says it too.
pub fn complain(what: &impl Display) -> ExitCode {
    note(what);
    ExitCode::from(EXIT_NO)
}
