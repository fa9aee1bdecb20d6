//! HTTP as hooks need it: one POST, bounded, that tells whether trying again makes sense.
//!
//! Owns timeouts, redirects, and what answers mean. An error never
//! holds more of an address than its scheme and host, and nothing of what the server said: it
//! could repeat what it was sent.

use std::cell::OnceCell;
use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};

use crate::model::Hidden;

pub use super::address::{Address, is_loopback};
use super::failure::Failure;

/// Time for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Time for the whole exchange.
const WHOLE: Duration = Duration::from_secs(10);
/// What is read of an answer's body, and for how long; the ones that matter have a hundred bytes.
const ANSWER: usize = 64 * 1024;
const BODY: Duration = Duration::from_secs(2);
/// Redirects that are followed.
const HOPS: usize = 3;
/// Nobody is believed who says "come back later than this".
pub const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// What is posted.
#[derive(Debug)]
pub struct Post {
    /// The type of the body.
    pub content_type: &'static str,
    /// Headers that anybody may see.
    pub headers: HeaderMap,
    /// Headers that only the address itself may see; they win over the others.
    pub own: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Post {
    /// A JSON document.
    pub fn json(document: &serde_json::Value) -> Self {
        Self {
            content_type: "application/json",
            headers: HeaderMap::new(),
            own: HeaderMap::new(),
            body: document.to_string().into_bytes(),
        }
    }
}

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The beginning of its body.
    pub body: Vec<u8>,
    /// Whether that is as much as is read of it.
    pub is_whole: bool,
}

/// Clients, made when they are first needed.
#[derive(Debug, Default)]
pub struct Http {
    direct: OnceCell<Result<Client, String>>,
    outside: OnceCell<Result<Client, String>>,
}

impl Http {
    /// Posts, and returns what is answered, whatever it is.
    ///
    /// # Errors
    /// Why there is no answer, and whether trying again makes sense.
    pub async fn post(&self, address: &Address, post: &Post) -> Result<Answer, Failure> {
        let exchange = async {
            let response = self.follow(address, post).await?;
            let (status, headers) = (response.status(), response.headers().clone());
            let (body, is_whole) = head_of(response).await;
            Ok(Answer {
                status,
                headers,
                body,
                is_whole,
            })
        };
        match tokio::time::timeout(WHOLE, exchange).await {
            Ok(result) => result,
            Err(_) => Err(Failure::later(format!(
                "{address} did not answer within {} s",
                WHOLE.as_secs()
            ))),
        }
    }

    /// Follows the redirects that keep the body; every other one is an answer.
    async fn follow(&self, address: &Address, post: &Post) -> Result<Response, Failure> {
        let mut at = address.clone();
        let mut hops = 0;
        loop {
            let response = self.once(&at, post, at.origin_differs(address)).await?;
            let keeps = matches!(
                response.status(),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            if !keeps {
                return Ok(response);
            }
            hops += 1;
            let next = response
                .headers()
                .get(LOCATION)
                .and_then(|to| to.to_str().ok())
                .and_then(|to| at.url().join(to).ok())
                .filter(|to| matches!(to.scheme(), "http" | "https") && to.has_host());
            let downgrade = |to: &Url| !at.is_plain() && to.scheme() == "http";
            match next {
                Some(to) if hops <= HOPS && !downgrade(&to) => at = Address::at(to),
                _ => {
                    return Err(Failure::never(format!(
                        "{address} redirects to nowhere that can be used: correct the address"
                    )));
                }
            }
        }
    }

    async fn once(&self, at: &Address, post: &Post, abroad: bool) -> Result<Response, Failure> {
        let client = self.client(at).map_err(Failure::never)?;
        let mut headers = post.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(post.content_type));
        if !abroad {
            for (name, value) in &post.own {
                headers.insert(name, value.clone());
            }
        }
        client
            .post(at.url().clone())
            .headers(headers)
            .body(post.body.clone())
            .send()
            .await
            .map_err(|error| Failure::later(format!("{at}: {}", why(&error))))
    }

    fn client(&self, at: &Address) -> Result<&Client, String> {
        let (cell, direct) = if at.is_loopback() {
            (&self.direct, true)
        } else {
            (&self.outside, false)
        };
        cell.get_or_init(|| build(direct, at.is_plain()))
            .as_ref()
            .map_err(Clone::clone)
    }
}

