//! Whom to tell what: the resolved `tell` section of a profile.
//!
//! Owns channels, routes and how often something is said again. Secrets stay references; they
//! are read where a message is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{SecretRef, Severity};

/// All that the sender of alerts is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TellSettings {
    /// In which language.
    pub language: Language,
    /// Channels by the names that routes use.
    pub channels: BTreeMap<String, Channel>,
    /// Who hears what; every channel that these name exists.
    pub routes: Vec<Route>,
    /// When something that still holds is said again.
    pub repeat: Repeat,
    /// Messages on the desktop.
    pub desktop: Switch,
    /// Texts of the user's own.
    pub texts: OwnTexts,
    /// Nothing is sent: what would be is shown at the end.
    pub dry_run: bool,
}

/// Templates in the place of our texts, for all channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnTexts {
    /// The one line.
    pub title: Option<String>,
    /// The lines below it.
    pub body: Option<String>,
}

/// The language of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// By the locale.
    #[default]
    Auto,
    /// `en`
    English,
    /// `zh`
    Chinese,
}

/// Yes, no, or as circumstances suggest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// For alarms, where a session bus exists and stderr is a terminal.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// When something that still holds is said again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Repeat {
    /// Said once.
    Never,
    /// When its age has grown by this factor since it was last said (`2x`).
    Growing(f64),
    /// This long after it was last said.
    Every(Duration),
}

impl Default for Repeat {
    fn default() -> Self {
        Self::Growing(2.0)
    }
}

/// Which ends of runs a route hears of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunNews {
    /// Of none.
    Never,
    /// Of those that didn't end well.
    Failed,
    /// Of all.
    #[default]
    Always,
}

/// Who hears what. An alert goes to every route that takes it, once to each channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Findings at least as serious as this.
    pub severity: Severity,
    /// Only these findings, with hyphens (`idle-holding`); empty: any.
    pub findings: Vec<String>,
    /// Which ends of runs.
    pub runs: RunNews,
    /// Names of channels; not empty.
    pub to: Vec<String>,
}

/// A place to send to. A `url` that is literal is an address of the right kind; one that is a
/// reference has to be checked once it is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Channel {
    /// A generic webhook, Standard Webhooks if there is no template.
    Webhook(Webhook),
    /// An incoming webhook of Slack.
    Slack {
        /// `https://hooks.slack.com/services/...`
        url: SecretRef,
    },
    /// A custom bot of Feishu or Lark.
    Feishu {
        /// `https://open.feishu.cn/open-apis/bot/v2/hook/...`
        url: SecretRef,
        /// The bot's signing secret, if it has one.
        secret: Option<SecretRef>,
    },
    /// A webhook of a channel of Discord.
    Discord {
        /// `https://discord.com/api/webhooks/...`
        url: SecretRef,
    },
    /// A workflow of Microsoft Teams.
    Teams {
        /// What the workflow "when a webhook request is received" shows.
        url: SecretRef,
    },
    /// A custom robot of DingTalk.
    DingTalk {
        /// `https://oapi.dingtalk.com/robot/send?access_token=...`
        url: SecretRef,
        /// The robot's signing secret, if it has one.
        secret: Option<SecretRef>,
    },
    /// A group robot of WeCom.
    WeCom {
        /// `https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=...`
        url: SecretRef,
    },
    /// A bot of Telegram.
    Telegram {
        /// `https://api.telegram.org`, or a server of one's own.
        server: SecretRef,
        /// The bot's token.
        token: SecretRef,
        /// The chat that it writes to: a number, or `@channel`.
        chat: String,
    },
    /// A topic of ntfy.
    Ntfy {
        /// `https://ntfy.sh/TOPIC`
        url: SecretRef,
        /// An access token, if the topic needs one.
        token: Option<SecretRef>,
    },
    /// Prometheus' Alertmanager.
    Alertmanager {
        /// Its root, such as `http://alertmanager:9093`.
        url: SecretRef,
        /// More headers, such as one that lets us in.
        headers: BTreeMap<String, SecretRef>,
    },
    /// A dead man's switch after healthchecks.io: it hears of progress, and misses it.
    Heartbeat {
        /// `https://hc-ping.com/UUID`
        url: SecretRef,
    },
    /// One of these, known by its address when that is read.
    Known {
        /// The address.
        url: SecretRef,
    },
    /// Electronic mail.
    Email {
        /// `smtps://user:password@host:465`, `smtp://host:587` (STARTTLS).
        url: SecretRef,
        /// The sender's address.
        from: String,
        /// The receivers' addresses; not empty.
        to: Vec<String>,
    },
    /// A message on the desktop.
    Desktop,
    /// A program that gets the alert as JSON on stdin.
    Command {
        /// The program and its arguments; not empty.
        argv: Vec<String>,
    },
}

/// A generic webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// `http://` or `https://`.
    pub url: SecretRef,
    /// Signs the request (`whsec_<base64>` or any text).
    pub secret: Option<SecretRef>,
    /// The body, in the place of the standard one.
    pub template: Option<String>,
    /// More headers.
    pub headers: BTreeMap<String, SecretRef>,
    /// What the template may name as `secrets.NAME`.
    pub secrets: BTreeMap<String, SecretRef>,
}

impl Channel {
    /// The channel's `type` in a profile.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Slack { .. } => "slack",
            Self::Feishu { .. } => "feishu",
            Self::Discord { .. } => "discord",
            Self::Teams { .. } => "teams",
            Self::DingTalk { .. } => "dingtalk",
            Self::WeCom { .. } => "wecom",
            Self::Telegram { .. } => "telegram",
            Self::Ntfy { .. } => "ntfy",
            Self::Alertmanager { .. } => "alertmanager",
            Self::Heartbeat { .. } => "heartbeat",
            Self::Known { .. } => "known by its address",
            Self::Email { .. } => "email",
            Self::Desktop => "desktop",
            Self::Command { .. } => "command",
        }
    }
}
