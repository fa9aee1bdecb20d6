//! What would be sent, for `--notify-dry-run`: the request as it is, secrets masked.
//!
//! Owns the list of what was not sent, bounded. Nothing leaves the machine.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::model::MASK;

use super::channel::Means;
use super::letter::Letter;
use super::{command, desktop};

/// The most that is kept, bytes; what comes after is counted.
const MOST: usize = 512 * 1024;

/// All that would have been sent so far; copies share it.
#[derive(Clone, Debug, Default)]
pub struct Previews(Arc<Mutex<Listed>>);

#[derive(Debug, Default)]
struct Listed {
    text: String,
    more: u32,
}

impl Previews {
    /// One more.
    pub fn add(&self, channel: &str, means: &Means, letter: &Letter) {
        let shown = show(channel, means, letter);
        let mut listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if listed.text.len() + shown.len() > MOST {
            listed.more += 1;
        } else {
            listed.text.push_str(&shown);
        }
    }

    /// All of them; empty if there was nothing to send.
    pub fn take(&self) -> String {
        let listed = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = std::mem::take(&mut listed.text);
        let more = std::mem::take(&mut listed.more);
        if more > 0 {
            text.push_str(&heading(&format!(
                "{more} more would be sent, and are not shown"
            )));
        }
        text
    }
}

fn heading(words: &str) -> String {
    format!("gpuwatch: {words}\n")
}

/// A line about it, the request, and an empty line.
fn show(channel: &str, means: &Means, letter: &Letter) -> String {
    let (kind, about) = (means.kind(), letter.alert.subject());
    let mut text = heading(&format!("would send to {channel} ({kind}): {about}"));
    text.push_str(&request(means, letter));
    text.push_str("\n\n");
    printable(&text)
}

fn request(means: &Means, letter: &Letter) -> String {
    match means {
        Means::Service(service) => match service.preview(letter, SystemTime::now()) {
            Ok((address, post)) => {
                let mut text = format!("POST {address}\ncontent-type: {}\n", post.content_type);
                let headers = post.headers.iter();
                for (name, value) in headers {
                    let value = String::from_utf8_lossy(value.as_bytes());
                    // Only what others may see is there.
                    let _ = writeln!(text, "{name}: {value}");
                }
                for name in post.own.keys() {
                    let _ = writeln!(text, "{name}: {MASK}");
                }
                text + "\n" + &String::from_utf8_lossy(&post.body)
            }
            Err(failure) => format!("nothing: {}", failure.why),
        },
        Means::Email(email) => email.preview(letter),
        Means::Desktop => desktop::preview(letter),
        Means::Command(argv) => command::preview(argv, letter),
        Means::Dry(_) => String::new(),
    }
}

/// Nothing in it drives a terminal.
fn printable(text: &str) -> String {
    text.replace("\r\n", "\n")
        .split('\n')
        .map(super::text::clean)
        .collect::<Vec<_>>()
        .join("\n")
}
