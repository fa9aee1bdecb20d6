//! Feishu and Lark: a custom bot, signed where it has a secret.
//!
//! Owns what its answers mean: a message can be refused with HTTP 200.

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::model::{Hidden, SecretRef};

use super::cut::Budget;
use super::failure::Failure;
use super::http::{Address, Post};
use super::letter::Letter;
use super::secrets;
use super::service::{Refusal, SOON, Service, by_code, unix};
use super::turns::Rate;
use super::webhook::hmac_sha256;

/// Feishu takes 20 kB; JSON may need two bytes for one of ours.
const MOST: Budget = Budget::Bytes(9000);

/// Codes of refusals, what they mean, and whether the message may pass later.
const REFUSALS: [Refusal; 5] = [
    Refusal {
        code: 9499,
        means: "too many messages, or a malformed one",
        later: SOON,
    },
    Refusal {
        code: 11232,
        means: "too many messages",
        later: SOON,
    },
    Refusal {
        code: 19021,
        means: "the signature doesn't match: check its secret and this machine's clock",
        later: None,
    },
    Refusal {
        code: 19022,
        means: "this machine's address is not on the bot's list",
        later: None,
    },
    Refusal {
        code: 19024,
        means: "the bot wants a keyword that the message doesn't have: add 'gpuwatch' to its keywords",
        later: None,
    },
];

/// One bot.
#[derive(Debug)]
pub struct Feishu {
    address: Address,
    secret: Option<Hidden>,
}

impl Feishu {
    /// Reads its address and secret.
    ///
    /// # Errors
    /// They can't be used, without repeating them.
    pub fn new(url: &SecretRef, secret: Option<&SecretRef>) -> Result<Self, String> {
        let read = |secret| secrets::read(secret).map_err(|e| e.to_string());
        Ok(Self {
            address: Address::parse(&read(url)?)?,
            secret: secret.map(read).transpose()?,
        })
    }

    fn document(&self, letter: &Letter, now_s: u64) -> Value {
        // The bot's keyword may be our name; a tag would call people.
        let text = format!("[gpuwatch] {}", letter.text(MOST)).replace("<at", "< at");
        let mut document = json!({"msg_type": "text", "content": {"text": text}});
        if let (Some(secret), Some(document)) = (&self.secret, document.as_object_mut()) {
            // The secret is a part of the key, and the message is empty.
            let key = Hidden::new(format!("{now_s}\n{}", secret.expose()));
            let sign = STANDARD.encode(hmac_sha256(key.expose().as_bytes(), b""));
            document.insert("timestamp".to_owned(), json!(now_s.to_string()));
            document.insert("sign".to_owned(), json!(sign));
        }
        document
    }
}

impl Service for Feishu {
    fn kind(&self) -> &'static str {
        "feishu"
    }

    /// Five a second (and a hundred a minute, which alerts never reach).
    fn rate(&self) -> Option<Rate> {
        Some(Rate::of(5, 1000))
    }

    fn request(&self, letter: &Letter, now: SystemTime) -> Result<(Address, Post), Failure> {
        let document = self.document(letter, unix(now).as_secs());
        Ok((self.address.clone(), Post::json(&document)))
    }

    /// `{"code": 0}`, or `{"StatusCode": 0}` as older bots say.
    fn accepted(&self, answer: &[u8]) -> Result<(), Failure> {
        by_code("Feishu", answer, &["code", "StatusCode"], &REFUSALS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bot() -> Feishu {
        Feishu::new(
            &SecretRef::parse("https://open.feishu.cn/open-apis/bot/v2/hook/t0ken"),
            Some(&SecretRef::parse("s3cret")),
        )
        .unwrap()
    }

    #[test]
    fn a_refusal_comes_with_200() {
        let judge = |answer: &[u8]| bot().accepted(answer);
        assert_eq!(judge(br#"{"code":0,"msg":"success"}"#), Ok(()));
        assert_eq!(judge(br#"{"StatusCode":0}"#), Ok(()));
        let said = judge(br#"{"code":19021,"msg":"echo t0ken"}"#).unwrap_err();
        assert!(said.why.contains("signature") && !said.why.contains("t0ken"));
        assert!(judge(b"<html>").is_err());
        let busy = judge(br#"{"code":11232}"#).unwrap_err();
        assert!(matches!(
            busy.next,
            super::super::failure::Next::Later(Some(_))
        ));
    }

    #[test]
    fn the_signature_is_the_services_own() {
        // As the service's documentation computes it in Python:
        // base64(hmac.new("1599360473\ns3cret".encode(), digestmod=sha256).digest())
        let document = bot().document(&Letter::sample(), 1_599_360_473);
        assert_eq!(document["timestamp"], "1599360473");
        assert_eq!(
            document["sign"],
            "QQHOl6fWr0/7EF26jw8goDL6Cc0vHLHZYLDituMJB4s="
        );
        assert!(!format!("{:?}{document}", bot()).contains("s3cret"));
        assert!(!format!("{:?}", bot()).contains("t0ken"));
    }
}
