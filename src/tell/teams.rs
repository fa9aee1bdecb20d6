//! Microsoft Teams: a workflow that is started by a webhook, with an Adaptive Card.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::model::{SecretRef, Severity};

use super::alert::State;
use super::cut::{Budget, cut};
use super::failure::Failure;
use super::http::{Address, Post};
use super::letter::Letter;
use super::service::Service;
use super::turns::Rate;

/// A card takes about 28 KB, 21 KB were measured; each line costs some hundred bytes besides.
const MOST: Budget = Budget::Bytes(6000);
/// So many lines have a place of their own.
const LINES: usize = 60;

/// One workflow.
#[derive(Debug)]
pub struct Teams {
    address: Address,
}

impl Teams {
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

impl Service for Teams {
    fn kind(&self) -> &'static str {
        "teams"
    }

    /// Above four a second it throttles.
    fn rate(&self) -> Option<Rate> {
        Some(Rate::of(4, 1000))
    }

    fn request(&self, letter: &Letter, _: SystemTime) -> Result<(Address, Post), Failure> {
        Ok((self.address.clone(), Post::json(&message(letter))))
    }

    /// Older connectors answer 200 and name the real status in words.
    fn accepted(&self, answer: &[u8]) -> Result<(), Failure> {
        let said = String::from_utf8_lossy(answer);
        if !said.contains("HTTP error") && !said.contains("delivery failed") {
            return Ok(());
        }
        Err(if said.contains("429") {
            Failure::later("Teams refused: too many messages").not_before(Duration::from_secs(10))
        } else {
            Failure::never("Teams refused the message: check the workflow")
        })
    }
}

fn message(letter: &Letter) -> Value {
    let colour = match (letter.alert.state, letter.alert.severity) {
        (State::Cleared, _) => "Good",
        (_, Severity::Critical) => "Attention",
        (_, Severity::Warning) => "Warning",
        (_, Severity::Note) => "Default",
    };
    let title = json!({
        "type": "TextBlock", "text": plain(&letter.title()), "wrap": true,
        "weight": "Bolder", "size": "Medium", "color": colour,
    });
    let body = cut(&letter.body(), MOST);
    let lines: Vec<&str> = body.split('\n').collect();
    let (own, rest) = lines.split_at(lines.len().min(LINES));
    // What has no place of its own is one block.
    let rest = (!rest.is_empty()).then(|| rest.join(" / "));
    let block = |text: &str| json!({"type": "TextBlock", "text": plain(text), "wrap": true, "spacing": "None"});
    let blocks = std::iter::once(title)
        .chain(own.iter().map(|line| block(line)))
        .chain(rest.as_deref().map(block));
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": blocks.collect::<Vec<_>>(),
                "msteams": {"width": "Full"},
            },
        }],
    })
}

/// The text without what a card takes for markup: links, emphasis, lists, dates in `{{ }}`.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '{' => out.push_str("{\u{200b}"),
            '*' | '_' | '[' | ']' | '\\' | '`' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_a_title_a_colour_and_a_line_each() {
        let letter = Letter::sample();
        let sent = message(&letter);
        let body = sent["attachments"][0]["content"]["body"]
            .as_array()
            .unwrap();
        assert_eq!(body[0]["color"], "Warning");
        assert_eq!(body.len(), 1 + letter.body().lines().count());
        let mut giant = letter;
        giant.alert.stacks = vec!["训\"\\_".repeat(2000); 500];
        let size = message(&giant).to_string().len();
        assert!(size < 21_000, "{size}");
    }

    #[test]
    fn an_old_connector_refuses_with_200() {
        let hook = Teams::new(&SecretRef::parse("https://x.webhook.office.com/t0ken")).unwrap();
        assert!(hook.accepted(b"1").is_ok() && hook.accepted(b"").is_ok());
        let said = "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId";
        let refused = hook.accepted(said.as_bytes()).unwrap_err();
        assert_ne!(refused, Failure::never(refused.why.clone()));
    }
}
