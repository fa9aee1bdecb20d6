//! Wrong usage in one line: what, where, what to do.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{NOT_STARTED, USAGE};
use crate::report::text::clean;

/// Says what is wrong with the command line (or prints the help that was asked for) and
/// returns the exit code for it.
pub fn refuse(error: &clap::Error, words: &[OsString]) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        // A reader that has gone away needs no help.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let command = words
        .get(1)
        .and_then(|w| w.to_str())
        .filter(|w| !w.starts_with('-'));
    complain(&format!(
        "{}; see '{}'",
        what(error, command),
        help_of(error, command)
    ));
    ExitCode::from(if command == Some("run") {
        NOT_STARTED
    } else {
        USAGE
    })
}

/// What we refuse, on stderr: one line, or a profile's with what it marks below. Every line is
/// safe for a terminal.
pub fn complain(text: &str) {
    // There is nowhere else to say that stderr is gone.
    let _ = writeln!(std::io::stderr(), "gpuwatch: {}", safe(text));
}

/// Only a line that is indented is one of ours; any other break comes from what was typed.
fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            safe.push(if line.starts_with("    ") { '\n' } else { '?' });
        }
        safe.push_str(&clean(line));
    }
    safe
}

fn help_of(error: &clap::Error, command: Option<&str>) -> String {
    match command {
        Some(command) if error.kind() != ErrorKind::InvalidSubcommand => {
            format!("gpuwatch {command} --help")
        }
        _ => "gpuwatch --help".to_owned(),
    }
}

fn what(error: &clap::Error, command: Option<&str>) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(s)) => s.clone(),
        Some(ContextValue::Strings(list)) => list.join(", "),
        _ => String::new(),
    };
    let argument = text(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => unknown(error, &argument),
        ErrorKind::InvalidSubcommand => {
            let near = text(ContextKind::SuggestedSubcommand);
            let near = if near.is_empty() {
                near
            } else {
                format!(" (did you mean '{near}'?)")
            };
            format!(
                "there is no command '{}'{near}",
                text(ContextKind::InvalidSubcommand)
            )
        }
        ErrorKind::MissingRequiredArgument if command == Some("run") => {
            "no command to run: write it after '--', like 'gpuwatch run -- python train.py'"
                .to_owned()
        }
        ErrorKind::MissingRequiredArgument => format!("{argument} is missing"),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "no command given, like 'gpuwatch run -- python train.py'".to_owned()
        }
        ErrorKind::ValueValidation => {
            let why = std::error::Error::source(error).map(ToString::to_string);
            format!(
                "{}: {}",
                option_name(&argument),
                why.unwrap_or_else(|| first_line(error))
            )
        }
        ErrorKind::InvalidValue => {
            let value = text(ContextKind::InvalidValue);
            let valid = text(ContextKind::ValidValue);
            let problem = if value.is_empty() {
                "needs a value".to_owned()
            } else {
                format!("'{value}' won't do")
            };
            let valid = if valid.is_empty() {
                valid
            } else {
                format!(": write one of {valid}")
            };
            format!("{}: {problem}{valid}", option_name(&argument))
        }
        _ => first_line(error),
    }
}

fn unknown(error: &clap::Error, argument: &str) -> String {
    if !argument.starts_with('-') {
        return format!("one word too many, '{argument}': leave it out");
    }
    let near = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(near)) => format!(" (did you mean '{near}'?)"),
        _ => String::new(),
    };
    format!("unknown option '{argument}'{near}")
}

/// `--interval <DURATION>` without its placeholder.
fn option_name(argument: &str) -> &str {
    argument.split_whitespace().next().unwrap_or(argument)
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    text.lines()
        .next()
        .unwrap_or("wrong usage")
        .trim_start_matches("error: ")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_what_was_typed_reaches_the_terminal_raw() {
        assert_eq!(safe("./no\x1b[31m\rx"), "./no?[31m?x");
        assert_eq!(safe("a\ngpuwatch: ok\n"), "a?gpuwatch: ok?");
        assert_eq!(
            safe("a.yaml:1:2: b\n    c\x1b\n    ^"),
            "a.yaml:1:2: b\n    c?\n    ^"
        );
    }
}
