//! Slack: an incoming webhook.

use serde_json::json;

use crate::model::SecretRef;

use super::cut::Budget;
use super::failure::Failure;
use super::http::{Address, Http, Post};
use super::letter::Letter;
use super::secrets;

/// A block of Slack takes so many characters.
const MOST: Budget = Budget::Chars(3000);

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
        let url = secrets::read(url).map_err(|e| e.to_string())?;
        Ok(Self {
            address: Address::parse(&url)?,
        })
    }

    /// Sends one message.
    ///
    /// # Errors
    /// It did not arrive.
    pub async fn send(&self, http: &Http, letter: &Letter) -> Result<(), Failure> {
        let post = Post::json(&json!({"text": escape(&letter.text(MOST))}));
        http.post(&self.address, &post).await.map(drop)
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
