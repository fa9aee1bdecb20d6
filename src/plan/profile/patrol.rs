//! `patrol`: exemptions, and how owners are told.
//!
//! Owns what isn't a matter of one key's type: that an exemption exempts somebody, that mail can
//! be sent.

use super::error::ProfileError;
use super::node::Node;
use crate::model::{Channel, Exemption, PatrolSettings, TellSettings};
use crate::plan::nearest::suggestion;

/// Reads `patrol`. `tell` has the channels that it may name.
pub fn patrol(node: Option<&Node>, tell: &TellSettings) -> Result<PatrolSettings, ProfileError> {
    let get = |key| node.and_then(|node: &Node| node.get(key));
    let owners = |key| get("owners").and_then(|owners| owners.get(key));
    let usual = PatrolSettings::default();
    let list = get("exempt").map_or(&[][..], Node::items).iter();
    let domain = owners("domain").and_then(text);
    let exempt = list
        .enumerate()
        .map(|(i, node)| exemption(node, &format!("patrol.exempt[{i}]")));
    Ok(PatrolSettings {
        exempt: exempt.collect::<Result<_, _>>()?,
        desktop: owners("desktop")
            .and_then(Node::flag)
            .unwrap_or(usual.desktop),
        mail: owners("mail")
            .map(|node| mail(node, domain.is_some(), tell))
            .transpose()?
            .flatten(),
        domain: owners("domain").map(checked_domain).transpose()?.flatten(),
    })
}

fn text(node: &Node) -> Option<String> {
    let text = node.text().map(str::trim);
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

fn exemption(node: &Node, path: &str) -> Result<Exemption, ProfileError> {
    let get = |key| node.get(key).and_then(text);
    let exemption = Exemption {
        user: get("user"),
        command: get("command"),
        why: get("why"),
    };
    if exemption.user.is_none() && exemption.command.is_none() {
        let what = "it needs 'user' or 'command', like {user: alice, command: \"*jupyter*\"}";
        return Err(ProfileError::new(&node.place, path, what));
    }
    Ok(exemption)
}

fn mail(
    node: &Node,
    has_domain: bool,
    tell: &TellSettings,
) -> Result<Option<String>, ProfileError> {
    const PATH: &str = "patrol.owners.mail";
    let Some(name) = text(node) else {
        return Ok(None);
    };
    let wrong = |what: String| Err(ProfileError::new(&node.place, PATH, what));
    match tell.channels.get(&name) {
        None => {
            let near = suggestion(&name, tell.channels.keys().map(String::as_str));
            wrong(format!(
                "there is no channel of this name in tell.channels{near}"
            ))
        }
        Some(Channel::Email { .. }) if !has_domain => wrong(
            "owners get no mail without 'domain': write the part after the @ of their addresses"
                .to_owned(),
        ),
        Some(Channel::Email { .. }) => Ok(Some(name)),
        Some(other) => wrong(format!(
            "this channel is of type {}: owners get mail by one of type email",
            other.kind()
        )),
    }
}

fn checked_domain(node: &Node) -> Result<Option<String>, ProfileError> {
    let Some(domain) = text(node) else {
        return Ok(None);
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-.".contains(&b);
    if domain.bytes().all(plain) && !domain.starts_with(['.', '-']) {
        return Ok(Some(domain));
    }
    let what = "this is no domain: write the part after the @, like example.org";
    Err(ProfileError::new(&node.place, "patrol.owners.domain", what))
}
