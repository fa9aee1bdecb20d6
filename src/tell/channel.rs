//! Channels that are ready to send: secrets read, addresses and templates checked.
//!
//! Owns the step from settings to something that can send, whose errors are said before a run
//! starts. Must not know when something is sent.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::model::{Channel, Programs, Switch, TellSettings};

use super::alertmanager::Alertmanager;
use super::dingtalk::DingTalk;
use super::discord::Discord;
use super::email::Email;
use super::failure::Failure;
use super::feishu::Feishu;
use super::heartbeat::Heartbeat;
use super::http::Http;
use super::letter::Letter;
use super::ntfy::Ntfy;
use super::policy::{DESKTOP, Routes};
use super::preview::Previews;
use super::service::Service;
use super::slack::Slack;
use super::teams::Teams;
use super::telegram::Telegram;
use super::texts::Style;
use super::turns::Rate;
use super::webhook::Webhook;
use super::wecom::WeCom;
use super::words::Tongue;
use super::{command, desktop, place, secrets};

/// What can't be used: one sentence without secrets.
#[derive(Debug, Error)]
pub enum ChannelError {
    /// A channel.
    #[error("the channel '{name}' can't be used: {why}")]
    Channel {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// A template of `tell.texts`.
    #[error("tell.texts.{key}: {why}")]
    Text {
        /// Its key.
        key: &'static str,
        /// Why.
        why: String,
    },
}

/// One way to send.
#[derive(Debug)]
pub enum Means {
    /// A service that takes a POST.
    Service(Box<dyn Service>),
    /// Mail.
    Email(Box<Email>),
    /// The desktop.
    Desktop,
    /// A program and its arguments.
    Command(Vec<String>),
    /// One of these that only shows what it would send.
    Dry(Box<Dry>),
}

/// A channel of a dry run.
#[derive(Debug)]
pub struct Dry {
    name: String,
    means: Means,
    previews: Previews,
}

/// All channels of a run.
#[derive(Debug)]
pub struct Channels {
    /// By name.
    pub means: BTreeMap<String, Means>,
    /// Where they lead to, as hashes: of those that take what is late.
    pub(super) places: BTreeMap<String, String>,
    /// As they were set.
    pub settings: TellSettings,
    /// How texts are written.
    pub style: Style,
    /// Where what would be sent is listed, if nothing is sent.
    pub previews: Option<Previews>,
    /// Whether the desktop hears alarms without being a channel of the profile.
    pub desktop: bool,
}

impl Channels {
    /// Reads all secrets and checks all channels. Looks at the environment, and at whether
    /// stderr is a terminal.
    ///
    /// # Errors
    /// The first channel that can't be used.
    pub fn open(mut settings: TellSettings) -> Result<Self, ChannelError> {
        for (name, channel) in &mut settings.channels {
            recognise(channel).map_err(|why| ChannelError::Channel {
                name: name.clone(),
                why,
            })?;
        }
        let (mut means, mut places) = (BTreeMap::new(), BTreeMap::new());
        for (name, channel) in &settings.channels {
            let made = Means::new(channel).map_err(|why| ChannelError::Channel {
                name: name.clone(),
                why,
            })?;
            if !made.is_fleeting()
                && let Some(place) = place::of(channel)
            {
                places.insert(name.clone(), place);
            }
            means.insert(name.clone(), made);
        }
        let wanted = match settings.desktop {
            Switch::On => true,
            Switch::Off => false,
            Switch::Auto => desktop::has_bus() && std::io::stderr().is_terminal(),
        };
        let desktop = wanted && Routes::desktop_is_free(&settings);
        if desktop {
            means.insert(DESKTOP.to_owned(), Means::Desktop);
        }
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        let tongue = Tongue::new(settings.language, locale.as_deref());
        Ok(Self {
            means,
            places,
            style: Style::new(tongue, &settings.texts)
                .map_err(|(key, why)| ChannelError::Text { key, why })?,
            previews: settings.dry_run.then(Previews::default),
            settings,
            desktop,
        }
        .dry_where_asked())
    }

    /// In a dry run nothing leaves the machine.
    fn dry_where_asked(mut self) -> Self {
        let Some(previews) = &self.previews else {
            return self;
        };
        let dry = |(name, means): (String, Means)| {
            let (channel, previews) = (name.clone(), previews.clone());
            let dry = Dry {
                name: channel,
                means,
                previews,
            };
            (name, Means::Dry(Box::new(dry)))
        };
        // Nothing is kept, and nothing that was kept is sent.
        self.places.clear();
        self.means = std::mem::take(&mut self.means)
            .into_iter()
            .map(dry)
            .collect();
        self
    }

