//! What a channel has to be told again and again, because it takes silence for the end.
//!
//! Owns what holds as that channel knows it, and when it is due.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::alert::{About, State};
use super::letter::Letter;

/// More isn't said again: a storm is over by itself.
const MOST: usize = 64;

/// Run and subject.
type Key = (String, String);

/// What holds.
pub struct Firing {
    every: Option<Duration>,
    holds: BTreeMap<Key, Letter>,
    due: Instant,
}

impl Firing {
    /// For a channel that is told again so often; for others nothing ever holds.
    pub fn of(every: Option<Duration>) -> Self {
        Self {
            every,
            holds: BTreeMap::new(),
            due: Instant::now(),
        }
    }

    /// Takes in a letter that goes out now; what ends with it.
    pub fn hear(&mut self, letter: &Letter) -> Vec<Letter> {
        let Some(every) = self.every else {
            return Vec::new();
        };
        let run = letter.run.id.clone();
        match (&letter.alert.about, letter.alert.state) {
            (About::Finished(_), _) => {
                let (ended, rest) = std::mem::take(&mut self.holds)
                    .into_iter()
                    .partition(|((of, _), _)| *of == run);
                self.holds = rest;
                let ended: BTreeMap<Key, Letter> = ended;
                return ended.values().map(Letter::over).collect();
            }
            (About::Finding(_), State::Cleared) => {
                let key = (run, letter.alert.subject().to_owned());
                self.holds.remove(&key);
            }
            (About::Finding(_), _) => {
                let key = (run, letter.alert.subject().to_owned());
                if self.holds.is_empty() {
                    self.due = Instant::now() + every;
                }
                if self.holds.len() < MOST {
                    self.holds.insert(key, letter.clone());
                }
            }
            _ => {}
        }
        Vec::new()
    }

    /// What is to be said again.
    pub fn letters(&self) -> Vec<Letter> {
        self.holds.values().cloned().collect()
    }

    /// It was said.
    pub fn said(&mut self) {
        if let Some(every) = self.every {
            self.due = Instant::now() + every;
        }
    }

    /// Waits until something is to be said again; for ever if nothing is.
    pub async fn due(&self) {
        if self.holds.is_empty() {
            std::future::pending::<()>().await;
        }
        sleep_until(self.due).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tell::samples;
    use crate::tell::words::Tongue;

    #[test]
    fn what_held_is_over_with_the_run() {
        let letter = |alert| Letter::new(alert, samples::run(), Tongue::English);
        let mut firing = Firing::of(Some(Duration::from_secs(60)));
        assert!(firing.hear(&letter(samples::stalled())).is_empty());
        assert_eq!(firing.letters().len(), 1);
        let over = firing.hear(&letter(samples::failed()));
        assert_eq!(over.len(), 1);
        assert_eq!(over[0].alert.state, State::Cleared);
        assert_eq!(over[0].alert.subject(), "stalled");
        assert!(firing.letters().is_empty());
        let mut others = Firing::of(None);
        others.hear(&letter(samples::stalled()));
        assert!(others.letters().is_empty());
    }
}
