//! Where a channel leads to, as a word from which nothing can be read.
//!
//! Owns what two channels have in common that lead to the same people, whatever they are called:
//! `notify-1` is somebody else in the next run. A kept alert goes by itself to no other place.

use reqwest::Url;
use sha2::{Digest, Sha256};

use crate::model::{Channel, SecretRef};

use super::secrets;

/// A hash of all that decides who gets it; `None` where what is late isn't wanted, or a secret
/// can't be read any more.
pub fn of(channel: &Channel) -> Option<String> {
    let read = |secret: &SecretRef| Some(secrets::read(secret).ok()?.expose().to_owned());
    let or_none = |secret: &Option<SecretRef>| secret.as_ref().map_or(Some(String::new()), read);
    let mut words = vec![channel.kind().to_owned()];
    match channel {
        Channel::Desktop | Channel::Known { .. } | Channel::Heartbeat { .. } => return None,
        Channel::Command { argv } => words.extend(argv.iter().cloned()),
        Channel::Webhook(hook) => {
            // A template or a header may hold the key that decides.
            words.extend([read(&hook.url)?, or_none(&hook.secret)?]);
            words.extend(hook.template.clone());
            for (name, value) in &hook.headers {
                words.extend([name.clone(), read(value)?]);
            }
        }
        Channel::Alertmanager { url, headers } => {
            words.push(read(url)?);
            for (name, value) in headers {
                words.extend([name.clone(), read(value)?]);
            }
        }
        Channel::Slack { url }
        | Channel::Discord { url }
        | Channel::Teams { url }
        | Channel::WeCom { url }
        | Channel::Feishu { url, .. }
        | Channel::DingTalk { url, .. }
        | Channel::Ntfy { url, .. } => words.push(read(url)?),
        Channel::Telegram {
            server,
            token,
            chat,
        } => words.extend([read(server)?, read(token)?, chat.clone()]),
        Channel::Email { url, from, to } => {
            // Whoever gets it, by whichever password.
            let mut url = Url::parse(&read(url)?).ok()?;
            url.set_password(None).ok()?;
            words.extend([url.to_string(), from.clone()]);
            words.extend(to.iter().cloned());
        }
    }
    let mut hash = Sha256::new();
    for word in &words {
        hash.update(word.len().to_le_bytes());
        hash.update(word);
    }
    let first = hash.finalize();
    let first = first.iter().take(16);
    let number = first.fold(0, |n, byte| n << 8 | u128::from(*byte));
    Some(format!("{number:032x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_people_are_the_same_place() {
        let mail = |url: &str, to: &str| {
            of(&Channel::Email {
                url: SecretRef::parse(url),
                from: "g@example.org".to_owned(),
                to: vec![to.to_owned()],
            })
            .unwrap()
        };
        let one = mail("smtps://me:old@example.org", "a@example.org");
        assert_eq!(one, mail("smtps://me:new@example.org", "a@example.org"));
        assert_ne!(one, mail("smtps://me:old@example.org", "b@example.org"));
        let slack = |url: &str| {
            of(&Channel::Slack {
                url: SecretRef::parse(url),
            })
        };
        assert_ne!(slack("https://h/a"), slack("https://h/b"));
        assert_eq!(of(&Channel::Desktop), None);
    }
}
