//! ntfy: a topic on ntfy.sh or on a server of one's own.

use std::time::SystemTime;

use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::json;

use crate::model::{Hidden, MASK, SecretRef, Severity};

use super::alert::State;
use super::cut::{Budget, cut};
use super::failure::Failure;
use super::http::{self, Address, Post};
use super::letter::Letter;
use super::secrets;
use super::service::Service;

/// A message takes 4,096 bytes; a longer one becomes an attachment.
const MOST: Budget = Budget::Bytes(4000);
/// The longest title, bytes.
const TITLE: Budget = Budget::Bytes(250);

/// One topic.
#[derive(Debug)]
pub struct Ntfy {
    /// The server's root: JSON goes there, not to the topic.
    root: Address,
    topic: Hidden,
    own: HeaderMap,
}

impl Ntfy {
    /// Reads its address (`https://ntfy.sh/topic`) and access token.
    ///
    /// # Errors
    /// They can't be used, without repeating them.
    pub fn new(url: &SecretRef, token: Option<&SecretRef>) -> Result<Self, String> {
        let address = Address::read(url)?;
        let Some((root, topic)) = address.split_last() else {
            return Err("its url must end with a topic, like https://ntfy.sh/my-topic".to_owned());
        };
        let mut own = HeaderMap::new();
        if let Some(token) = token {
            let token = secrets::read(token).map_err(|e| e.to_string())?;
            let value = Hidden::new(format!("Bearer {}", token.expose()));
            let (_, value) = http::header(AUTHORIZATION.as_str(), &value)?;
            own.insert(AUTHORIZATION, value);
        }
        Ok(Self { root, topic, own })
    }
}

impl Service for Ntfy {
    fn kind(&self) -> &'static str {
        "ntfy"
    }

    fn preview(&self, letter: &Letter, now: SystemTime) -> Result<(Address, Post), Failure> {
        let hidden = Self {
            root: self.root.clone(),
            topic: Hidden::new(MASK),
            own: self.own.clone(),
        };
        hidden.request(letter, now)
    }

    fn request(&self, letter: &Letter, _: SystemTime) -> Result<(Address, Post), Failure> {
        // Priorities: 3 is the usual one, 4 makes a sound, 5 insists.
        let (priority, tag) = match (letter.alert.state, letter.alert.severity) {
            (State::Cleared, _) => (3, "white_check_mark"),
            (_, Severity::Critical) => (5, "rotating_light"),
            (_, Severity::Warning) => (4, "warning"),
            (_, Severity::Note) => (3, "information_source"),
        };
        let mut post = Post::json(&json!({
            "topic": self.topic.expose(),
            "title": cut(&letter.title(), TITLE),
            "message": cut(&letter.body(), MOST),
            "priority": priority,
            "tags": [tag],
        }));
        post.own.clone_from(&self.own);
        Ok((self.root.clone(), post))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_goes_to_the_root() {
        let url = SecretRef::parse("https://ntfy.example.com/base/t0pic");
        let topic = Ntfy::new(&url, Some(&SecretRef::parse("tk_t0ken"))).unwrap();
        let (address, post) = topic
            .request(&Letter::sample(), SystemTime::UNIX_EPOCH)
            .unwrap();
        assert_eq!(address.path(), "/base");
        let sent: serde_json::Value = serde_json::from_slice(&post.body).unwrap();
        assert_eq!(
            (&sent["topic"], &sent["priority"]),
            (&json!("t0pic"), &json!(4))
        );
        let shown = format!("{topic:?}");
        assert!(
            !shown.contains("t0pic") && !shown.contains("t0ken"),
            "{shown}"
        );
        assert!(Ntfy::new(&SecretRef::parse("https://ntfy.sh/"), None).is_err());
    }
}
