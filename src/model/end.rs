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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndSettings {
    /// What becomes of processes that are left behind.
    pub leftovers: Leftovers,
    /// The run is ended after this.
    pub time_limit: Option<Duration>,
    /// What still lives this long after it was asked to end is killed.
    pub kill_after: Option<Duration>,
    /// When the command is started again.
    pub restart: Restart,
}

/// When the command is started again: `end.restart`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// After these causes or findings, with hyphens; [`ANY_FAILURE`] stands for all.
    pub on: Vec<String>,
    /// So many times.
    pub max: u32,
    /// After this pause the first time; it doubles each time, up to [`LONGEST_PAUSE`].
    pub backoff: Duration,
}

/// In `end.restart.on`: whatever the command fails of by itself.
pub const ANY_FAILURE: &str = "failure";
/// No pause before another start grows beyond this (but a first one that is longer stays so).
pub const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// Causes of a run's end that are no findings, as the verdict names them.
pub const CAUSES: &[&str] = &[
    "backend",
    "collective-timeout",
    "cpu-build",
    "device-assert",
    "disk",
    "driver-mismatch",
    "illegal-access",
    "loader-killed",
    "network-fs",
    "no-gpu",
    "quota",
    "rank-lost",
    "segfault",
    "shared-memory",
    "traceback",
];

impl Default for Restart {
    fn default() -> Self {
        Self {
            on: Vec::new(),
            max: 3,
            backoff: Duration::from_secs(30),
        }
    }
}

impl Restart {
    /// The pause before the start of this number, the first being 1.
    pub fn pause(&self, number: u32) -> Duration {
        let doubled = 1_u32
            .checked_shl(number.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let pause = self.backoff.saturating_mul(doubled);
        pause.min(LONGEST_PAUSE.max(self.backoff))
    }

    /// Whether a run that failed of this is started again.
    pub fn is_on(&self, cause: Option<&str>) -> bool {
        let names = |name: &str| self.on.iter().any(|on| on == name);
        names(ANY_FAILURE) || cause.is_some_and(names)
    }
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
