//! Feishu and Lark: a custom bot, signed where it has a secret.
//!
//! Owns what its answers mean: a message can be refused with HTTP 200.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::model::{Hidden, SecretRef};

use super::cut::Budget;
use super::failure::Failure;
use super::http::{Address, Http, Post};
use super::letter::Letter;
use super::secrets;
use super::webhook::hmac_sha256;

/// Feishu takes 20 kB; JSON may need two bytes for one of ours.
const MOST: Budget = Budget::Bytes(9000);

/// Codes of refusals, what they mean, and whether the message may pass later.
const REFUSALS: [(i64, &str, bool); 5] = [
    (9499, "too many messages, or a malformed one", true),
    (11232, "too many messages", true),
    (
        19021,
        "the signature doesn't match: check its secret and this machine's clock",
        false,
    ),
    (
        19022,
        "this machine's address is not on the bot's list",
        false,
    ),
    (
        19024,
        "the bot wants a keyword that the message doesn't have: add 'gpuwatch' to its keywords",
        false,
    ),
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

    /// Sends one message.
    ///
    /// # Errors
    /// It did not arrive.
    pub async fn send(&self, http: &Http, letter: &Letter) -> Result<(), Failure> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let post = Post::json(&self.document(letter, now.map_or(0, |d| d.as_secs())));
        let answer = http.post(&self.address, &post).await?;
        judge(&answer)
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

/// `{"code": 0}`, or `{"StatusCode": 0}` as older bots say.
fn judge(answer: &[u8]) -> Result<(), Failure> {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let code = ["code", "StatusCode"]
        .iter()
        .find_map(|key| answer.get(key)?.as_i64());
    match code {
        Some(0) => Ok(()),
        None => Err(Failure::never(
            "it did not answer as a bot of Feishu does: check its address",
        )),
        Some(code) => match REFUSALS.iter().find(|(refusal, ..)| *refusal == code) {
            Some((_, what, true)) => Err(Failure::later(format!(
                "Feishu refused with code {code}: {what}"
            ))),
            Some((_, what, false)) => Err(Failure::never(format!(
                "Feishu refused with code {code}: {what}"
            ))),
            None => Err(Failure::never(format!("Feishu refused with code {code}"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_comes_with_200() {
        assert_eq!(judge(br#"{"code":0,"msg":"success"}"#), Ok(()));
        assert_eq!(judge(br#"{"StatusCode":0}"#), Ok(()));
        let said = judge(br#"{"code":19021,"msg":"echo t0ken"}"#).unwrap_err();
        assert!(said.why.contains("signature") && !said.why.contains("t0ken"));
        assert!(judge(b"<html>").is_err());
        let busy = judge(br#"{"code":11232}"#).unwrap_err();
        assert_eq!(busy, Failure::later(busy.why.clone()));
    }

    #[test]
    fn the_signature_is_the_services_own() {
        // As the service's documentation computes it in Python:
        // base64(hmac.new("1599360473\ns3cret".encode(), digestmod=sha256).digest())
        let bot = Feishu::new(
            &SecretRef::parse("https://open.feishu.cn/open-apis/bot/v2/hook/t0ken"),
            Some(&SecretRef::parse("s3cret")),
        )
        .unwrap();
        let document = bot.document(&Letter::sample(), 1_599_360_473);
        assert_eq!(document["timestamp"], "1599360473");
        assert_eq!(
            document["sign"],
            "QQHOl6fWr0/7EF26jw8goDL6Cc0vHLHZYLDituMJB4s="
        );
        assert!(!format!("{bot:?}{document}").contains("s3cret"));
        assert!(!format!("{bot:?}").contains("t0ken"));
    }
}
