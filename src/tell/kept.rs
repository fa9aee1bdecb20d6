//! One alert that is kept for one channel.
//!
//! Owns its serialised form, and when it is old news. Must not know where it is kept.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::Severity;

use super::alert::{About, State};
use super::letter::Letter;

/// The version of the files.
const SCHEMA: u32 = 1;
/// That something is over, or still holds, is old news after this long, seconds.
const STALE_S: i64 = 3600;

/// One kept alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    schema: u32,
    /// The channel's name.
    pub channel: String,
    /// Its kind.
    pub kind: String,
    /// Where that leads to, as a hash: without it, it is sent by hand alone.
    #[serde(default)]
    pub place: Option<String>,
    /// Why it was not sent.
    pub why: String,
    /// Who has it on its way.
    #[serde(default)]
    pub sender: Option<String>,
    /// Its number among what its sender had to send.
    #[serde(default)]
    pub number: u64,
    /// The alert, with the id that it was tried with.
    pub letter: Letter,
}

impl Kept {
    /// For a channel.
    pub fn new(channel: &str, kind: &str, why: &str, letter: Letter) -> Self {
        Self {
            schema: SCHEMA,
            channel: channel.to_owned(),
            kind: kind.to_owned(),
            place: None,
            why: why.to_owned(),
            sender: None,
            number: 0,
            letter,
        }
    }

    /// The same alert may wait for several channels, of whose names little may be left.
    pub fn name(&self) -> String {
        let number = self.number.to_string();
        let words = [
            &self.letter.alert.time,
            &self.letter.id,
            &number,
            &self.channel,
        ];
        words.map(|word| plain(word)).join("-")
    }

    /// When it was decided to send it; what has no such time comes first.
    pub fn time(&self) -> Option<Timestamp> {
        self.letter.alert.time.parse().ok()
    }

    /// Whether it is about the same thing at the same place.
    fn is_like(&self, other: &Self) -> bool {
        let of = |kept: &Self| {
            let (alert, run) = (&kept.letter.alert, &kept.letter.run);
            (run.id.clone(), alert.subject().to_owned())
        };
        (&self.place, &self.channel) == (&other.place, &other.channel) && of(self) == of(other)
    }

    /// Whether nobody needs it any more: whoever knows that something holds has looked by now,
    /// and whoever doesn't hears that first.
    pub fn is_stale(&self, all: &[Self], now: Timestamp) -> bool {
        let state = self.letter.alert.state;
        if !matches!(self.letter.alert.about, About::Finding(_)) || state == State::Raised {
            return false;
        }
        // It may speak for others that were raised.
        if state == State::Reminded && self.letter.alert.more > 0 {
            return false;
        }
        let raised = |other: &Self| other.letter.alert.state == State::Raised;
        let is_unheard = all.iter().any(|other| raised(other) && self.is_like(other));
        let is_old = self
            .time()
            .is_none_or(|time| now.as_second() - time.as_second() > STALE_S);
        match state {
            State::Reminded => is_unheard || is_old,
            _ => is_old && !is_unheard,
        }
    }

    /// What goes first when there is too much.
    pub fn importance(&self) -> u8 {
        let alert = &self.letter.alert;
        let severity = match alert.severity {
            Severity::Note => 1,
            Severity::Warning => 2,
            Severity::Critical => 3,
        };
        match alert.state {
            State::Raised => severity,
            State::Reminded | State::Cleared => 0,
        }
    }
}

/// What a file may be called.
pub fn plain(text: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    text.chars().map(keep).take(80).collect()
}
