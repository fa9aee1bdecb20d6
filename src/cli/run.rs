//! `gpuwatch run [options] -- CMD...`

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap::builder::{FalseyValueParser, TypedValueParser};

use crate::model::Wait;
use crate::plan::env::parse_env_arg;
use crate::supervise::wire::{self, Ending, Request, Runner};

use super::NOT_STARTED;
use super::errors::complain;
use super::gpu_args::GpuArgs;
use super::profile::lines;
use super::settings::SettingArgs;

const EXIT_CODES: &str = "\
Exit code: the command's own; one that dies of a signal is died of as well. 127: not found,
126: not executable, 125: gpuwatch could not start it, or the options are wrong, 124: its
--time-limit was up, whatever the command answered, 123: a finding ended it (--on-stall stop, or
a profile's act), 3: it succeeded and a --fail-if holds. Of several attempts (--restart) the last
one's counts.";

/// Launch a command and watch it.
#[derive(Args)]
#[command(override_usage = "gpuwatch run [OPTIONS] -- <CMD>...", after_help = EXIT_CODES)]
pub struct RunArgs {
    #[command(flatten)]
    gpus: GpuArgs,

    /// Set an environment variable for the command (repeatable)
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = clap::builder::OsStringValueParser::new().try_map(|text| parse_env_arg(&text)), help_heading = "Environment")]
    env: Vec<(String, OsString)>,

    /// Set nothing in the command's environment but what --env says
    #[arg(
        long,
        env = "GPUWATCH_NO_ENV", hide_env_values = true, value_parser = FalseyValueParser::new(),
        help_heading = "Environment"
    )]
    no_env: bool,

    /// Show what would be set and run; start nothing and wait for nothing
    #[arg(long, help_heading = "Environment")]
    dry_run: bool,

    #[command(flatten)]
    settings: SettingArgs,

    /// Name of the run; by default from the command
    #[arg(
        long,
        env = "GPUWATCH_NAME",
        hide_env_values = true,
        help_heading = "Recording"
    )]
    name: Option<String>,

    /// A word to find the run by (repeatable)
    #[arg(long = "tag", value_name = "TAG", help_heading = "Recording")]
    tags: Vec<String>,

    /// Directory of the records; by default gpuwatch/runs in $XDG_STATE_HOME or ~/.local/state
    #[arg(
        long,
        value_name = "DIR",
        env = "GPUWATCH_DIR",
        hide_env_values = true,
        help_heading = "Recording"
    )]
    dir: Option<PathBuf>,

    /// Write no record
    #[arg(
        long,
        env = "GPUWATCH_NO_RECORD", hide_env_values = true, value_parser = FalseyValueParser::new(),
        help_heading = "Recording"
    )]
    no_record: bool,

    /// Say nothing at all
    #[arg(
        short,
        long,
        env = "GPUWATCH_QUIET", hide_env_values = true, value_parser = FalseyValueParser::new(),
        help_heading = "Showing"
    )]
    quiet: bool,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the command.
pub fn run(args: RunArgs) -> ExitCode {
    let mut settings = match args.settings.resolve(&args.gpus) {
        Ok(settings) => settings,
        Err(error) => {
            complain(&lines(&error));
            return ExitCode::from(NOT_STARTED);
        }
    };
    if args.dry_run {
        // What can't be had now is the answer.
        settings.gpus.wait = Wait::No;
    }
    let request = Request {
        argv: args.command,
        env: args.env,
        no_env: args.no_env,
        settings,
        name: args.name,
        tags: args.tags,
        dir: args.dir,
        record: !args.no_record,
        quiet: args.quiet,
        runner: Runner::of_environment().filter(|_| !args.quiet),
    };
    let ending = if args.dry_run {
        wire::dry_run(&request)
    } else {
        wire::run(request)
    };
    match ending {
        Ok(Ending::Code(code)) => ExitCode::from(code),
        Ok(Ending::Signal(signal)) => die_like_the_child(signal),
        Err(refused) => {
            complain(&refused.text);
            ExitCode::from(refused.code.unwrap_or(NOT_STARTED))
        }
    }
}

/// The caller sees the same death; as PID 1, which can't die so, what a shell would show.
fn die_like_the_child(signal: i32) -> ExitCode {
    crate::sys::signals::die_of(signal);
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(NOT_STARTED))
}
