//! Channels that are ready to send: secrets read, addresses and templates checked.
//!
//! Owns the step from settings to something that can send, whose errors are said before a run
//! starts. Must not know when something is sent.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;

use thiserror::Error;

use crate::model::{Channel, Programs, Switch, TellSettings};

use super::email::Email;
use super::failure::Failure;
use super::feishu::Feishu;
use super::http::Http;
use super::letter::Letter;
use super::policy::{DESKTOP, Routes};
use super::slack::Slack;
use super::webhook::Webhook;
use super::words::Tongue;
use super::{command, desktop};

/// A channel that can't be used: one sentence without secrets.
#[derive(Debug, Error)]
#[error("the channel '{name}' can't be used: {why}")]
pub struct ChannelError {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// One way to send.
#[derive(Debug)]
pub enum Means {
    /// A generic webhook.
    Webhook(Box<Webhook>),
    /// Slack.
    Slack(Slack),
    /// Feishu or Lark.
    Feishu(Feishu),
    /// Mail.
    Email(Box<Email>),
    /// The desktop.
    Desktop,
    /// A program and its arguments.
    Command(Vec<String>),
}

/// All channels of a run.
#[derive(Debug)]
pub struct Channels {
    /// By name.
    pub means: BTreeMap<String, Means>,
    /// As they were set.
    pub settings: TellSettings,
    /// The language of texts.
    pub tongue: Tongue,
    /// Whether the desktop hears alarms without being a channel of the profile.
    pub desktop: bool,
}

impl Channels {
    /// Reads all secrets and checks all channels. Looks at the environment, and at whether
    /// stderr is a terminal.
    ///
    /// # Errors
    /// The first channel that can't be used.
    pub fn open(settings: TellSettings) -> Result<Self, ChannelError> {
        let mut means = BTreeMap::new();
        for (name, channel) in &settings.channels {
            let made = Means::new(channel).map_err(|why| ChannelError {
                name: name.clone(),
                why,
            })?;
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
        Ok(Self {
            means,
            tongue: Tongue::new(settings.language, locale.as_deref()),
            settings,
            desktop,
        })
    }

    /// Whether there is nobody to tell.
    pub fn is_empty(&self) -> bool {
        self.means.is_empty()
    }
}

impl Means {
    fn new(channel: &Channel) -> Result<Self, String> {
        Ok(match channel {
            Channel::Webhook(settings) => Self::Webhook(Box::new(Webhook::new(settings)?)),
            Channel::Slack { url } => Self::Slack(Slack::new(url)?),
            Channel::Feishu { url, secret } => Self::Feishu(Feishu::new(url, secret.as_ref())?),
            Channel::Email { url, from, to } => Self::Email(Box::new(Email::new(url, from, to)?)),
            Channel::Desktop => Self::Desktop,
            Channel::Command { argv } if argv.is_empty() => {
                return Err("it has no program to run".to_owned());
            }
            Channel::Command { argv } => Self::Command(argv.clone()),
        })
    }

    /// What kind it is, as a profile calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Slack(_) => "slack",
            Self::Feishu(_) => "feishu",
            Self::Email(_) => "email",
            Self::Desktop => "desktop",
            Self::Command(_) => "command",
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
            Self::Webhook(webhook) => webhook.send(http, letter).await,
            Self::Slack(slack) => slack.send(http, letter).await,
            Self::Feishu(feishu) => feishu.send(http, letter).await,
            Self::Email(email) => email.send(letter).await,
            Self::Desktop => desktop::send(letter).await,
            Self::Command(argv) => command::send(argv, Arc::clone(programs), letter).await,
        }
    }
}
