//! `gpuwatch profile list|show|check|schema|trust`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use super::layers::{self, Layers};
use super::output::{EXIT_NO, note, print, print_json};
use super::trust;
use crate::plan::profile::{self, BUILT_IN, ProfileError};
use crate::plan::resolve::{self, Flags, Resolved};
use crate::report::text::clean;
use crate::tell::Channels;

/// Profiles: those there are, what they hold, what is wrong with them
#[derive(Args)]
pub struct ProfileArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The built-in profiles
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// All settings of a run here, each with where it comes from; secrets are not shown
    Show {
        /// A built-in profile or a file, as --profile takes it
        #[arg(
            value_name = "PROFILE",
            env = "GPUWATCH_PROFILE",
            hide_env_values = true
        )]
        name: Option<String>,
    },
    /// Say what is wrong with a file: exit code 1 if anything is
    Check {
        /// The file
        file: PathBuf,
    },
    /// The JSON Schema of profiles, for editors
    Schema,
    /// Vouch for a project's gpuwatch.yaml as it is now: it may then name commands and places
    Trust {
        /// The file
        file: PathBuf,
    },
}

/// Runs the command: 0, or 1 where something is wrong.
pub fn run(args: &ProfileArgs) -> ExitCode {
    match &args.command {
        Command::List { json } => list(*json),
        Command::Show { name } => answer(show(name.as_deref())),
        Command::Check { file } => answer(check(file)),
        Command::Schema => print_json(&profile::schema()),
        Command::Trust { file } => answer(vouch(file)),
    }
}

fn answer(answer: Result<String, ProfileError>) -> ExitCode {
    match answer {
        Ok(text) => print(&text),
        Err(error) => {
            super::errors::complain(&lines(&error));
            ExitCode::from(EXIT_NO)
        }
    }
}

/// An error on its lines, each of them safe for a terminal.
pub fn lines(error: &ProfileError) -> String {
    let text = error.to_string();
    let lines: Vec<_> = text.lines().map(clean).collect();
    lines.join("\n")
}

fn list(json: bool) -> ExitCode {
    if json {
        let profiles: Vec<_> = BUILT_IN
            .iter()
            .map(|(name, about, _)| json!({"name": name, "about": about}))
            .collect();
        return print_json(&json!({"schema": 1, "profiles": profiles}));
    }
    let width = BUILT_IN
        .iter()
        .map(|(name, ..)| name.len())
        .max()
        .unwrap_or(0);
    let line = |(name, about, _): &(&str, &str, &str)| format!("{name:width$}  {about}\n");
    print(&BUILT_IN.iter().map(line).collect::<String>())
}

fn show(name: Option<&str>) -> Result<String, ProfileError> {
    let Layers { trees, .. } = layers::load(name)?;
    resolve::settings(trees.clone(), "", &Flags::default())?;
    let merged = profile::layer::merge(trees);
    Ok(merged.as_ref().map(profile::shown).unwrap_or_default())
}

fn check(file: &Path) -> Result<String, ProfileError> {
    // A file in the working directory may be written without its folder.
    let path = if file.components().count() == 1 {
        Path::new(".").join(file)
    } else {
        file.to_owned()
    };
    let path = path.to_str().ok_or_else(|| {
        ProfileError::general("the file's path is not plain text: move it elsewhere")
    })?;
    let Layers { trees, name } = layers::alone(path)?;
    let Resolved { unheeded, tell, .. } = resolve::settings(trees, &name, &Flags::default())?;
    Channels::check_templates(&tell).map_err(|error| ProfileError::general(error.to_string()))?;
    for key in unheeded {
        note(&format!(
            "{key}: understood, but not acted on by this version"
        ));
    }
    Ok(format!("{}: fine\n", clean(&file.display().to_string())))
}

fn vouch(file: &Path) -> Result<String, ProfileError> {
    let content = layers::bytes(file)?;
    layers::parse(file, &content)?;
    let path = trust::trust(file, &content).map_err(|error| {
        let why = layers::reason(&error);
        ProfileError::general(format!("cannot trust {}: {why}", file.display()))
    })?;
    let path = clean(&path.display().to_string());
    Ok(format!("{path} is trusted until it changes\n"))
}
