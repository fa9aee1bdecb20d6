//! Telegram: a bot that writes to a chat.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::model::{Hidden, SecretRef, Severity};

use super::cut::Budget;
use super::failure::Failure;
use super::http::{Address, Post};
use super::letter::Letter;
use super::secrets;
use super::service::{Service, seconds};
use super::turns::Rate;

/// A message takes 4,096 characters, counted as UTF-16.
const MOST: Budget = Budget::Utf16(4096);

/// One bot and one chat.
#[derive(Debug)]
pub struct Telegram {
    address: Address,
    chat: String,
}

impl Telegram {
    /// Reads its token. `server` is `https://api.telegram.org`, or a server of one's own.
    ///
    /// # Errors
    /// They can't be used, without repeating them.
    pub fn new(server: &SecretRef, token: &SecretRef, chat: &str) -> Result<Self, String> {
        let token = secrets::read(token).map_err(|e| e.to_string())?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-:".contains(&b);
        if !token.expose().bytes().all(plain) {
            return Err("its token is no token of a bot, like 123456:ABC-def".to_owned());
        }
        let server = secrets::read(server).map_err(|e| e.to_string())?;
        let server = server.expose().trim_end_matches('/');
        let url = Hidden::new(format!("{server}/bot{}/sendMessage", token.expose()));
        Ok(Self {
            address: Address::parse(&url)?,
            chat: chat.to_owned(),
        })
    }
}

impl Service for Telegram {
    fn kind(&self) -> &'static str {
        "telegram"
    }

    /// One a second in a chat.
    fn rate(&self) -> Option<Rate> {
        Some(Rate::of(1, 1000))
    }

    fn request(&self, letter: &Letter, _: SystemTime) -> Result<(Address, Post), Failure> {
        // Without a parse mode nothing in the text is markup.
        let document = json!({
            "chat_id": self.chat,
            "text": letter.text(MOST),
            "disable_notification": letter.alert.severity == Severity::Note,
            "link_preview_options": {"is_disabled": true},
        });
        Ok((self.address.clone(), Post::json(&document)))
    }

    fn accepted(&self, answer: &[u8]) -> Result<(), Failure> {
        let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
        match answer.get("ok").and_then(Value::as_bool) {
            Some(true) => Ok(()),
            _ => Err(Failure::never(
                "it did not answer as Telegram does: check its address",
            )),
        }
    }

    /// `{"ok":false,"error_code":429,"parameters":{"retry_after":5}}`
    fn wait(&self, answer: &[u8]) -> Option<Duration> {
        let answer: Value = serde_json::from_slice(answer).ok()?;
        seconds(answer.pointer("/parameters/retry_after"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_a_part_of_the_address_and_is_not_shown() {
        let bot = |token: &str| {
            let server = SecretRef::parse("https://api.telegram.org/");
            Telegram::new(&server, &SecretRef::parse(token), "-100")
        };
        let made = bot("123:t0ken").unwrap();
        assert!(!format!("{made:?}").contains("t0ken"));
        let refused = bot("123:t0ken/../x").unwrap_err();
        assert!(!refused.contains("t0ken"));
        let wait = made.wait(br#"{"ok":false,"parameters":{"retry_after":7}}"#);
        assert_eq!(wait, Some(Duration::from_secs(7)));
        assert!(made.accepted(br#"{"ok":true,"result":{}}"#).is_ok());
        assert!(made.accepted(b"hello").is_err());
    }
}