fn build(direct: bool, plain: bool) -> Result<Client, String> {
    use_ring();
    let builder = || {
        let builder = Client::builder()
            .user_agent(concat!("gpuwatch/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .timeout(WHOLE)
            .referer(false)
            .pool_max_idle_per_host(1);
        if direct { builder.no_proxy() } else { builder }
    };
    let made = builder().build();
    match made {
        Ok(client) => Ok(client),
        // A machine without certificates can still reach what needs none.
        Err(_) if plain => builder()
            .tls_certs_only([])
            .build()
            .map_err(|_| NO_CLIENT.to_owned()),
        Err(_) => Err(NO_CLIENT.to_owned()),
    }
}

const NO_CLIENT: &str =
    "TLS can't be set up: install the system's CA certificates (the package ca-certificates)";

/// Which implementation of cryptography TLS uses: without this it panics.
pub fn use_ring() {
    // It is an error to have done it before, and that is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The beginning of an answer's body, as far as it comes in time, and whether that is all: the
/// status has said already what became of the message, and another try would say it twice.
async fn head_of(mut response: Response) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    let reads = async {
        while let Some(chunk) = response.chunk().await.ok()? {
            body.extend_from_slice(&chunk);
            if body.len() >= ANSWER {
                body.truncate(ANSWER);
                break;
            }
        }
        Some(())
    };
    let came = tokio::time::timeout(BODY, reads).await;
    (body, matches!(came, Ok(Some(()))))
}

/// What a status means.
///
/// # Errors
/// It isn't a good one; whether trying again makes sense, and not before when.
pub fn judge(address: &Address, answer: &Answer) -> Result<(), Failure> {
    let (status, headers) = (answer.status, &answer.headers);
    if status.is_success() {
        return Ok(());
    }
    let code = status.as_u16();
    let said = |what: &str| format!("{address} answered {code}{what}");
    Err(match code {
        410 => Failure::closed(said(": it is gone for good; take it out of the profile")),
        300..=399 => Failure::never(said(
            ", a redirect that would lose the message: correct the address",
        )),
        401 | 403 => Failure::never(said(": it doesn't accept us; check its address and secret")),
        404 => Failure::never(said(": there is nothing at this address; check it")),
        408 | 425 | 429 | 500..=599 => {
            let wait = headers.get(RETRY_AFTER).and_then(|value| {
                let value = value.to_str().ok()?;
                retry_after(value, SystemTime::now())
            });
            let failure = Failure::later(said(""));
            match wait {
                Some(wait) => failure.not_before(wait),
                None => failure,
            }
        }
        _ => Failure::never(said("")),
    })
}

/// `Retry-After`: seconds (a fraction, too) or a date; what can't be meant is cut to
/// [`LONGEST_WAIT`] or ignored.
pub fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        if !seconds.is_finite() || seconds < 0.0 {
            return None;
        }
        return Some(Duration::from_secs_f64(
            seconds.min(LONGEST_WAIT.as_secs_f64()),
        ));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let wait = date.duration_since(now).unwrap_or_default();
    Some(wait.min(LONGEST_WAIT))
}

/// What went wrong, without the address that the error would print.
fn why(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let words = if error.is_connect() {
        "can't connect"
    } else {
        "the connection broke"
    };
    root_of(error).unwrap_or_else(|| words.to_owned())
}

/// What the network or TLS said, far below an error; never what the other side said.
pub fn root_of(error: &dyn std::error::Error) -> Option<String> {
    let mut words = None;
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<rustls::Error>() {
            return Some(BAD_TLS.to_owned());
        }
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            words = Some(io_words(io));
        }
        source = cause.source();
    }
    words
}

const BAD_TLS: &str = "its certificate can't be trusted, or TLS failed (trusted are the CAs of the system, or those in the file that SSL_CERT_FILE names)";

/// An I/O error may wrap another one, or one of TLS, which its `source` doesn't show.
fn io_words(io: &std::io::Error) -> String {
    let Some(inner) = io.get_ref() else {
        return io.kind().to_string();
    };
    if inner.is::<rustls::Error>() {
        return BAD_TLS.to_owned();
    }
    if let Some(inner) = inner.downcast_ref::<std::io::Error>() {
        return io_words(inner);
    }
    if io.to_string().starts_with("failed to lookup address") {
        return "its name can't be resolved".to_owned();
    }
    io.kind().to_string()
}

/// A header of a profile.
///
/// # Errors
/// Its name or value can't be sent, without repeating the value.
pub fn header(name: &str, value: &Hidden) -> Result<(HeaderName, HeaderValue), String> {
    const OURS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .ok()
        .filter(|n| !OURS.contains(&n.as_str()) && !n.as_str().starts_with("webhook-"))
        .ok_or_else(|| format!("the header '{name}' can't be set: use another name"))?;
    let mut value = Some(value.expose())
        .filter(|value| value.is_ascii())
        .and_then(|value| HeaderValue::from_str(value).ok())
        .ok_or_else(|| format!("the value of the header '{name}' is not plain ASCII"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_times_are_believed_within_reason() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let wait = |text| retry_after(text, now);
        assert_eq!(wait("2"), Some(Duration::from_secs(2)));
        assert_eq!(wait(" 0.4 "), Some(Duration::from_millis(400)));
        assert_eq!(wait("999999"), Some(LONGEST_WAIT));
        assert_eq!(wait("1e300"), Some(LONGEST_WAIT));
        let later = httpdate::fmt_http_date(now + Duration::from_secs(7));
        assert_eq!(wait(&later), Some(Duration::from_secs(7)));
        let before = httpdate::fmt_http_date(now - Duration::from_secs(7));
        assert_eq!(wait(&before), Some(Duration::ZERO));
        for nonsense in ["", "-3", "soon", "NaN", "inf"] {
            assert_eq!(wait(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn headers_are_checked_and_never_shown() {
        let hidden = Hidden::new("Bearer t0ken");
        let (_, value) = header("Authorization", &hidden).unwrap();
        assert!(!format!("{value:?}").contains("t0ken"));
        for name in ["Host", "webhook-id", "a b", ""] {
            assert!(header(name, &hidden).is_err(), "{name}");
        }
        let said = header("X-Key", &Hidden::new("t0kén")).unwrap_err();
        assert!(!said.contains("t0k"), "{said}");
    }
}
