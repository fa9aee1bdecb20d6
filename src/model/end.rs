//! How a run may end: the resolved `end` section of a profile, as far as it is acted on.

use std::time::Duration;

/// What becomes of processes that the command leaves behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leftovers {
    /// They are named and left alone.
    #[default]
    Report,
    /// They are waited for.
    Wait,
    /// They are ended.
    Kill,
}

/// How a run may end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndSettings {
    /// What becomes of processes that are left behind.
    pub leftovers: Leftovers,
    /// The run is ended after this.
    pub time_limit: Option<Duration>,
    /// What still lives this long after it was asked to end is killed.
    pub kill_after: Option<Duration>,
}

impl EndSettings {
    /// How long a command whose time is up may take to end: enough for a checkpoint of usual
    /// size. A limit that a hung command could ignore would be none.
    pub fn grace_of_limit(&self) -> Duration {
        self.kill_after.unwrap_or(Duration::from_secs(30))
    }

    /// How long leftovers that are to be ended may take. Their command has ended already, so
    /// that they have less to save.
    pub fn grace_of_leftovers(&self) -> Duration {
        self.kill_after.unwrap_or(Duration::from_secs(10))
    }
}
