//! `gpuwatch alert test|flush|list`.

use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::layers;
use super::output::{EXIT_NO, complain, note, print, print_json};
use super::profile::lines;
use crate::act::Commands;
use crate::model::{Channel, Programs};
use crate::observe::identity;
use crate::plan::profile::channel_for;
use crate::plan::resolve::{self, Flags};
use crate::report::text::clean;
use crate::supervise::wall_now;
use crate::tell::{self, Channels, Kept, Outbox, RunFacts, Tried};

/// Alerts: try every channel, send what could not be sent
#[derive(Args)]
pub struct AlertArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Send a test through every channel: exit code 1 if it didn't arrive everywhere
    Test(WhereArgs),
    /// Send what no run has sent so far: exit code 1 if something stays
    Flush(WhereArgs),
    /// The channels, and what could not be sent
    List(WhereArgs),
}

#[derive(Args)]
struct WhereArgs {
    /// The profile whose channels are meant, as `run` takes it
    #[arg(
        long,
        value_name = "NAME|FILE",
        env = "GPUWATCH_PROFILE",
        hide_env_values = true
    )]
    profile: Option<String>,
    /// One more channel, as `run` takes it (repeatable)
    #[arg(long, value_name = "URL", value_parser = channel_for, value_delimiter = ' ', env = "GPUWATCH_NOTIFY", hide_env_values = true)]
    notify: Vec<Channel>,
    /// The desktop, too
    #[arg(long, value_parser = FalseyValueParser::new(), env = "GPUWATCH_DESKTOP", hide_env_values = true)]
    desktop: bool,
    /// Send nothing: print what would be sent, secrets masked
    #[arg(long)]
    notify_dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl WhereArgs {
    /// The channels, ready to send.
    fn channels(&self) -> Result<Channels, String> {
        let flags = Flags {
            notify: self.notify.clone(),
            desktop: self.desktop,
            notify_dry_run: self.notify_dry_run,
            ..Flags::default()
        };
        let resolved = layers::load(self.profile.as_deref())
            .and_then(|layers| resolve::settings(layers.trees, &layers.name, &flags))
            .map_err(|error| lines(&error))?;
        Channels::open(resolved.tell).map_err(|error| error.to_string())
    }
}

/// Runs the command.
pub fn run(args: &AlertArgs) -> ExitCode {
    let (Command::Test(places) | Command::Flush(places) | Command::List(places)) = &args.command;
    let channels = match places.channels() {
        Ok(channels) => channels,
        Err(why) => {
            super::errors::complain(&why);
            return ExitCode::from(EXIT_NO);
        }
    };
    match &args.command {
        Command::Test(_) => test(channels, places.json),
        Command::Flush(_) => flush(channels, places.json),
        Command::List(_) => list(&channels, places.json),
    }
}

fn test(channels: Channels, as_json: bool) -> ExitCode {
    if channels.is_empty() {
        return complain(
            &"there is no channel to try: name one in a profile's 'tell', or with --notify",
        );
    }
    let run = RunFacts {
        name: "gpuwatch alert test".to_owned(),
        user: Some(identity::user()),
        host: identity::host(),
        ..RunFacts::default()
    };
    let previews = channels.previews.clone();
    match tell::test(channels, &run, &wall_now(), &programs()) {
        Ok(tries) => previews.map_or_else(
            || answer(&tries, as_json),
            |previews| print(&previews.take()),
        ),
        Err(error) => complain(&format!("nothing was sent: {error}")),
    }
}

fn flush(channels: Channels, as_json: bool) -> ExitCode {
    let Some(outbox) = Outbox::at_home() else {
        return complain(&NO_HOME);
    };
    let previews = channels.previews.clone();
    match tell::flush(channels, &outbox, &programs()) {
        Ok((tries, stays)) => {
            stays.iter().for_each(note);
            let said = match previews {
                Some(previews) => print(&previews.take()),
                None => answer(&tries, as_json),
            };
            if stays.is_empty() {
                said
            } else {
                ExitCode::from(EXIT_NO)
            }
        }
        Err(error) => complain(&format!(
            "nothing was sent from {}: {error}",
            outbox.folder().display()
        )),
    }
}

const NO_HOME: &str = "alerts are kept in the user's state directory, and there is no home";

fn programs() -> Arc<dyn Programs> {
    Arc::new(Commands::default())
}

/// One line a message.
fn answer(tries: &[Tried], as_json: bool) -> ExitCode {
    let said = if as_json {
        let tries: Vec<Value> = tries.iter().map(tried_json).collect();
        print_json(&json!({"schema": 1, "alerts": tries}))
    } else {
        print(&tries.iter().map(tried_line).collect::<String>())
    };
    if tries.iter().all(|tried| tried.result.is_ok()) {
        said
    } else {
        ExitCode::from(EXIT_NO)
    }
}

fn tried_line(tried: &Tried) -> String {
    let how = match &tried.result {
        Ok(()) => "ok".to_owned(),
        Err(why) => format!("failed: {why}"),
    };
    let line = format!("{} ({}), {}: {how}", tried.channel, tried.kind, tried.about);
    clean(&line) + "\n"
}

fn tried_json(tried: &Tried) -> Value {
    json!({
        "channel": tried.channel,
        "type": tried.kind,
        "about": tried.about,
        "ok": tried.result.is_ok(),
        "why": tried.result.as_ref().err(),
    })
}

fn list(channels: &Channels, as_json: bool) -> ExitCode {
    let outbox = Outbox::at_home();
    let listed = outbox.as_ref().map(Outbox::list).transpose();
    let (kept, problems) = match listed {
        Ok(listed) => listed.unwrap_or_default(),
        Err(error) => return complain(&format!("the kept alerts can't be read: {error}")),
    };
    problems.iter().for_each(note);
    let kept: Vec<Kept> = kept.into_iter().map(|(_, kept)| kept).collect();
    if as_json {
        return print_json(&json!({
            "schema": 1,
            "channels": channels
                .means
                .iter()
                .map(|(name, means)| json!({"name": name, "type": means.kind()}))
                .collect::<Vec<_>>(),
            "kept": kept.iter().map(kept_json).collect::<Vec<_>>(),
        }));
    }
    let mut text = String::new();
    let mut line = |words: String| {
        text.push_str(&clean(&words));
        text.push('\n');
    };
    if channels.is_empty() {
        line("no channel is set".to_owned());
    }
    for (name, means) in &channels.means {
        line(format!("{name} ({})", means.kind()));
    }
    for kept in &kept {
        let (alert, run) = (&kept.letter.alert, &kept.letter.run);
        let how = match &outbox {
            Some(outbox) if outbox.is_on_its_way(kept) => "on its way to",
            _ => "kept for",
        };
        line(format!(
            "{how} {}: {} of {}, {}: {}",
            kept.channel,
            alert.subject(),
            run.id,
            alert.time,
            kept.why
        ));
    }
    print(&text)
}

fn kept_json(kept: &Kept) -> Value {
    json!({
        "channel": kept.channel,
        "type": kept.kind,
        "about": kept.letter.alert.subject(),
        "run": kept.letter.run.id,
        "time": kept.letter.alert.time,
        "why": kept.why,
    })
}