    /// Tries the templates of these settings, without reading a secret.
    ///
    /// # Errors
    /// The first that can't be used.
    pub fn check_templates(settings: &TellSettings) -> Result<(), ChannelError> {
        Style::new(Tongue::English, &settings.texts)
            .map_err(|(key, why)| ChannelError::Text { key, why })?;
        for (name, channel) in &settings.channels {
            let Channel::Webhook(hook) = channel else {
                continue;
            };
            Webhook::check_template(hook).map_err(|why| ChannelError::Channel {
                name: name.clone(),
                why,
            })?;
        }
        Ok(())
    }

    /// Whether there is nobody to tell.
    pub fn is_empty(&self) -> bool {
        self.means.is_empty()
    }
}

impl Means {
    fn new(channel: &Channel) -> Result<Self, String> {
        Ok(match channel {
            Channel::Email { url, from, to } => Self::Email(Box::new(Email::new(url, from, to)?)),
            Channel::Desktop => Self::Desktop,
            Channel::Command { argv } if argv.is_empty() => {
                return Err("it has no program to run".to_owned());
            }
            Channel::Command { argv } => Self::Command(argv.clone()),
            other => Self::Service(service(other)?),
        })
    }

    /// What kind it is, as a profile calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Service(service) => service.kind(),
            Self::Email(_) => "email",
            Self::Desktop => "desktop",
            Self::Command(_) => "command",
            Self::Dry(dry) => dry.means.kind(),
        }
    }

    /// Whether it only shows what it would send.
    pub fn is_dry(&self) -> bool {
        matches!(self, Self::Dry(_))
    }

    /// What holds has to be said again so often, or it counts as over.
    pub fn again(&self) -> Option<Duration> {
        match self {
            Self::Service(service) => service.again(),
            _ => None,
        }
    }

    /// How many messages it takes.
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Self::Service(service) => service.rate(),
            _ => None,
        }
    }

    /// Whether it is a dead man's switch: what it misses isn't worth sending later.
    pub fn is_fleeting(&self) -> bool {
        match self {
            Self::Service(service) => service.is_fleeting(),
            Self::Dry(dry) => dry.means.is_fleeting(),
            _ => false,
        }
    }

    /// Sends one message, once.
    ///
    /// # Errors
    /// It did not arrive, as far as can be told.
    pub async fn send(
        &self,
        http: &Http,
        programs: &Arc<dyn Programs>,
        letter: &Letter,
    ) -> Result<(), Failure> {
        match self {
            Self::Service(service) => super::service::send(service.as_ref(), http, letter).await,
            Self::Email(email) => email.send(letter).await,
            Self::Desktop => desktop::send(letter).await,
            Self::Command(argv) => command::send(argv, Arc::clone(programs), letter).await,
            Self::Dry(dry) => {
                dry.previews.add(&dry.name, &dry.means, letter);
                Ok(())
            }
        }
    }
}

/// What is to be known by its address is read, and becomes what it is.
fn recognise(channel: &mut Channel) -> Result<(), String> {
    if let Channel::Known { url } = channel {
        let text = secrets::read(url).map_err(|e| e.to_string())?;
        let known = Channel::known(text.expose());
        *channel = known.ok_or("what is kept there is no address of a channel")?;
    }
    Ok(())
}

fn service(channel: &Channel) -> Result<Box<dyn Service>, String> {
    Ok(match channel {
        Channel::Webhook(settings) => Box::new(Webhook::new(settings)?),
        Channel::Slack { url } => Box::new(Slack::new(url)?),
        Channel::Discord { url } => Box::new(Discord::new(url)?),
        Channel::Teams { url } => Box::new(Teams::new(url)?),
        Channel::Feishu { url, secret } => Box::new(Feishu::new(url, secret.as_ref())?),
        Channel::DingTalk { url, secret } => Box::new(DingTalk::new(url, secret.as_ref())?),
        Channel::WeCom { url } => Box::new(WeCom::new(url)?),
        Channel::Telegram {
            server,
            token,
            chat,
        } => Box::new(Telegram::new(server, token, chat)?),
        Channel::Ntfy { url, token } => Box::new(Ntfy::new(url, token.as_ref())?),
        Channel::Alertmanager { url, headers } => Box::new(Alertmanager::new(url, headers)?),
        Channel::Heartbeat { url } => Box::new(Heartbeat::new(url)?),
        Channel::Known { .. }
        | Channel::Email { .. }
        | Channel::Desktop
        | Channel::Command { .. } => return Err("it is no service".to_owned()),
    })
}
