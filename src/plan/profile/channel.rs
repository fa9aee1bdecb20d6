//! `tell`: channels, routes, and whether an address is one.
//!
//! Owns which keys a type of channel takes. Never repeats an address: it is a secret.

use std::collections::BTreeMap;

use super::error::ProfileError;
use super::keys::CHANNEL_TYPES;
use super::node::{Node, Value};
use super::read::{finding_name, texts};
use super::values;
use crate::model::known::FORMS;
use crate::model::{
    Channel, Language, OwnTexts, Repeat, Route, SecretRef, Severity, Switch, TellSettings, Webhook,
};
use crate::plan::nearest::suggestion;

/// How addresses of hooks begin.
const WEB: &[&str] = &["https", "http"];
/// Where bots of Telegram are asked.
const TELEGRAM: &str = "https://api.telegram.org";

/// Reads `tell`. `known` are the names of all findings, with underscores.
pub fn tell(node: Option<&Node>, known: &[String]) -> Result<TellSettings, ProfileError> {
    let Some(node) = node else {
        return Ok(TellSettings::default());
    };
    let mut channels = BTreeMap::new();
    for (key, channel) in node.get("channels").map_or(&[][..], Node::entries) {
        // An empty entry takes a weaker layer's channel away.
        if !channel.is_null() {
            let path = format!("tell.channels.{}", key.name);
            channels.insert(key.name.clone(), self::channel(channel, &path)?);
        }
    }
    let mut routes = Vec::new();
    for (i, node) in node
        .get("routes")
        .map_or(&[][..], Node::items)
        .iter()
        .enumerate()
    {
        routes.push(route(node, &format!("tell.routes[{i}]"), &channels, known)?);
    }
    Ok(TellSettings {
        language: match node.get("language").and_then(Node::text) {
            Some("en") => Language::English,
            Some("zh") => Language::Chinese,
            _ => Language::Auto,
        },
        channels,
        routes,
        repeat: node.get("repeat").map_or(Ok(Repeat::default()), |repeat| {
            values::repeat(repeat)
                .map_err(|what| ProfileError::new(&repeat.place, "tell.repeat", what))
        })?,
        desktop: match node.get("desktop").and_then(Node::flag) {
            Some(true) => Switch::On,
            Some(false) => Switch::Off,
            None => Switch::Auto,
        },
        texts: OwnTexts {
            title: own_text(node, "title"),
            body: own_text(node, "body"),
        },
        dry_run: false,
    })
}

fn own_text(tell: &Node, key: &str) -> Option<String> {
    let text = tell.get("texts")?.get(key)?.text()?;
    Some(text.to_owned())
}

fn route(
    node: &Node,
    path: &str,
    channels: &BTreeMap<String, Channel>,
    known: &[String],
) -> Result<Route, ProfileError> {
    let to = node.get("to").map_or(&[][..], Node::items);
    if to.is_empty() {
        let what = "'to' must name a channel at least, like to: [team]";
        return Err(ProfileError::new(&node.place, path, what));
    }
    for (name, place) in to.iter().filter_map(|n| Some((n.text()?, &n.place))) {
        if !channels.contains_key(name) {
            let near = suggestion(name, channels.keys().map(String::as_str));
            let what = format!("there is no channel of this name in tell.channels{near}");
            return Err(ProfileError::new(place, format!("{path}.to"), what));
        }
    }
    let findings = node.get("findings").map_or(&[][..], Node::items);
    let findings = findings
        .iter()
        .map(|node| finding_name(node, &format!("{path}.findings"), known))
        .collect::<Result<_, _>>()?;
    Ok(Route {
        severity: node
            .get("severity")
            .and_then(values::severity)
            .unwrap_or(Severity::Warning),
        findings,
        runs: node
            .get("runs")
            .and_then(values::run_news)
            .unwrap_or_default(),
        to: texts(node.get("to")),
    })
}

/// Keys that a type of channel must have, and those that it may have.
fn keys_of(kind: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        "webhook" => (&["url"], &["secret", "template", "secrets", "headers"]),
        "slack" | "discord" | "teams" | "wecom" | "heartbeat" => (&["url"], &[]),
        "feishu" | "dingtalk" => (&["url"], &["secret"]),
        "telegram" => (&["token", "chat"], &["url"]),
        "ntfy" => (&["url"], &["token"]),
        "alertmanager" => (&["url"], &["headers"]),
        "email" => (&["url", "from", "to"], &[]),
        "command" => (&["argv"], &[]),
        _ => (&[], &[]),
    }
}

