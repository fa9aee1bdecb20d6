//! `gpuwatch doctor`: why a job doesn't use the GPU.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use etcetera::base_strategy::BaseStrategy;
use serde::Serialize;

use super::gpus::ask::{self, Heard, Session};
use super::output::{self, EXIT_NO, complain};
use crate::act::process::{self, Bounds};
use crate::doctor::facts::{Answer, Asked, Facts, Runs};
use crate::doctor::look::{self, Ended, python::Variables};
use crate::doctor::{Check, INTERPRETER, State, checks, judge};
use crate::model::OwnProcesses;
use crate::report::text::clean;

/// What was typed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without -v it prints what isn't fine, and nothing where all is fine. It starts the command's \
interpreter to see what is installed in it, imports nothing unless --import is given, and writes \
nothing. Exit code 0: fine; 1: something is wrong.")]
pub struct DoctorArgs {
    /// List every check, also those that are fine
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON document with every check
    #[arg(long)]
    json: bool,
    /// Where all is fine so far, import the frameworks and ask them for their GPUs (up to a minute each)
    #[arg(long)]
    import: bool,
    /// The command as it would be run; without one, the Python of PATH is looked at
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'c> {
    schema: u32,
    checks: &'c [Check],
}

/// What a program of ours may print.
const OUTPUT: usize = 1 << 20;

/// Looks, judges, prints.
pub fn run(args: &DoctorArgs) -> ExitCode {
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(e) => return complain(&format!("can't look at the working directory: {e}")),
    };
    let (mut facts, env) = look(args, &cwd);
    let mut checks = judge(&facts);
    if args.import && !checks.iter().any(Check::is_wrong) {
        import(&mut facts, &env);
        checks = judge(&facts);
    }
    let printed = if args.json {
        output::print_json(&Document {
            schema: 1,
            checks: &checks,
        })
    } else {
        output::print(&text(&checks, args.verbose, coloured()))
    };
    if !args.json && !args.verbose && !args.command.is_empty() {
        // Silence would say that the command was looked at.
        let unseen = |c: &&Check| c.check == INTERPRETER && c.state == State::Note;
        for check in checks.iter().filter(unseen) {
            output::note(&check.found);
        }
    }
    if printed == ExitCode::SUCCESS && checks.iter().any(Check::is_wrong) {
        return ExitCode::from(EXIT_NO);
    }
    printed
}

fn look(args: &DoctorArgs, cwd: &Path) -> (Facts, Variables) {
    let root = Path::new("/");
    let looked = look::command::look(&args.command, std::env::vars_os().collect(), cwd);
    let env = looked.env;
    let (python, asked) = thread::scope(|scope| {
        let python = scope.spawn(|| match &looked.runs {
            Runs::Python { file, options, .. } => {
                Some(look::python::ask(&run_program, file, options, &env))
            }
            _ => None,
        });
        let asked = ask_driver();
        (python.join().ok().flatten(), asked)
    });
    let variables: BTreeMap<String, String> = env
        .iter()
        .map(|(n, v)| (n.to_string_lossy().into(), v.to_string_lossy().into()))
        .collect();
    let library_path = variables.get("LD_LIBRARY_PATH").map(String::as_str);
    let tools = match &looked.runs {
        Runs::Python { file, .. } => Some(file.with_file_name("py-spy")).filter(|f| f.exists()),
        _ => None,
    };
    let facts = Facts {
        kernel: look::kernel::look(root),
        asked,
        python,
        libraries: look::libraries::loader(&run_program, library_path),
        toolkit: look::libraries::toolkit(),
        machine: look::machine::look(root, &run_program, &places(&env, cwd)),
        command: crate::doctor::facts::Command {
            typed: args.command.first().map(|w| w.to_string_lossy().into()),
            runs: looked.runs,
            imports: looked.imports,
            pyspy: tools.or_else(|| look::command::in_path("py-spy", &env)),
        },
        variables,
        imported: BTreeMap::new(),
    };
    (facts, env)
}

fn places(env: &Variables, cwd: &Path) -> Vec<(&'static str, PathBuf)> {
    let temporary = env.get(std::ffi::OsStr::new("TMPDIR"));
    let temporary = temporary.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let state = etcetera::base_strategy::Xdg::new().ok();
    let state = state.and_then(|dirs| dirs.state_dir());
    [
        ("working directory", Some(cwd.to_owned())),
        ("TMPDIR", Some(temporary)),
        ("state directory", state.map(|dir| dir.join("gpuwatch"))),
    ]
    .into_iter()
    .filter_map(|(role, path)| Some((role, cwd.join(path?))))
    .collect()
}

/// Through the helper process: a driver may hang for ever.
fn ask_driver() -> Asked {
    let silent_or = |why: String| {
        if why.starts_with(ask::SILENT) {
            Asked::Silent(why)
        } else {
            Asked::Refused(why)
        }
    };
    let (mut session, inventory) = match Session::start(Duration::from_secs(60)) {
        Ok(started) => started,
        Err(why) => return silent_or(why),
    };
    match session.tick() {
        Ok(Heard::Tick(samples)) => Asked::Answered { inventory, samples },
        Ok(Heard::Nothing(_)) => Asked::Answered {
            inventory,
            samples: Vec::new(),
        },
        Err(why) => silent_or(why),
    }
}

fn run_program(command: Command, within: Duration) -> Result<Ended, String> {
    let bounds = Bounds {
        within,
        output: OUTPUT,
    };
    let ended = process::run(command, b"", bounds, &OwnProcesses::default());
    let ended = ended.map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ended {
        success: ended.status.is_some_and(|s| s.success()),
        hung: ended.status.is_none(),
        stdout: text(&ended.stdout),
        stderr: text(&ended.stderr),
    })
}

fn import(facts: &mut Facts, env: &Variables) {
    let Runs::Python { file, options, .. } = &facts.command.runs else {
        return;
    };
    let seen: BTreeMap<String, Answer<_>> = checks::importable(facts)
        .into_iter()
        .map(|module| {
            let answer = look::python::import(&run_program, (file, options), env, module);
            (module.to_owned(), answer)
        })
        .collect();
    facts.imported = seen;
}

fn coloured() -> bool {
    let no = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    std::io::stdout().is_terminal() && !no
}

/// A line a check, and what to do below it.
fn text(checks: &[Check], all: bool, coloured: bool) -> String {
    // Writing into a String doesn't fail.
    let mut text = String::new();
    let mut last = None;
    for check in checks.iter().filter(|c| all || c.is_wrong()) {
        let (word, colour) = match check.state {
            State::Ok => ("ok", "32"),
            State::Note => ("note", "36"),
            State::Warning => ("warning", "33"),
            State::Bad => ("bad", "31"),
        };
        let word = if coloured {
            format!("\x1b[{colour}m{word:<7}\x1b[0m")
        } else {
            format!("{word:<7}")
        };
        let (name, found) = (check.check, clean(&check.found));
        let _ = writeln!(text, "{word}  {name}: {found}");
        if let Some(cure) = &check.cure {
            let again = last == Some(cure);
            let shown = if again {
                "the same".into()
            } else {
                clean(cure)
            };
            let _ = writeln!(text, "         -> {shown}");
            last = Some(cure);
        }
    }
    if all {
        let wrong = checks.iter().filter(|c| c.is_wrong()).count();
        let n = checks.len();
        let _ = match wrong {
            0 => writeln!(text, "all {n} checks are fine"),
            wrong => writeln!(text, "{wrong} of {n} checks are not fine"),
        };
    }
    text
}
