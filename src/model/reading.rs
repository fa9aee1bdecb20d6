//! A reading is a value or the reason why there is none; never a zero in its place.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a reading has no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Not asked for yet, or the first sample of something that needs two.
    NotYet,
    /// The device, driver or platform doesn't offer this reading.
    NotSupported,
    /// It exists, but not for this user.
    NoPermission,
    /// Told by PIDs of another namespace, the host's, of which nothing here is known.
    HostPids,
    /// An MPS server holds it for its clients, and doesn't say how much for which.
    Mps,
    /// The device fell off the bus or is no longer there.
    Lost,
    /// The answer didn't come in time.
    TimedOut,
    /// The answer came and can't be true (a utilisation of 37100 %, a memory of 16 EiB).
    Garbage,
    /// Anything else, in the words of whoever failed.
    Failed(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotYet => "not read yet",
            Self::NotSupported => "NotSupported",
            Self::NoPermission => "NoPermission",
            Self::HostPids => "told by the host's PIDs",
            Self::Mps => "an MPS server holds it for its clients",
            Self::Lost => "GPU is lost",
            Self::TimedOut => "no answer in time",
            Self::Garbage => "an impossible value",
            Self::Failed(why) => why,
        })
    }
}

/// A value, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// What was read.
    Value(T),
    /// Why nothing was.
    Missing(Why),
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self::Missing(Why::NotYet)
    }
}

impl<T> Reading<T> {
    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(v) => Some(v),
            Self::Missing(_) => None,
        }
    }

    /// The reason, if there is no value.
    pub fn why(&self) -> Option<&Why> {
        match self {
            Self::Value(_) => None,
            Self::Missing(why) => Some(why),
        }
    }

    /// The same reading in another unit or form; a missing one stays missing.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Value(v) => Reading::Value(f(v)),
            Self::Missing(why) => Reading::Missing(why),
        }
    }
}

impl<T: Copy> Reading<T> {
    /// The value by copy, if there is one.
    pub fn get(&self) -> Option<T> {
        self.value().copied()
    }
}

impl<T> From<Option<T>> for Reading<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing(Why::NotYet), Self::Value)
    }
}
