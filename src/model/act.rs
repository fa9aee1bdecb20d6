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

    /// Whether anything may be done to the job.
    pub fn reach_the_job(&self) -> bool {
        self.0.values().flatten().any(Action::is_to_the_job)
    }
}

/// One thing to do, once a time that a finding is raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Take the stacks of the job's Python processes, wait channels and last lines as evidence.
    Stacks,
    /// Run this program with its arguments; not empty.
    Command(Vec<String>),
    /// Send the main process this signal, one of [`SIGNALS`].
    Signal(&'static str),
    /// End the command: TERM, a grace, KILL.
    Stop,
    /// End the command likewise, and start it again.
    Restart,
}

impl Action {
    /// Whether it is done to the job, and not beside it.
    pub fn is_to_the_job(&self) -> bool {
        matches!(self, Self::Signal(_) | Self::Stop | Self::Restart)
    }
}

/// What may be sent, without `SIG`. KILL isn't among them: `stop` gives time to save something;
/// nor is what would leave the job stopped.
pub const SIGNALS: &[&str] = &[
    "ABRT", "ALRM", "CONT", "HUP", "INT", "QUIT", "TERM", "URG", "USR1", "USR2", "WINCH",
];

/// One of them by its name, with or without `SIG`.
pub fn signal_named(text: &str) -> Option<&'static str> {
    let name = text.trim().to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    SIGNALS.iter().copied().find(|known| *known == name)
}
