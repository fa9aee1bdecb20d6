//! Asking an interpreter what is installed in it, and what a framework sees.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::{Ended, Run};
use crate::doctor::facts::{Answer, Imported, Python};

const PROBE: &str = include_str!("probe.py");
const IMPORT: &str = include_str!("import.py");
/// Begins the line that is ours: a `sitecustomize` may print, too.
const MARK: &str = "gpuwatch-doctor:";
/// How long an interpreter may take to start and look around.
const PROBE_WITHIN: Duration = Duration::from_secs(6);
/// How long an import may take: a first one from a network file system takes long.
const IMPORT_WITHIN: Duration = Duration::from_secs(60);
/// How much of what a framework said is shown.
const SAID: usize = 300;

/// The environment of a command.
pub type Variables = BTreeMap<OsString, OsString>;

/// What is installed. Nothing of it is imported.
pub fn ask(run: &Run<'_>, file: &Path, options: &[String], env: &Variables) -> Answer<Python> {
    let command = python(file, options, env, PROBE);
    heard(run(command, PROBE_WITHIN), PROBE_WITHIN, |python, _| python)
}

/// Imports a framework and asks it for its GPUs.
pub fn import(
    run: &Run<'_>,
    (file, options): (&Path, &[String]),
    env: &Variables,
    module: &str,
) -> Answer<Imported> {
    let mut command = python(file, options, env, IMPORT);
    command.arg(module);
    heard(
        run(command, IMPORT_WITHIN),
        IMPORT_WITHIN,
        |seen: Imported, said| Imported {
            said: telling(said),
            ..seen
        },
    )
}

fn python(file: &Path, options: &[String], env: &Variables, script: &str) -> Command {
    let mut command = Command::new(file);
    // -B: nothing is written, no bytecode either.
    command.args(options).args(["-B", "-c", script]);
    command.env_clear().envs(env);
    command
}

fn heard<T: for<'de> Deserialize<'de>>(
    ended: Result<Ended, String>,
    within: Duration,
    with: impl FnOnce(T, &str) -> T,
) -> Answer<T> {
    let ended = match ended {
        Ok(ended) => ended,
        Err(why) => return Answer::Failed(why),
    };
    if ended.hung {
        return Answer::Hung(within.as_secs());
    }
    let ours = ended
        .stdout
        .lines()
        .rev()
        .find_map(|l| l.strip_prefix(MARK));
    match ours.map(serde_json::from_str) {
        Some(Ok(said)) => Answer::Said(with(said, &ended.stderr)),
        _ => Answer::Failed(last(&ended.stderr)),
    }
}

/// The last line of a traceback is the error.
fn last(stderr: &str) -> String {
    let line = stderr.lines().rev().find(|l| !l.trim().is_empty());
    cut(line.unwrap_or("it said nothing"))
}

/// Of what a framework printed, the line that speaks of CUDA or GPUs; else the last.
fn telling(stderr: &str) -> String {
    let tells = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["cuda", "gpu", "driver", "dlopen"]
            .iter()
            .any(|word| line.contains(word))
    };
    let line = stderr.lines().rev().find(tells);
    cut(line.or(stderr.lines().last()).unwrap_or_default())
}

fn cut(line: &str) -> String {
    line.trim().chars().take(SAID).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(stdout: &str, stderr: &str) -> Answer<Python> {
        let ended = Ended {
            success: true,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            ..Ended::default()
        };
        heard(Ok(ended), PROBE_WITHIN, |python, _| python)
    }

    #[test]
    fn what_others_print_is_no_answer() {
        let Answer::Said(python) = answer(
            "hello from sitecustomize\n\ngpuwatch-doctor:{\"version\":[3,11,2],\"torch_cuda\":null}\nbye\n",
            "",
        ) else {
            unreachable!("the marked line was not taken");
        };
        assert_eq!(python.version, (3, 11, 2));
        assert_eq!(python.torch_cuda, None);
        let failed = answer(
            "no mark",
            "Traceback\n  x\nModuleNotFoundError: encodings\n\n",
        );
        assert_eq!(
            failed,
            Answer::Failed("ModuleNotFoundError: encodings".to_owned())
        );
    }
}
