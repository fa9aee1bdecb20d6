//! Slack: an incoming webhook.

use std::time::SystemTime;

use serde_json::json;

use crate::model::SecretRef;

use super::cut::Budget;
use super::failure::Failure;
use super::http::{Address, Post};
use super::letter::Letter;
use super::markup::{Markup, inside_code};
use super::service::Service;
use super::turns::Rate;

/// A block of Slack takes so many characters.
const MOST: Budget = Budget::Chars(3000);

/// Slack's own markup.
const MARKUP: Markup = Markup {
    bold: "*",
    escape,
    code: |text| escape(&inside_code(text)),
};

/// One channel of Slack.
#[derive(Debug)]
pub struct Slack {
    address: Address,
}

impl Slack {
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

impl Service for Slack {
    fn kind(&self) -> &'static str {
        "slack"
    }

    /// One a second.
    fn rate(&self) -> Option<Rate> {
        Some(Rate::of(1, 1000))
    }

    fn request(&self, letter: &Letter, _: SystemTime) -> Result<(Address, Post), Failure> {
        let post = Post::json(&json!({"text": MARKUP.of(&letter.text(MOST))}));
        Ok((self.address.clone(), post))
    }
}

/// The three characters that Slack gives a meaning; without this a run's name could call
/// everybody (`<!channel>`).
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_called() {
        assert_eq!(
            escape("<!channel> a && b"),
            "&lt;!channel&gt; a &amp;&amp; b"
        );
    }
}
