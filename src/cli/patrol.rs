//! `gpuwatch patrol`: every process that holds a GPU on this machine, whoever launched it.
//!
//! Owns the flags and the exit codes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::layers;
use super::output::{EXIT_NO, complain, note, print, print_json};
use super::profile::lines;
use super::settings::{Asked, interval, lasting, listen};
use crate::model::{Channel, Listen};
use crate::patrol::{Present, Request, look_once, watch};
use crate::plan::profile::channel_for;
use crate::plan::resolve::{self, Flags, Resolved};
use crate::record::root_for_writing;
use crate::tell::Channels;

/// There was nothing to look at: no driver, or one that doesn't answer.
const EXIT_BLIND: u8 = 3;
/// What a profile's interval is where nobody set one; a run's, and more than a patrol needs.
const OF_A_RUN: Duration = Duration::from_secs(1);
/// Time between two looks.
const USUAL: Duration = Duration::from_secs(5);

/// Watch every process that holds a GPU on this machine, and end none.
///
/// Tells the administrator (the channels of the profile) and each job's owner of jobs that hold
/// GPUs without using them, of what was left behind, and of GPU memory that nobody holds. Started
/// by root it sees all users' jobs, by anybody else their own.
#[derive(Args)]
#[command(
    after_help = "With --once the exit code is 0 where nothing is wrong, 1 where something was found, 3 where there \
is no driver or it doesn't answer, 2 for wrong usage. As a service it ends with 0 on INT, TERM, HUP or QUIT."
)]
pub struct PatrolArgs {
    /// Look for a while (--window), say what was found and end; nobody is told, nothing recorded
    #[arg(long)]
    once: bool,
    /// How long --once looks: what does nothing all this time is called idle
    #[arg(long, value_name = "DURATION", value_parser = lasting, default_value = "30s", requires = "once")]
    window: Duration,
    /// Print findings as JSON lines; with --once one document
    #[arg(long)]
    json: bool,
    /// Settings: a profile's name, or a file
    #[arg(
        long,
        value_name = "NAME|FILE",
        env = "GPUWATCH_PROFILE",
        hide_env_values = true
    )]
    profile: Option<String>,
    /// Time between two looks, like 1s, 10s [default: 5s, or the profile's; 1s with --once]
    #[arg(long, value_name = "DURATION", value_parser = interval, env = "GPUWATCH_INTERVAL", hide_env_values = true)]
    interval: Option<Duration>,
    /// Send alarms there, whoever's job it is: a webhook's address, `env:NAME` or `file:PATH`
    /// (repeatable)
    #[arg(long, value_name = "URL", value_parser = channel_for, value_delimiter = ' ', env = "GPUWATCH_NOTIFY", hide_env_values = true)]
    notify: Vec<Channel>,
    /// Serve metrics for Prometheus: at a port that only this machine reaches, like 9400, or at an
    /// address, like 192.0.2.7:9400; 0 takes a free port. Where it is taken, nothing starts
    #[arg(long, value_name = "ADDRESS", value_parser = listen, conflicts_with = "once")]
    metrics: Option<Asked<Listen>>,
    /// Write metrics to gpuwatch-patrol.prom in this directory, where node_exporter's textfile
    /// collector finds them
    #[arg(long, value_name = "DIR", conflicts_with = "once")]
    metrics_textfile: Option<PathBuf>,
    /// Where records are written [default: gpuwatch/runs in the user's state directory]
    #[arg(long, value_name = "DIR", env = "GPUWATCH_DIR")]
    dir: Option<PathBuf>,
    /// Write no records
    #[arg(long)]
    no_record: bool,
}

/// The document of `--once --json`.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    present: &'a Present,
}

/// Runs the command.
pub fn run(args: &PatrolArgs) -> ExitCode {
    let settings = match settings(args) {
        Ok(settings) => settings,
        Err(why) => {
            super::errors::complain(&why);
            return ExitCode::from(EXIT_NO);
        }
    };
    if args.once {
        return once(args, settings);
    }
    let channels = match Channels::open(settings.tell.clone()) {
        Ok(channels) => channels,
        Err(error) => return complain(&error),
    };
    let request = match request(args, settings) {
        Ok(request) => request,
        Err(why) => return complain(&why),
    };
    match watch(request, channels) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => complain(&why),
    }
}

fn settings(args: &PatrolArgs) -> Result<Resolved, String> {
    let flags = Flags {
        interval: args.interval,
        notify: args.notify.clone(),
        metrics: args.metrics.and_then(|asked| asked.0),
        metrics_textfile: args
            .metrics_textfile
            .clone()
            .filter(|dir| !dir.as_os_str().is_empty()),
        ..Flags::default()
    };
    let profile = args.profile.as_deref().filter(|p| !p.is_empty());
    let layers = layers::brief(profile).map_err(|e| lines(&e))?;
    resolve::settings(layers.trees, &layers.name, &flags).map_err(|e| lines(&e))
}

fn request(args: &PatrolArgs, settings: Resolved) -> Result<Request, String> {
    let given = Some(settings.interval).filter(|i| args.interval.is_some() || *i != OF_A_RUN);
    let usual = if args.once { OF_A_RUN } else { USUAL };
    let dir = args.dir.as_ref().or(settings.record.dir.as_ref());
    let root = if args.no_record || args.once {
        None
    } else {
        Some(root_for_writing(dir.map(PathBuf::as_path)).map_err(|e| e.to_string())?)
    };
    Ok(Request {
        profile: settings.profile,
        interval: given.unwrap_or(usual),
        judge: settings.judge,
        rules: settings.rules,
        patrol: settings.patrol,
        keep: settings.record,
        root,
        metrics: settings.metrics,
        json: args.json,
    })
}

fn once(args: &PatrolArgs, settings: Resolved) -> ExitCode {
    let looked = request(args, settings).and_then(|request| look_once(request, args.window));
    let present = match looked {
        Ok(present) => present,
        Err(why) => {
            note(&why);
            return ExitCode::from(EXIT_BLIND);
        }
    };
    let said = if args.json {
        print_json(&Document {
            schema: 1,
            present: &present,
        })
    } else {
        print(&present.text())
    };
    if said != ExitCode::SUCCESS {
        return ExitCode::from(EXIT_BLIND);
    }
    ExitCode::from(if present.alarms() > 0 { EXIT_NO } else { 0 })
}
