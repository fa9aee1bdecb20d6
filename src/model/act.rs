//! What is done about a finding: the resolved `act` section of a profile.

use std::collections::BTreeMap;

/// What to do, by the finding's name with hyphens (`idle-holding`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActSettings(pub BTreeMap<String, Vec<Action>>);

impl ActSettings {
    /// What to do about a finding.
    pub fn of(&self, finding: &str) -> &[Action] {
        self.0.get(finding).map_or(&[], Vec::as_slice)
    }
}

/// One thing to do, once a time that a finding is raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Take the stacks of the job's Python processes, wait channels and last lines as evidence.
    Stacks,
    /// Run this program with its arguments; not empty.
    Command(Vec<String>),
}
