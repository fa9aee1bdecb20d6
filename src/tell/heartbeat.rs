//! A dead man's switch after healthchecks.io: it hears that a run began, goes on and how it
//! ended, and raises the alarm itself when it hears nothing.
//!
//! Owns which address means what. When it hears is the policy's (`policy::pulse`).

use std::time::SystemTime;

use crate::model::SecretRef;

use super::alert::{About, State};
use super::cut::Budget;
use super::failure::Failure;
use super::http::{Address, Post};
use super::letter::Letter;
use super::service::Service;

/// A body may have 100 kB; ours is for a glance.
const MOST: Budget = Budget::Bytes(9000);

/// One switch.
#[derive(Debug)]
pub struct Heartbeat {
    address: Address,
}

impl Heartbeat {
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

impl Service for Heartbeat {
    fn kind(&self) -> &'static str {
        "heartbeat"
    }

    fn request(&self, letter: &Letter, _: SystemTime) -> Result<(Address, Post), Failure> {
        let address = match (&letter.alert.about, letter.alert.state) {
            (About::Started, State::Raised) => self.address.below(&["start"]),
            (About::Finished(end), _) if !end.is_well() => match end.exit.code {
                Some(code @ 1..=255) => self.address.below(&[&code.to_string()]),
                _ => self.address.below(&["fail"]),
            },
            _ => self.address.clone(),
        };
        let post = Post {
            content_type: "text/plain; charset=utf-8",
            body: letter.text(MOST).into_bytes(),
            ..Post::json(&serde_json::Value::Null)
        };
        Ok((address, post))
    }

    fn is_fleeting(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Exit;
    use crate::tell::samples;
    use crate::tell::words::Tongue;

    #[test]
    fn the_address_says_what_happened() {
        let switch = Heartbeat::new(&SecretRef::parse("https://hc-ping.com/t0ken")).unwrap();
        let path = |about: About, state| {
            let mut alert = samples::stalled();
            (alert.about, alert.state) = (about, state);
            let letter = Letter::new(alert, samples::run(), Tongue::English);
            let (address, _) = switch.request(&letter, SystemTime::UNIX_EPOCH).unwrap();
            address.path().to_owned()
        };
        let About::Finished(end) = samples::failed().about else {
            panic!("an end")
        };
        let mut killed = end.clone();
        killed.exit = Exit {
            code: None,
            signal: Some(9),
        };
        let mut well = end.clone();
        well.verdict.outcome = Some(crate::model::Outcome::Ok);
        assert_eq!(path(About::Started, State::Raised), "/t0ken/start");
        assert_eq!(path(About::Started, State::Reminded), "/t0ken");
        assert_eq!(path(About::Finished(end), State::Raised), "/t0ken/1");
        assert_eq!(path(About::Finished(killed), State::Raised), "/t0ken/fail");
        assert_eq!(path(About::Finished(well), State::Raised), "/t0ken");
    }
}
