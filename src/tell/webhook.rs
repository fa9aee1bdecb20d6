//! The generic webhook: Standard Webhooks, or a body that the user's template makes.
//!
//! Owns ids, signatures and templates. The id of a message is the same on every try, so that a
//! receiver can tell a repetition.

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use minijinja::value::{Serde, Value, ValueKind};
use minijinja::{Environment, Output, State, UndefinedBehavior};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use sha2::Sha256;

use crate::model::{Hidden, Webhook as Settings};

use super::failure::Failure;
use super::http::{self, Address, Post};
use super::letter::Letter;
use super::payload::payload;
use super::secrets;
use super::service::{Service, unix};

/// The most that a template may make, bytes.
const RENDERED: usize = 256 * 1024;
/// Steps that a template may take.
const FUEL: u64 = 500_000;
/// The template's name inside the engine.
const TEMPLATE: &str = "body";

/// One webhook, ready to send.
#[derive(Debug)]
pub struct Webhook {
    address: Address,
    key: Option<Key>,
    headers: HeaderMap,
    template: Option<Template>,
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
        Ok(Self {
            address,
            key: key.transpose()?,
            headers,
            template: settings
                .template
                .as_deref()
                .map(Template::new)
                .transpose()?,
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
        let document = payload(&letter.alert, &letter.run);
        let (body, content_type) = match &self.template {
            None => (document.to_string(), "application/json"),
            Some(template) => {
                let body = template.render(letter).map_err(Failure::never)?;
                (body, template.content_type())
            }
        };
        let post = Post {
            content_type,
            headers: self.standard(letter, &body, now),
            own: self.headers.clone(),
            body: body.into_bytes(),
        };
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

/// A user's template. It sees `type`, `timestamp` and `data` of the standard payload, and the
/// texts for people as `title` and `text`.
///
/// A template that begins with `{` or `[` makes JSON: what it puts in is escaped, so that
/// `{"text": "{{ title }}"}` is right whatever a run is called.
#[derive(Debug)]
struct Template {
    engine: Environment<'static>,
    json: bool,
}

impl Template {
    fn new(source: &str) -> Result<Self, String> {
        let start = source.trim_start();
        let is_tag = ["{{", "{%", "{#"].iter().any(|tag| start.starts_with(tag));
        let json = start.starts_with(['{', '[']) && !is_tag;
        let mut engine = Environment::new();
        engine.set_fuel(Some(FUEL));
        engine.set_undefined_behavior(UndefinedBehavior::Chainable);
        if json {
            engine.set_formatter(put_json);
        }
        engine
            .add_template_owned(TEMPLATE, source.to_owned())
            .map_err(|e| wrong(&e))?;
        let template = Self { engine, json };
        template.render(&Letter::sample())?;
        Ok(template)
    }

    fn content_type(&self) -> &'static str {
        if self.json {
            "application/json"
        } else {
            "text/plain; charset=utf-8"
        }
    }

    fn render(&self, letter: &Letter) -> Result<String, String> {
        let mut context = payload(&letter.alert, &letter.run);
        if let Some(context) = context.as_object_mut() {
            context.insert("title".to_owned(), json!(letter.title()));
            context.insert("text".to_owned(), json!(letter.body()));
        }
        let body = self
            .engine
            .get_template(TEMPLATE)
            .and_then(|template| template.render(Serde(&context)))
            .map_err(|e| wrong(&e))?;
        if body.len() > RENDERED {
            return Err("its template makes more than 256 KiB".to_owned());
        }
        if self.json && serde_json::from_str::<serde::de::IgnoredAny>(&body).is_err() {
            return Err(
                "its template begins like JSON, and what it makes is not valid JSON".to_owned(),
            );
        }
        Ok(body)
    }
}

fn wrong(error: &minijinja::Error) -> String {
    let line = error
        .line()
        .map_or_else(String::new, |n| format!(", line {n}"));
    format!("its template is wrong{line}: {}", error.kind())
}

/// Puts a value into JSON: text without its quotes, which the template writes.
fn put_json(
    out: &mut Output<'_>,
    _: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), minijinja::Error> {
    let encoded = serde_json::to_string(value).unwrap_or_default();
    let text = match value.kind() {
        // What `tojson` made is JSON already.
        _ if value.is_safe() => value.to_string(),
        ValueKind::Undefined => String::new(),
        ValueKind::String => encoded.trim_matches('"').to_owned(),
        _ => encoded,
    };
    out.write_str(&text).map_err(minijinja::Error::from)
}
