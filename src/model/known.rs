//! Channels that are known by their address: short forms, and the hosts of services.
//!
//! Owns that table. No message repeats an address: it is a secret.

use std::collections::BTreeMap;

use super::{Channel, SecretRef, Webhook};

/// The variable that names the mail server of `mailto:`.
pub const SMTP: &str = "GPUWATCH_SMTP";

/// Short forms, and what each stands for, for people.
pub const FORMS: &[(&str, &str)] = &[
    ("slack://T../B../X..", "an incoming webhook"),
    ("discord://ID/TOKEN", "a webhook"),
    ("teams://HOST/PATH", "a workflow's address without https"),
    ("feishu://TOKEN?secret=S", "a custom bot"),
    ("lark://TOKEN?secret=S", "a custom bot"),
    ("dingtalk://TOKEN?secret=S", "a custom robot"),
    ("wecom://KEY", "a group robot"),
    ("telegram://TOKEN@CHAT", "a bot and the chat it writes to"),
    ("ntfy://TOPIC or ntfy://HOST/TOPIC", "a topic"),
    ("alertmanager://HOST:9093", "Prometheus' Alertmanager"),
    ("heartbeat://HOST/PATH", "a dead man's switch"),
    (
        "mailto:me@example.com",
        "mail, by the server in GPUWATCH_SMTP",
    ),
];

impl Channel {
    /// The channel that this address means: a short form, the address of a known service, else
    /// a generic webhook. None where it is no address at all.
    pub fn known(text: &str) -> Option<Self> {
        if let Some(to) = text.strip_prefix("mailto:") {
            return mail(to);
        }
        let (scheme, rest) = text.split_once("://")?;
        if rest.is_empty() {
            return None;
        }
        match scheme.to_ascii_lowercase().as_str() {
            "https" | "http" => by_host(text, rest),
            scheme => by_scheme(scheme, rest),
        }
    }
}

fn url(text: impl Into<String>) -> SecretRef {
    SecretRef::Literal(super::Hidden::new(text))
}

fn by_scheme(scheme: &str, rest: &str) -> Option<Channel> {
    let (path, secret) = match rest.split_once("?secret=") {
        Some((path, secret)) if !secret.is_empty() => (path, Some(url(secret))),
        Some(_) => return None,
        None => (rest, None),
    };
    Some(match scheme {
        "slack" => Channel::Slack {
            url: url(format!("https://hooks.slack.com/services/{rest}")),
        },
        "discord" => Channel::Discord {
            url: url(format!("https://discord.com/api/webhooks/{rest}")),
        },
        "teams" => Channel::Teams {
            url: url(format!("https://{rest}")),
        },
        "feishu" => feishu("open.feishu.cn", path, secret),
        "lark" => feishu("open.larksuite.com", path, secret),
        "dingtalk" => Channel::DingTalk {
            url: url(format!(
                "https://oapi.dingtalk.com/robot/send?access_token={path}"
            )),
            secret,
        },
        "wecom" => Channel::WeCom {
            url: url(format!(
                "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={rest}"
            )),
        },
        "telegram" => telegram("https://api.telegram.org", rest.rsplit_once('@')?)?,
        "ntfy" if rest.contains('/') => Channel::Ntfy {
            url: url(format!("https://{rest}")),
            token: None,
        },
        "ntfy" => Channel::Ntfy {
            url: url(format!("https://ntfy.sh/{rest}")),
            token: None,
        },
        "alertmanager" | "alertmanagers" => {
            let plain = if scheme == "alertmanager" {
                "http"
            } else {
                "https"
            };
            Channel::Alertmanager {
                url: url(format!("{plain}://{rest}")),
                headers: BTreeMap::new(),
            }
        }
        "heartbeat" => Channel::Heartbeat {
            url: url(format!("https://{rest}")),
        },
        _ => return None,
    })
}

fn feishu(host: &str, token: &str, secret: Option<SecretRef>) -> Channel {
    Channel::Feishu {
        url: url(format!("https://{host}/open-apis/bot/v2/hook/{token}")),
        secret,
    }
}

fn by_host(text: &str, rest: &str) -> Option<Channel> {
    let host = rest.split(['/', ':', '?']).next().unwrap_or_default();
    let host = host.to_ascii_lowercase();
    let url = url(text);
    let teams = [
        "webhook.office.com",
        "logic.azure.com",
        "api.powerplatform.com",
    ];
    Some(match host.as_str() {
        "hooks.slack.com" => Channel::Slack { url },
        "discord.com" | "discordapp.com" => Channel::Discord { url },
        "open.feishu.cn" | "open.larksuite.com" => Channel::Feishu { url, secret: None },
        "oapi.dingtalk.com" => Channel::DingTalk { url, secret: None },
        "qyapi.weixin.qq.com" => Channel::WeCom { url },
        "ntfy.sh" => Channel::Ntfy { url, token: None },
        "hc-ping.com" => Channel::Heartbeat { url },
        "api.telegram.org" => {
            let (token, query) = rest.split_once("/bot")?.1.split_once("/sendMessage?")?;
            let chat = query
                .split('&')
                .find_map(|part| part.strip_prefix("chat_id="))?;
            telegram("https://api.telegram.org", (token, chat))?
        }
        host if teams.iter().any(|end| host.ends_with(&format!(".{end}"))) => {
            Channel::Teams { url }
        }
        _ => Channel::Webhook(Webhook {
            url,
            secret: None,
            template: None,
            secrets: BTreeMap::new(),
            headers: BTreeMap::new(),
        }),
    })
}