fn channel(node: &Node, path: &str) -> Result<Channel, ProfileError> {
    let wrong = |what: String| Err(ProfileError::new(&node.place, path, what));
    let Some(kind) = node.get("type").and_then(Node::text) else {
        return wrong(format!(
            "'type' is missing: write one of {}",
            CHANNEL_TYPES.join(", ")
        ));
    };
    check_keys(node, kind, path)?;
    made(node, kind, path)
}

/// The keys that it must have are there, and no others than it takes.
fn check_keys(node: &Node, kind: &str, path: &str) -> Result<(), ProfileError> {
    let wrong = |what: String| Err(ProfileError::new(&node.place, path, what));
    let (must, may) = keys_of(kind);
    if let Some(missing) = must.iter().find(|key| is_empty(node.get(key))) {
        return wrong(format!("a channel of type {kind} needs '{missing}'"));
    }
    for (key, _) in node.entries() {
        let name = key.name.as_str();
        if name != "type" && !must.contains(&name) && !may.contains(&name) {
            let takes: Vec<&str> = must.iter().chain(may).copied().collect();
            let takes = if takes.is_empty() {
                "nothing else".to_owned()
            } else {
                takes.join(", ")
            };
            let what = format!("a channel of type {kind} takes {takes}");
            return Err(ProfileError::new(
                &key.place,
                format!("{path}.{name}"),
                what,
            ));
        }
    }
    Ok(())
}

fn made(node: &Node, kind: &str, path: &str) -> Result<Channel, ProfileError> {
    let url = || address(node, kind, path);
    let secret = || node.get("secret").and_then(secret_ref);
    let token = || node.get("token").and_then(secret_ref);
    Ok(match kind {
        "slack" => Channel::Slack { url: url()? },
        "feishu" => Channel::Feishu {
            url: url()?,
            secret: secret(),
        },
        "discord" => Channel::Discord { url: url()? },
        "teams" => Channel::Teams { url: url()? },
        "wecom" => Channel::WeCom { url: url()? },
        "heartbeat" => Channel::Heartbeat { url: url()? },
        "dingtalk" => Channel::DingTalk {
            url: url()?,
            secret: secret(),
        },
        "telegram" => Channel::Telegram {
            server: match node.get("url") {
                Some(_) => url()?,
                None => SecretRef::parse(TELEGRAM),
            },
            token: token().unwrap_or_else(|| SecretRef::parse("")),
            chat: node
                .get("chat")
                .and_then(Node::text)
                .unwrap_or_default()
                .to_owned(),
        },
        "ntfy" => Channel::Ntfy {
            url: url()?,
            token: token(),
        },
        "alertmanager" => Channel::Alertmanager {
            url: url()?,
            headers: headers(node.get("headers"), path)?,
        },
        "email" => Channel::Email {
            url: url()?,
            from: mailbox(node.get("from"), path)?,
            to: mailboxes(node, path)?,
        },
        "command" => Channel::Command {
            argv: texts(node.get("argv")),
        },
        "desktop" => Channel::Desktop,
        _ => Channel::Webhook(Webhook {
            url: url()?,
            secret: secret(),
            template: node.get("template").and_then(Node::text).map(str::to_owned),
            headers: headers(node.get("headers"), path)?,
            secrets: named_secrets(node.get("secrets")),
        }),
    })
}

fn named_secrets(node: Option<&Node>) -> BTreeMap<String, SecretRef> {
    let entries = node.map_or(&[][..], Node::entries).iter();
    entries
        .filter_map(|(key, value)| Some((key.name.clone(), secret_ref(value)?)))
        .collect()
}

