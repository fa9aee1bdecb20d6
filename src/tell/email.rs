//! Electronic mail.
//!
//! Owns how a mail is put together and how the connection is secured: TLS from the start
//! (`smtps://`) or by STARTTLS (`smtp://`). It is required, and the certificate verified, unless
//! the server is this machine: nobody is in between there, and its certificate is seldom one that
//! anybody vouches for.

use std::time::Duration;

use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::{SUBMISSION_PORT, SUBMISSIONS_PORT};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use percent_encoding::percent_decode_str;
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

type Transport = AsyncSmtpTransport<Tokio1Executor>;

/// How the connection is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Secured {
    /// TLS from the start.
    Always,
    /// TLS by STARTTLS.
    Before,
    /// The same, if the server offers it; with any certificate.
    AtWill,
}

/// One sender and its receivers.
pub struct Email {
    /// A user and a password.
    login: Option<(String, Hidden)>,
    host: String,
    port: u16,
    secured: Secured,
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
        let url = Url::parse(text.expose()).map_err(|_| WRONG)?;
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or(WRONG)?;
        let (secured, port) = match url.scheme() {
            "smtps" => (Secured::Always, SUBMISSIONS_PORT),
            "smtp" if http::is_loopback(&url) => (Secured::AtWill, SUBMISSION_PORT),
            "smtp" => (Secured::Before, SUBMISSION_PORT),
            _ => return Err(WRONG.to_owned()),
        };
        let decoded = |text| percent_decode_str(text).decode_utf8().map_err(|_| WRONG);
        let login = match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => Some((
                decoded(user)?.into_owned(),
                Hidden::new(decoded(password.unwrap_or_default())?),
            )),
        };
        let email = Self {
            login,
            // An address of IPv6 stands in brackets in a url alone.
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port().unwrap_or(port),
            secured,
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
        let transport = self
            .transport()
            .map_err(|_| Failure::never("TLS can't be set up"))?;
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

    fn transport(&self) -> Result<Transport, lettre::transport::smtp::Error> {
        let tls = TlsParameters::builder(self.host.clone())
            .dangerous_accept_invalid_certs(self.secured == Secured::AtWill)
            .build()?;
        let tls = match self.secured {
            Secured::Always => Tls::Wrapper(tls),
            Secured::Before => Tls::Required(tls),
            Secured::AtWill => Tls::Opportunistic(tls),
        };
        let mut transport = Transport::builder_dangerous(&self.host)
            .port(self.port)
            .tls(tls)
            .timeout(Some(PATIENCE));
        if let Some((user, password)) = &self.login {
            let password = password.expose().to_owned();
            transport = transport.credentials(Credentials::new(user.clone(), password));
        }
        Ok(transport.build())
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
            let code = u16::from(code);
            let why = match code {
                530 | 534 | 535 | 538 => {
                    format!("{host} refused the login with code {code}: check user and password")
                }
                _ => format!("{host} refused the mail with code {code}"),
            };
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
        assert_eq!((email.secured, email.port), (Secured::Before, 587));
        let here = new("smtp://[::1]:2525", "me@example.org").unwrap();
        assert_eq!((here.secured, here.port), (Secured::AtWill, 2525));
        assert_eq!(here.host, "::1");
        let odd = new("smtps://a%40b:p%25%3A%2F5@h", "me@example.org").unwrap();
        assert_eq!((odd.secured, odd.port), (Secured::Always, 465));
        let (user, password) = odd.login.unwrap();
        assert_eq!((user.as_str(), password.expose()), ("a@b", "p%:/5"));
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
