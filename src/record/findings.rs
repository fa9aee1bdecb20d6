//! From `finding` events to the list of findings of a run. Pure.
//!
//! Owns which events speak of the same finding. Must not know files, or what a finding means.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::{Event, FindingState, Logged, Severity};

/// One finding over its whole life, as `show --json` lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingRecord {
    /// From the closed list, or a user's rule.
    pub name: String,
    /// The finding's cause, where one is named.
    pub cause: Option<String>,
    /// How serious, by its last word.
    pub severity: Severity,
    /// `cleared`, or the last word while it holds.
    pub state: FindingState,
    /// The finding that explains this one.
    pub because: Option<String>,
    /// `elapsed_s` when the condition began.
    pub since_s: f64,
    /// Numbers, as they stood when it was raised or last updated.
    pub evidence: Map<String, Value>,
    /// What to do.
    pub advice: Option<String>,
    /// `elapsed_s` when it was raised.
    pub raised_s: f64,
    /// `elapsed_s` when it was cleared; null while it holds.
    pub cleared_s: Option<f64>,
}

/// Folds events into the findings, in the order in which they were raised.
#[derive(Clone, Debug, Default)]
pub struct FindingFold {
    list: Vec<FindingRecord>,
}

impl FindingFold {
    /// Takes in one event; those that aren't findings change nothing.
    pub fn absorb(&mut self, logged: &Logged) {
        let Event::Finding {
            name,
            cause,
            severity,
            state,
            because,
            since_s,
            evidence,
            advice,
        } = &logged.event
        else {
            return;
        };
        let now = FindingRecord {
            name: name.clone(),
            cause: cause.clone(),
            severity: *severity,
            state: *state,
            because: because.clone(),
            since_s: *since_s,
            evidence: evidence.clone(),
            advice: advice.clone(),
            raised_s: logged.stamp.elapsed_s,
            cleared_s: None,
        };
        match self.open(&now) {
            Some(open) if *state == FindingState::Cleared => {
                open.state = FindingState::Cleared;
                open.cleared_s = Some(logged.stamp.elapsed_s);
            }
            Some(open) => {
                *open = FindingRecord {
                    raised_s: open.raised_s,
                    since_s: open.since_s,
                    advice: now.advice.clone().or_else(|| open.advice.take()),
                    ..now
                };
            }
            // The event that raised it was lost: what clears it says nothing by itself.
            None if *state == FindingState::Cleared => {}
            None => self.list.push(now),
        }
    }

    /// The finding that still holds and that this event speaks of: of the same name, and if
    /// there are several, of the same beginning, else of the same cause, else the newest.
    fn open(&mut self, now: &FindingRecord) -> Option<&mut FindingRecord> {
        let likeness = |old: &FindingRecord| {
            let same_beginning = old.since_s.to_bits() == now.since_s.to_bits();
            (same_beginning, old.cause == now.cause)
        };
        self.list
            .iter_mut()
            .filter(|old| old.name == now.name && old.cleared_s.is_none())
            // Raised anew with another cause from another time is another finding.
            .filter(|old| now.state != FindingState::Raised || likeness(old) != (false, false))
            .max_by_key(|old| likeness(old))
    }

    /// The findings so far.
    pub fn list(&self) -> &[FindingRecord] {
        &self.list
    }

    /// The findings.
    pub fn into_list(self) -> Vec<FindingRecord> {
        self.list
    }

    /// Each finding's name once, in the order in which they were first raised: what the
    /// index holds.
    pub fn names(&self) -> Vec<String> {
        names(&self.list)
    }
}

/// Each finding's name once.
pub(super) fn names(list: &[FindingRecord]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for finding in list {
        if !names.contains(&finding.name) {
            names.push(finding.name.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Stamp;

    fn event(elapsed_s: f64, name: &str, cause: &str, state: FindingState, since_s: f64) -> Logged {
        let mut evidence = Map::new();
        evidence.insert("at".into(), elapsed_s.into());
        Logged {
            stamp: Stamp {
                time: String::new(),
                elapsed_s,
            },
            event: Event::Finding {
                name: name.into(),
                cause: Some(cause.into()),
                severity: Severity::Warning,
                state,
                because: None,
                since_s,
                evidence,
                advice: None,
            },
        }
    }

    #[test]
    fn a_finding_is_raised_updated_cleared_and_raised_again() {
        use FindingState::{Cleared, Raised, Updated};
        let mut fold = FindingFold::default();
        fold.absorb(&event(18.0, "stalled", "asleep", Raised, 13.0));
        fold.absorb(&event(19.0, "gpu-lost", "xid", Raised, 19.0));
        fold.absorb(&event(20.0, "stalled", "asleep", Updated, 13.0));
        fold.absorb(&event(24.0, "stalled", "asleep", Cleared, 13.0));
        fold.absorb(&event(40.0, "stalled", "asleep", Raised, 33.0));
        fold.absorb(&event(50.0, "never-raised", "x", Cleared, 1.0));
        assert_eq!(fold.names(), ["stalled", "gpu-lost"]);
        let list = fold.into_list();
        let lives: Vec<_> = list
            .iter()
            .map(|f| (f.raised_s, f.cleared_s, f.state))
            .collect();
        assert_eq!(
            lives,
            [
                (18.0, Some(24.0), Cleared),
                (19.0, None, Raised),
                (40.0, None, Raised)
            ]
        );
        assert_eq!(list[0].evidence["at"], 20.0);
    }

    #[test]
    fn two_of_a_name_are_told_apart() {
        use FindingState::{Cleared, Raised};
        let mut fold = FindingFold::default();
        fold.absorb(&event(1.0, "gpu-lost", "xid 79", Raised, 1.0));
        fold.absorb(&event(2.0, "gpu-lost", "xid 48", Raised, 2.0));
        fold.absorb(&event(3.0, "gpu-lost", "xid 79", Cleared, 1.0));
        let list = fold.into_list();
        assert_eq!(list[0].cleared_s, Some(3.0));
        assert_eq!(list[1].cleared_s, None);
    }
}