fn is_empty(node: Option<&Node>) -> bool {
    node.is_none_or(|node| match &node.value {
        Value::Text(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        _ => false,
    })
}

fn secret_ref(node: &Node) -> Option<SecretRef> {
    node.text().map(SecretRef::parse)
}

fn address(node: &Node, kind: &str, path: &str) -> Result<SecretRef, ProfileError> {
    let place = node.get("url").map_or(&node.place, |url| &url.place);
    let text = node.get("url").and_then(Node::text).unwrap_or_default();
    let url = SecretRef::parse(text);
    let schemes: &[&str] = if kind == "email" {
        &["smtp", "smtps"]
    } else {
        WEB
    };
    check_address(&url, schemes)
        .map(|()| url)
        .map_err(|what| ProfileError::new(place, format!("{path}.url"), what))
}

/// Whether a literal is an address with one of these schemes, or a reference names something.
fn check_address(url: &SecretRef, schemes: &[&str]) -> Result<(), String> {
    match url {
        SecretRef::Env(name) if !is_variable(name) => {
            Err("env: must be followed by a variable's name, like env:HOOK_URL".to_owned())
        }
        SecretRef::File(path) if path.as_os_str().is_empty() => {
            Err("file: must be followed by a path, like file:~/.hook".to_owned())
        }
        SecretRef::Env(_) | SecretRef::File(_) => Ok(()),
        SecretRef::Literal(url) if is_address(url.expose(), schemes) => Ok(()),
        SecretRef::Literal(_) => {
            let schemes: Vec<String> = schemes.iter().map(|s| format!("{s}://HOST/...")).collect();
            let right = schemes.join(" or ");
            Err(format!(
                "this is no address: write {right}, or env:NAME or file:PATH where it is kept"
            ))
        }
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `scheme://[user[:password]@]host[:port][/...]`, in printable ASCII.
fn is_address(url: &str, schemes: &[&str]) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let (name, port) = match host.rsplit_once(':') {
        // An IPv6 address holds colons in its brackets.
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    };
    schemes
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
        && !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._[]:%".contains(&b))
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
        && url.bytes().all(|b| b.is_ascii_graphic())
}

/// What `--notify` names: the type of channel is known by a short form or by the host; what is
/// kept elsewhere, when it is read.
///
/// # Errors
/// What is wrong with the address, without repeating it.
pub fn channel_for(text: &str) -> Result<Channel, String> {
    let url = SecretRef::parse(text);
    let SecretRef::Literal(_) = &url else {
        return check_address(&url, &[]).map(|()| Channel::Known { url });
    };
    let plain = text.bytes().all(|b| b.is_ascii_graphic());
    match Channel::known(text).filter(|_| plain) {
        Some(Channel::Webhook(webhook)) => {
            check_address(&url, WEB).map(|()| Channel::Webhook(webhook))
        }
        Some(known) => Ok(known),
        None => {
            let forms: Vec<&str> = FORMS.iter().map(|(form, _)| *form).collect();
            let forms = forms.join(", ");
            Err(format!(
                "this is no address: write https://HOST/..., a short form ({forms}), or env:NAME or file:PATH where one is kept"
            ))
        }
    }
}

fn mailboxes(node: &Node, path: &str) -> Result<Vec<String>, ProfileError> {
    let to = node.get("to").map_or(&[][..], Node::items);
    to.iter().map(|node| mailbox(Some(node), path)).collect()
}

/// Only what makes a header go wrong; a mail server knows the rest.
fn mailbox(node: Option<&Node>, path: &str) -> Result<String, ProfileError> {
    let text = node.and_then(Node::text).unwrap_or_default();
    let (name, host) = text.rsplit_once('@').unwrap_or_default();
    if name.is_empty() || host.is_empty() || text.chars().any(char::is_control) {
        let what = "this is no mail address: write it like name@example.com";
        return Err(match node {
            Some(node) => ProfileError::new(&node.place, path, what),
            None => ProfileError::general(what),
        });
    }
    Ok(text.to_owned())
}

fn headers(node: Option<&Node>, path: &str) -> Result<BTreeMap<String, SecretRef>, ProfileError> {
    let mut headers = BTreeMap::new();
    for (key, value) in node.map_or(&[][..], Node::entries) {
        let Some(reference) = secret_ref(value) else {
            continue;
        };
        let text = match &reference {
            SecretRef::Literal(hidden) => hidden.expose(),
            _ => "",
        };
        if !text.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) {
            let path = format!("{path}.headers.{}", key.name);
            let what = "a header's value must be ASCII on one line";
            return Err(ProfileError::new(&value.place, path, what));
        }
        headers.insert(key.name.clone(), reference);
    }
    Ok(headers)
}
