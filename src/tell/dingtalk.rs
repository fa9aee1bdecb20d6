//! DingTalk (钉钉): a custom robot, signed where it has a secret.
//!
//! Owns what its answers mean: a message can be refused with HTTP 200.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::model::{Hidden, SecretRef};

use super::cut::Budget;
use super::failure::Failure;
use super::http::{Address, Post};
use super::letter::Letter;
use super::secrets;
use super::service::{Refusal, SOON, Service, by_code, unix};
use super::turns::Rate;
use super::webhook::hmac_sha256;

/// DingTalk takes 20 kB; JSON may need two bytes for one of ours.
const MOST: Budget = Budget::Bytes(9000);
/// After more than 20 messages a minute it takes none for ten.
const PENALTY: Option<Duration> = Some(Duration::from_secs(600));

/// Codes of refusals, what they mean, and whether the message may pass later.
const REFUSALS: [Refusal; 6] = [
    Refusal {
        code: -1,
        means: "it is busy",
        later: SOON,
    },
    Refusal {
        code: 130_101,
        means: "more than 20 messages a minute",
        later: PENALTY,
    },
    Refusal {
        code: 410_100,
        means: "more than 20 messages a minute",
        later: PENALTY,
    },
    Refusal {
        code: 310_000,
        means: "its security settings refuse us: the keyword (add 'gpuwatch'), the signature (its secret, this machine's clock within an hour), or the address",
        later: None,
    },
    Refusal {
        code: 300_001,
        means: "there is no such robot: check its access_token",
        later: None,
    },
    Refusal {
        code: 300_005,
        means: "there is no such robot: check its access_token",
        later: None,
    },
];

/// One robot.
#[derive(Debug)]
pub struct DingTalk {
    address: Address,
    secret: Option<Hidden>,
}

impl DingTalk {
    /// Reads its address and secret.
    ///
    /// # Errors
    /// They can't be used, without repeating them.
    pub fn new(url: &SecretRef, secret: Option<&SecretRef>) -> Result<Self, String> {
        let secret = secret.map(|s| secrets::read(s).map_err(|e| e.to_string()));
        Ok(Self {
            address: Address::read(url)?,
            secret: secret.transpose()?,
        })
    }

    /// `timestamp` in milliseconds, and what it signs: both stand in the address.
    fn signed(&self, now: SystemTime) -> Address {
        let Some(secret) = &self.secret else {
            return self.address.clone();
        };
        let ms = unix(now).as_millis().to_string();
        let content = Hidden::new(format!("{ms}\n{}", secret.expose()));
        let sign = hmac_sha256(secret.expose().as_bytes(), content.expose().as_bytes());
        self.address
            .with_query(&[("timestamp", &ms), ("sign", &STANDARD.encode(sign))])
    }
}

impl Service for DingTalk {
    fn kind(&self) -> &'static str {
        "dingtalk"
    }

    /// Twenty a minute, or it takes none for ten.
    fn rate(&self) -> Option<Rate> {
        Some(Rate::of(20, 60_000))
    }

    fn request(&self, letter: &Letter, now: SystemTime) -> Result<(Address, Post), Failure> {
        // The robot's keyword may be our name.
        let content = format!("[gpuwatch] {}", letter.text(MOST));
        let document = json!({"msgtype": "text", "text": {"content": content}});
        Ok((self.signed(now), Post::json(&document)))
    }

    fn accepted(&self, answer: &[u8]) -> Result<(), Failure> {
        by_code("DingTalk", answer, &["errcode"], &REFUSALS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tell::failure::Next;

    #[test]
    fn the_address_is_signed_as_the_service_does() {
        // As the service's documentation computes it in Python:
        // quote_plus(b64encode(hmac.new(secret, f"{ts}\n{secret}".encode(), sha256).digest()))
        let robot = DingTalk::new(
            &SecretRef::parse("https://oapi.dingtalk.com/robot/send?access_token=t0ken"),
            Some(&SecretRef::parse("SECs3cret")),
        )
        .unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_577_262_236_757);
        let (address, post) = robot.request(&Letter::sample(), now).unwrap();
        let query = address.url().query().unwrap();
        assert!(
            query.starts_with("access_token=t0ken&timestamp=1577262236757&sign="),
            "{query}"
        );
        assert_eq!(
            query.rsplit_once("sign=").unwrap().1,
            "KVL4vQXRf77shxtb8pDtypGcbMxeQN3WGBRqMAaMrnA%3D"
        );
        let shown = format!("{robot:?}{address}{}", String::from_utf8_lossy(&post.body));
        assert!(!shown.contains("s3cret") && !shown.contains("t0ken"));
    }

    #[test]
    fn a_refusal_comes_with_200() {
        let robot = DingTalk::new(&SecretRef::parse("https://oapi.dingtalk.com/x"), None).unwrap();
        assert_eq!(robot.accepted(br#"{"errcode":0,"errmsg":"ok"}"#), Ok(()));
        let busy = robot.accepted(br#"{"errcode":130101}"#).unwrap_err();
        assert_eq!(busy.next, Next::Later(PENALTY));
        let keyword = robot.accepted(br#"{"errcode":310000}"#).unwrap_err();
        assert!(keyword.why.contains("keyword") && keyword.next == Next::Never);
    }
}