fn telegram(server: &str, (token, chat): (&str, &str)) -> Option<Channel> {
    let number = chat
        .trim_start_matches('-')
        .bytes()
        .all(|b| b.is_ascii_digit());
    let chat = if number || chat.starts_with('@') {
        chat.to_owned()
    } else {
        format!("@{chat}")
    };
    (!token.is_empty() && chat.len() > 1).then(|| Channel::Telegram {
        server: url(server),
        token: url(token.trim_end_matches('@')),
        chat,
    })
}

fn mail(to: &str) -> Option<Channel> {
    let to: Vec<String> = to.split(',').map(|one| one.trim().to_owned()).collect();
    let fine = |one: &String| {
        one.split_once('@')
            .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
            && !one.contains(|c: char| c.is_control() || c.is_whitespace() || c == '?')
    };
    let from = to.first()?.clone();
    to.iter().all(fine).then(|| Channel::Email {
        url: SecretRef::Env(SMTP.to_owned()),
        from,
        to,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_known_by_its_address() {
        for (address, kind) in [
            ("https://hooks.slack.com/services/T/B/x", "slack"),
            ("slack://T/B/x", "slack"),
            ("https://discord.com/api/webhooks/1/x", "discord"),
            ("discord://1/x", "discord"),
            ("https://contoso.webhook.office.com/webhookb2/x", "teams"),
            (
                "https://prod-1.westeurope.logic.azure.com:443/workflows/x",
                "teams",
            ),
            ("teams://contoso.webhook.office.com/x", "teams"),
            (
                "https://open.larksuite.com/open-apis/bot/v2/hook/x",
                "feishu",
            ),
            ("lark://x", "feishu"),
            ("feishu://x?secret=y", "feishu"),
            (
                "https://oapi.dingtalk.com/robot/send?access_token=x",
                "dingtalk",
            ),
            ("dingtalk://x?secret=SECy", "dingtalk"),
            (
                "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=x",
                "wecom",
            ),
            ("wecom://x", "wecom"),
            (
                "https://api.telegram.org/bot1:x/sendMessage?chat_id=-100",
                "telegram",
            ),
            ("telegram://1:x@-100", "telegram"),
            ("telegram://1:x@news", "telegram"),
            ("https://ntfy.sh/x", "ntfy"),
            ("ntfy://x", "ntfy"),
            ("ntfy://ntfy.example.com/x", "ntfy"),
            ("alertmanager://am:9093", "alertmanager"),
            ("https://hc-ping.com/x", "heartbeat"),
            ("heartbeat://hc.example.com/ping/x", "heartbeat"),
            ("mailto:a@example.com,b@example.com", "email"),
            ("https://example.com/hooks.slack.com", "webhook"),
            ("HTTPS://Hooks.Slack.Com/services/x", "slack"),
        ] {
            let known = Channel::known(address);
            assert_eq!(known.map(|c| c.kind()), Some(kind), "{address}");
        }
    }

    #[test]
    fn other_text_is_no_channel() {
        for wrong in [
            "slack",
            "slack://",
            "telegram://x",
            "telegram://@x",
            "feishu://x?secret=",
            "gopher://x",
            "mailto:",
            "mailto:me",
            "mailto:a@b c",
            "https://api.telegram.org/x",
            "",
        ] {
            assert_eq!(Channel::known(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_short_form_is_the_address_it_stands_for() {
        let Some(Channel::Feishu { url, secret }) = Channel::known("feishu://t0k?secret=s3c")
        else {
            panic!("feishu")
        };
        let exposed = |s: &SecretRef| match s {
            SecretRef::Literal(hidden) => hidden.expose().to_owned(),
            other => other.to_string(),
        };
        assert_eq!(
            exposed(&url),
            "https://open.feishu.cn/open-apis/bot/v2/hook/t0k"
        );
        assert_eq!(secret.as_ref().map(exposed).as_deref(), Some("s3c"));
        let Some(Channel::Telegram { token, chat, .. }) = Channel::known("telegram://1:a@news")
        else {
            panic!("telegram")
        };
        assert_eq!((exposed(&token).as_str(), chat.as_str()), ("1:a", "@news"));
    }
}
