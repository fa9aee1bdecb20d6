//! The generic webhook: Standard Webhooks, or a body that the user's template makes.
//!
//! Owns ids and signatures. The id of a message is the same on every try, so that a
//! receiver can tell a repetition.

use std::collections::BTreeMap;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

use crate::model::{Hidden, MASK, Webhook as Settings};

use super::failure::Failure;
use super::http::{self, Address, Post};
use super::letter::Letter;
use super::payload::payload;
use super::secrets;
use super::service::{Service, unix};
use super::template::{Shape, Template, context};

/// One webhook, ready to send.
#[derive(Debug)]
pub struct Webhook {
    address: Address,
    key: Option<Key>,
    headers: HeaderMap,
    body: Option<Body>,
}

/// A body of the user's own.
#[derive(Debug)]
struct Body {
    template: Template,
    /// What it may name as `secrets.NAME`.
    secrets: BTreeMap<String, Hidden>,
}

impl Body {
    fn new(source: &str, secrets: BTreeMap<String, Hidden>) -> Result<Self, String> {
        let template = Template::new(source, Shape::of_body(source))?;
        let body = Self { template, secrets };
        body.render(&Letter::sample(), Hidden::expose)?;
        Ok(body)
    }

    /// `show` says how secrets are written.
    fn render(&self, letter: &Letter, show: impl Fn(&Hidden) -> &str) -> Result<String, String> {
        let secrets = self.secrets.iter();
        let secrets = secrets.map(|(name, secret)| (name.as_str(), show(secret)));
        let context = context(letter, self.template.shape(), &secrets.collect());
        self.template.render(&context)
    }
}

impl Webhook {
    /// Reads its secrets and tries its template.
    ///
    /// # Errors
    /// The first thing that is wrong, without any secret.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        let read = |secret| secrets::read(secret).map_err(|e| e.to_string());
        let address = Address::parse(&read(&settings.url)?)?;
        let key = settings
            .secret
            .as_ref()
            .map(|secret| Key::new(&read(secret)?));
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let (name, value) = http::header(name, &read(value)?)?;
            headers.insert(name, value);
        }
        let own = settings.secrets.iter();
        let own = own.map(|(name, secret)| Ok((name.clone(), read(secret)?)));
        let own: BTreeMap<_, _> = own.collect::<Result<_, String>>()?;
        let body = settings.template.as_deref();
        Ok(Self {
            address,
            key: key.transpose()?,
            headers,
            body: body.map(|source| Body::new(source, own)).transpose()?,
        })
    }

    /// Tries its template, without reading a secret.
    ///
    /// # Errors
    /// It can't be used.
    pub fn check_template(settings: &Settings) -> Result<(), String> {
        let names = settings.secrets.keys();
        let masked = names
            .map(|name| (name.clone(), Hidden::new(MASK)))
            .collect();
        let source = settings.template.as_deref();
        source.map_or(Ok(()), |source| Body::new(source, masked).map(drop))
    }

    fn post(
        &self,
        letter: &Letter,
        now: SystemTime,
        show: impl Fn(&Hidden) -> &str,
    ) -> Result<Post, Failure> {
        let (body, content_type) = match &self.body {
            None => {
                let document = payload(&letter.alert, &letter.run);
                (document.to_string(), "application/json")
            }
            Some(own) => {
                let body = own.render(letter, show).map_err(Failure::never)?;
                (body, own.template.content_type())
            }
        };
        Ok(Post {
            content_type,
            headers: self.standard(letter, &body, now),
            own: self.headers.clone(),
            body: body.into_bytes(),
        })
    }

    /// `webhook-id`, `webhook-timestamp` (of this try) and `webhook-signature`.
    fn standard(&self, letter: &Letter, body: &str, now: SystemTime) -> HeaderMap {
        let timestamp = unix(now).as_secs().to_string();
        let signed = self.key.as_ref().map(|key| {
            let content = format!("{}.{timestamp}.{body}", letter.id);
            format!("v1,{}", STANDARD.encode(key.sign(content.as_bytes())))
        });
        let all = [
            ("webhook-id", Some(letter.id.clone())),
            ("webhook-timestamp", Some(timestamp)),
            ("webhook-signature", signed),
        ];
        all.into_iter()
            .filter_map(|(name, value)| {
                let value = HeaderValue::from_str(&value?).ok()?;
                Some((HeaderName::from_static(name), value))
            })
            .collect()
    }
}

impl Service for Webhook {
    fn kind(&self) -> &'static str {
        "webhook"
    }

    fn request(&self, letter: &Letter, now: SystemTime) -> Result<(Address, Post), Failure> {
        let post = self.post(letter, now, Hidden::expose)?;
        Ok((self.address.clone(), post))
    }

    fn preview(&self, letter: &Letter, now: SystemTime) -> Result<(Address, Post), Failure> {
        let post = self.post(letter, now, |_| MASK)?;
        Ok((self.address.clone(), post))
    }
}

/// A key to sign with.
pub struct Key(Vec<u8>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl Key {
    /// `whsec_<base64>`, or any text.
    fn new(secret: &Hidden) -> Result<Self, String> {
        let text = secret.expose();
        let Some(encoded) = text.strip_prefix("whsec_") else {
            return Ok(Self(text.as_bytes().to_vec()));
        };
        match STANDARD.decode(encoded) {
            Ok(key) if !key.is_empty() => Ok(Self(key)),
            _ => Err("its secret begins with whsec_, and what follows is not base64".to_owned()),
        }
    }

    fn sign(&self, content: &[u8]) -> Vec<u8> {
        hmac_sha256(&self.0, content)
    }
}

/// HMAC-SHA256; every length of key will do.
pub fn hmac_sha256(key: &[u8], content: &[u8]) -> Vec<u8> {
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mut mac) => {
            mac.update(content);
            mac.finalize().into_bytes().to_vec()
        }
        // HMAC takes keys of any length.
        Err(_) => Vec::new(),
    }
}
