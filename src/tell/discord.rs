//! Discord: a webhook of a channel.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::model::SecretRef;

use super::cut::{Budget, cut};
use super::failure::Failure;
use super::http::{Address, Post};
use super::letter::Letter;
use super::markup::{Markup, inside_code};
use super::service::{Service, seconds};
use super::turns::Rate;

/// `content` takes 2,000 characters, some of which are our backslashes.
const UNITS: usize = 2000;
const MOST: Budget = Budget::Utf16(UNITS);
const TEXT: Budget = Budget::Utf16(1500);

/// Markdown as Discord reads it.
const MARKUP: Markup = Markup {
    bold: "**",
    escape: plain,
    code: inside_code,
};

/// One webhook.
#[derive(Debug)]
pub struct Discord {
    address: Address,
}

impl Discord {
    /// Reads its address.
    ///
    /// # Errors
    /// It can't be used, without repeating it.
    pub fn new(url: &SecretRef) -> Result<Self, String> {
        Ok(Self {
            address: Address::read(url)?,
        })
    }
}

impl Service for Discord {
    fn kind(&self) -> &'static str {
        "discord"
    }

    /// Five within two seconds, as its headers say.
    fn rate(&self) -> Option<Rate> {
        Some(Rate::of(5, 2000))
    }

    fn request(&self, letter: &Letter, _: SystemTime) -> Result<(Address, Post), Failure> {
        let text = letter.text(TEXT);
        let marked = MARKUP.of(&text);
        // Backslashes may make it too long; cut, a block of code would have no end.
        let content = if marked.encode_utf16().count() <= UNITS {
            marked
        } else {
            cut(&plain(&text), MOST)
        };
        let document = json!({"content": content, "allowed_mentions": {"parse": []}});
        Ok((self.address.clone(), Post::json(&document)))
    }

    /// `{"message": "You are being rate limited.", "retry_after": 0.52, "global": false}`
    fn wait(&self, answer: &[u8]) -> Option<Duration> {
        let answer: Value = serde_json::from_slice(answer).ok()?;
        seconds(answer.get("retry_after"))
    }
}

/// The text without what Discord takes for markup: names may hold `_` and `*`.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if "\\*_~`|>#[]<".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook() -> Discord {
        Discord::new(&SecretRef::parse(
            "https://discord.com/api/webhooks/1/t0ken",
        ))
        .unwrap()
    }

    #[test]
    fn names_are_shown_as_they_are_and_call_nobody() {
        assert_eq!(plain("my_run *1* <@42>"), r"my\_run \*1\* \<@42\>");
        let mut letter = Letter::sample();
        letter.run.argv = vec!["训🎉_".repeat(10_000)];
        let (_, post) = hook().request(&letter, SystemTime::UNIX_EPOCH).unwrap();
        let sent: Value = serde_json::from_slice(&post.body).unwrap();
        let content = sent["content"].as_str().unwrap();
        assert!(content.encode_utf16().count() <= 2000);
        assert_eq!(sent["allowed_mentions"], json!({"parse": []}));
    }

    #[test]
    fn its_own_field_says_when_to_come_back() {
        let wait = |body: &str| hook().wait(body.as_bytes());
        assert_eq!(
            wait(r#"{"retry_after": 0.5}"#),
            Some(Duration::from_millis(500))
        );
        assert_eq!(wait(r#"{"retry_after": -1}"#), None);
        assert_eq!(wait("<html>"), None);
    }
}
