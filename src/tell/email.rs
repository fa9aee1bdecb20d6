//! Electronic mail.
//!
//! Owns how a mail is put together and how the connection is secured: TLS from the start
//! (`smtps://`) or by STARTTLS (`smtp://`), which is required unless the server is this machine.

use std::time::Duration;

use lettre::message::{Mailbox, MultiPart};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use reqwest::Url;

use crate::model::{Hidden, SecretRef};

use super::cut::{Budget, cut};
use super::failure::Failure;
use super::http;
use super::letter::Letter;
use super::secrets;

/// Time for one answer of the server.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for the whole conversation.
const WHOLE: Duration = Duration::from_secs(15);
/// Nobody reads a longer mail.
const MOST: Budget = Budget::Bytes(100_000);

/// One sender and its receivers.
pub struct Email {
    url: Hidden,
    host: String,
    from: Mailbox,
    to: Vec<Mailbox>,
}

impl std::fmt::Debug for Email {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Email to {} by {}", self.to.len(), self.host)
    }
}

impl Email {
    /// Reads its address and checks the mailboxes.
    ///
    /// # Errors
    /// What can't be used, without the address.
    pub fn new(url: &SecretRef, from: &str, to: &[String]) -> Result<Self, String> {
        const WRONG: &str =
            "its url is not like smtps://user:password@host:465 or smtp://user:password@host:587";
        let mailbox = |text: &str| {
            text.parse::<Mailbox>()
                .map_err(|_| format!("'{text}' is not a mail address"))
        };
        let text = secrets::read(url).map_err(|e| e.to_string())?;
        let mut url = Url::parse(text.expose()).map_err(|_| WRONG)?;
        let host = url.host_str().ok_or(WRONG)?.to_owned();
        match url.scheme() {
            "smtps" => {}
            "smtp" => {
                let tls = if http::is_loopback(&url) {
                    "opportunistic"
                } else {
                    "required"
                };
                url.set_query(Some(&format!("tls={tls}")));
            }
            _ => return Err(WRONG.to_owned()),
        }
        let email = Self {
            url: Hidden::new(url.as_str()),
            host,
            from: mailbox(from)?,
            to: to.iter().map(|to| mailbox(to)).collect::<Result<_, _>>()?,
        };
        if email.to.is_empty() {
            return Err("it has no receivers".to_owned());
        }
        Ok(email)
    }

    /// Sends one message.
    ///
    /// # Errors
    /// It did not arrive.
    pub async fn send(&self, letter: &Letter) -> Result<(), Failure> {
        http::use_ring();
        let message = self
            .message(letter)
            .map_err(|_| Failure::never("the mail can't be put together"))?;
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(self.url.expose())
            .map_err(|_| Failure::never("TLS can't be set up, or its url is wrong"))?
            .timeout(Some(PATIENCE))
            .build();
        let sent = tokio::time::timeout(WHOLE, transport.send(message)).await;
        match sent {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.judge(&error)),
            Err(_) => Err(Failure::later(format!("{} took too long", self.host))),
        }
    }

    /// What would be sent, for people.
    pub fn preview(&self, letter: &Letter) -> String {
        match self.message(letter) {
            Ok(message) => {
                let mail = String::from_utf8_lossy(&message.formatted()).into_owned();
                format!("MAIL by {}\n{}", self.host, mail.trim_end())
            }
            Err(_) => "nothing: the mail can't be put together".to_owned(),
        }
    }

    fn message(&self, letter: &Letter) -> Result<Message, lettre::error::Error> {
        let (title, body) = (letter.title(), cut(&letter.body(), MOST));
        let mut message = Message::builder()
            .from(self.from.clone())
            .subject(format!("[gpuwatch] {title}"))
            .message_id(Some(format!("<{}@gpuwatch.invalid>", letter.id)))
            .date_now();
        for to in &self.to {
            message = message.to(to.clone());
        }
        let html = format!(
            "<!DOCTYPE html><html><body><h3>{}</h3><pre>{}</pre></body></html>",
            escape(&title),
            escape(&body)
        );
        message.multipart(MultiPart::alternative_plain_html(body, html))
    }

    /// What the server says is not repeated: it may be what it was sent.
    fn judge(&self, error: &lettre::transport::smtp::Error) -> Failure {
        let host = &self.host;
        if let Some(code) = error.status() {
            let why = format!("{host} refused the mail with code {code}");
            return if error.is_permanent() {
                Failure::never(why)
            } else {
                Failure::later(why)
            };
        }
        if error.is_timeout() {
            return Failure::later(format!("{host} did not answer in time"));
        }
        if error.is_tls() {
            return Failure::never(format!("TLS with {host} failed: its certificate?"));
        }
        if error.is_client() {
            return Failure::never(format!(
                "{host} does not offer what is needed (STARTTLS, or a way to log in)"
            ));
        }
        let root = http::root_of(error).unwrap_or_else(|| "can't be reached".to_owned());
        Failure::later(format!("{host}: {root}"))
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        let new = |url: &str, from: &str| {
            Email::new(&SecretRef::parse(url), from, &["a@example.org".to_owned()])
        };
        let email = new("smtp://me:pa55@mail.example.org", "me@example.org").unwrap();
        assert!(!format!("{email:?}").contains("pa55"));
        assert!(email.url.expose().ends_with("?tls=required"));
        let here = new("smtp://127.0.0.1:2525", "me@example.org").unwrap();
        assert!(here.url.expose().ends_with("?tls=opportunistic"));
        for url in ["pa55", "http://pa55@host", "smtp:pa55"] {
            assert!(!new(url, "me@example.org").unwrap_err().contains("pa55"));
        }
        assert!(
            new("smtps://host", "nobody")
                .unwrap_err()
                .contains("nobody")
        );
    }

    #[test]
    fn a_mail_has_two_forms_and_encoded_headers() {
        let to = ["Ana <ana@example.org>".to_owned()];
        let email = Email::new(&SecretRef::parse("smtps://h"), "gpu@example.org", &to).unwrap();
        let mut letter = Letter::sample();
        letter.run.name = "训练 <b>\r\nBcc: x@example.org".to_owned();
        let mail = String::from_utf8(email.message(&letter).unwrap().formatted()).unwrap();
        assert!(mail.contains("multipart/alternative"), "{mail}");
        assert!(
            mail.contains("Subject: =?utf-8?b?") || mail.contains("=?utf-8?b?"),
            "{mail}"
        );
        assert!(!mail.contains("\r\nBcc:"), "{mail}");
        assert!(
            mail.contains(&format!("Message-ID: <{}@", letter.id)),
            "{mail}"
        );
    }
}
