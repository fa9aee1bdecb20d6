//! A user's program as a channel: the alert as JSON on stdin, and in `GPUWATCH_*` variables what
//! a shell script needs of it.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Program, Programs};

use super::alert::About;
use super::failure::Failure;
use super::letter::Letter;
use super::payload::payload;

/// It is killed when it takes longer.
const WITHIN: Duration = Duration::from_secs(10);

/// Runs it with one message.
///
/// # Errors
/// It failed. There is no second try: nobody knows what the first one did.
pub async fn send(
    argv: &[String],
    programs: Arc<dyn Programs>,
    letter: &Letter,
) -> Result<(), Failure> {
    let program = program(argv, letter);
    // It waits for the program, so it has a thread of its own.
    let run = tokio::task::spawn_blocking(move || programs.run(&program));
    match run.await {
        Ok(result) => result.map_err(Failure::never),
        Err(_) => Err(Failure::never("it could not be run")),
    }
}

/// What would be run, for people: a program, its variables, and what it reads.
pub fn preview(argv: &[String], letter: &Letter) -> String {
    let program = program(argv, letter);
    let variables = program.env.iter().map(|(name, value)| {
        let value = value.replace('\n', "\\n");
        format!("{name}={value}\n")
    });
    format!(
        "RUN {}\n{}\n{}",
        argv.join(" "),
        variables.collect::<String>(),
        String::from_utf8_lossy(&program.stdin).trim_end()
    )
}

fn program(argv: &[String], letter: &Letter) -> Program {
    let document = payload(&letter.alert, &letter.run);
    let word = |key: &str| {
        let text = document
            .get("data")
            .and_then(|data| data.get(key)?.as_str());
        text.unwrap_or_default().to_owned()
    };
    let finding = match &letter.alert.about {
        About::Finding(finding) => finding.name.clone(),
        _ => String::new(),
    };
    let variables = [
        ("TYPE", letter.alert.kind()),
        ("ALERT_ID", letter.id.clone()),
        ("STATE", word("state")),
        ("SEVERITY", word("severity")),
        ("FINDING", finding),
        ("TITLE", letter.title()),
        ("TEXT", letter.body()),
        ("RUN_ID", letter.run.id.clone()),
        ("RUN_NAME", letter.run.name.clone()),
    ];
    Program {
        argv: argv.to_vec(),
        env: variables
            .into_iter()
            // A variable can't hold a NUL.
            .map(|(name, value)| (format!("GPUWATCH_{name}"), value.replace('\0', "")))
            .collect(),
        stdin: format!("{document}\n").into_bytes(),
        within: WITHIN,
    }
}
