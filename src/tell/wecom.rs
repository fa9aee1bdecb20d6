//! WeCom (企业微信): a group robot.
//!
//! Owns what its answers mean: a message can be refused with HTTP 200. The key in the address is
//! its only secret.

use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::model::SecretRef;

use super::cut::Budget;
use super::failure::Failure;
use super::http::{Address, Post};
use super::letter::Letter;
use super::service::{Refusal, SOON, Service, by_code};
use super::turns::Rate;

/// A text takes 2,048 bytes.
const MOST: Budget = Budget::Bytes(2048);

/// Codes of refusals, what they mean, and whether the message may pass later.
const REFUSALS: [Refusal; 3] = [
    Refusal {
        code: -1,
        means: "it is busy",
        later: SOON,
    },
    Refusal {
        code: 45_009,
        means: "more than 20 messages a minute",
        later: Some(Duration::from_secs(60)),
    },
    Refusal {
        code: 93_000,
        means: "there is no such robot: check the key in its address",
        later: None,
    },
];

/// One robot.
#[derive(Debug)]
pub struct WeCom {
    address: Address,
}

impl WeCom {
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

impl Service for WeCom {
    fn kind(&self) -> &'static str {
        "wecom"
    }

    /// Twenty a minute.
    fn rate(&self) -> Option<Rate> {
        Some(Rate::of(20, 60_000))
    }

    fn request(&self, letter: &Letter, _: SystemTime) -> Result<(Address, Post), Failure> {
        let document = json!({"msgtype": "text", "text": {"content": letter.text(MOST)}});
        Ok((self.address.clone(), Post::json(&document)))
    }

    fn accepted(&self, answer: &[u8]) -> Result<(), Failure> {
        by_code("WeCom", answer, &["errcode"], &REFUSALS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_by_its_bytes() {
        let robot =
            WeCom::new(&SecretRef::parse("https://qyapi.weixin.qq.com/x?key=t0ken")).unwrap();
        let mut letter = Letter::sample();
        letter.alert.stacks = vec!["训练".repeat(100); 20];
        let (_, post) = robot.request(&letter, SystemTime::UNIX_EPOCH).unwrap();
        let sent: serde_json::Value = serde_json::from_slice(&post.body).unwrap();
        let content = sent["text"]["content"].as_str().unwrap();
        assert!(
            content.len() <= 2048 && content.len() > 1900,
            "{}",
            content.len()
        );
        assert!(robot.accepted(br#"{"errcode":93000}"#).is_err());
        assert!(robot.accepted(br#"{"errcode":0}"#).is_ok());
    }
}
