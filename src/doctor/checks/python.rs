//! The interpreter that the command would use.

use super::Check;
use crate::doctor::facts::{Answer, Facts, Runs};

/// What this check is called.
pub const NAME: &str = "interpreter";

/// The environment with the program is usually just not active.
const ACTIVATE: &str = "activate the environment that has it ('source .venv/bin/activate', 'conda activate NAME'), or give its whole path";

pub fn checks(facts: &Facts) -> Vec<Check> {
    vec![match &facts.command.runs {
        Runs::Python { file, how, .. } => python(facts, &file.display().to_string(), how),
        Runs::Other(what) => Check::note(
            NAME,
            format!("{what}: it isn't Python, and what it starts isn't known before it runs"),
        ),
        Runs::Missing(word) => {
            let cure = if word.contains('/') {
                "correct the path: it is taken from the working directory"
            } else {
                ACTIVATE
            };
            Check::bad(NAME, format!("{word} isn't found"), cure)
        }
        Runs::NotExecutable(file) => {
            let shown = file.display();
            let cure = if file.extension().is_some_and(|e| e == "py") {
                format!("'python {shown}', or 'chmod +x' with a '#!' line")
            } else {
                format!("'chmod +x {shown}', if it is a program")
            };
            Check::bad(NAME, format!("{shown} can't be executed"), cure)
        }
        Runs::BadInterpreter { file, wants } => Check::bad(
            NAME,
            format!("{} wants {wants}, which isn't there", file.display()),
            "its environment was moved or removed: make it again, or start the script with 'python'",
        ),
        Runs::Unknown { launcher } => Check::note(
            NAME,
            format!(
                "{launcher} chooses the interpreter as it starts: '{launcher} gpuwatch doctor -- python ...' looks from within"
            ),
        ),
        Runs::NoEnvironment {
            launcher,
            wants,
            cure,
        } => Check::bad(
            NAME,
            format!("{launcher} would use {wants}, which isn't there"),
            cure,
        ),
        Runs::Nothing => Check::warning(NAME, "there is no python in PATH", ACTIVATE),
    }]
}

fn python(facts: &Facts, file: &str, how: &str) -> Check {
    match &facts.python {
        Some(Answer::Said(python)) => {
            let (a, b, c) = python.version;
            let found = format!("{file} ({how}) is Python {a}.{b}.{c} in {}", python.prefix);
            if python.blind {
                return Check::warning(
                    NAME,
                    format!("{found}, too old to say what is installed in it"),
                    "use Python 3.9 or newer: today's frameworks need it",
                );
            }
            Check::ok(NAME, found)
        }
        Some(Answer::Hung(s)) => Check::bad(
            NAME,
            format!("{file} ({how}) didn't answer within {s} s and was killed"),
            format!(
                "try '{file} -c pass': a slow or dead network file system, or a sitecustomize or .pth file that waits"
            ),
        ),
        Some(Answer::Failed(said)) => Check::bad(
            NAME,
            format!("{file} ({how}) doesn't start: {said}"),
            format!(
                "try '{file} -c pass'; PYTHONHOME and PYTHONPATH of another Python, or an environment that was moved, do that"
            ),
        ),
        None => Check::note(NAME, format!("{file} ({how}) was not asked")),
    }
}
