//! A mark: the state of progress as a person would read it off the display at that moment.

use serde::{Deserialize, Serialize};

/// Which output stream something was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output, or the one terminal that stands for both.
    Out,
    /// Standard error.
    Err,
}

/// Where a line was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineSource {
    /// Standard output, or the one terminal that stands for both.
    Out,
    /// Standard error.
    Err,
    /// A followed file.
    File,
}

impl From<Stream> for LineSource {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Out => Self::Out,
            Stream::Err => Self::Err,
        }
    }
}

/// What the program was doing when it showed this progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Training: the only phase that moves the run's own progress.
    #[default]
    Train,
    /// Validation or test.
    Eval,
    /// Anything else that shows a bar: downloads, tokenising, loading.
    Other,
}

/// A number as displayed. A NaN or an infinity is written as the string `"nan"` or `"inf"`,
/// because JSON has no such numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric(pub f64);

impl Serialize for Metric {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.0.is_nan() {
            s.serialize_str("nan")
        } else if self.0.is_infinite() {
            s.serialize_str(if self.0 > 0.0 { "inf" } else { "-inf" })
        } else {
            super::number::put(self.0, s)
        }
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Shown {
            Number(f64),
            Word(String),
        }
        match Shown::deserialize(d)? {
            Shown::Number(n) => Ok(Self(n)),
            Shown::Word(w) => w
                .trim()
                .parse::<f64>()
                .map(Self)
                .map_err(|_| serde::de::Error::custom(format!("'{w}' is not a number"))),
        }
    }
}

/// One line of `gpuwatch parse --json`. Numbers as displayed: an epoch counted from 0 stays so.
/// Read back, any of its keys may be absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mark {
    /// Seconds since the recording's start; null for raw input, which has no clock.
    pub t: Option<f64>,
    /// The stream that showed it; null where it was read from a file.
    pub stream: Option<Stream>,
    /// Who drew it: `keras`, `tqdm`, `step-counter`, `epoch-counter`, ...
    pub source: String,
    /// Train, eval or other.
    pub phase: Phase,
    /// The rank that a prefix names, if one does.
    pub rank: Option<u32>,
    /// Epoch as displayed; may be fractional.
    #[serde(with = "super::number")]
    pub epoch: Option<f64>,
    /// Total epochs.
    #[serde(with = "super::number")]
    pub epochs: Option<f64>,
    /// Step within the epoch (or of the run, where there are no epochs).
    pub step: Option<u64>,
    /// Total steps.
    pub steps: Option<u64>,
    /// Percent of whatever the display counts.
    #[serde(with = "super::number")]
    pub percent: Option<f64>,
    /// Training loss.
    pub loss: Option<Metric>,
    /// Other numbers shown beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "metrics")]
    pub metrics: Vec<(String, Metric)>,
    /// Remaining seconds as displayed.
    #[serde(with = "super::number")]
    pub eta_s: Option<f64>,
    /// Percent of the whole run, ours.
    #[serde(with = "super::number")]
    pub overall_pct: Option<f64>,
    /// Remaining seconds of the whole run, ours.
    #[serde(with = "super::number")]
    pub overall_eta_s: Option<f64>,
    /// Steps a second.
    #[serde(with = "super::number")]
    pub rate: Option<f64>,
}

/// A list of named numbers is a JSON object in the order of the display.
mod metrics {
    use std::fmt;

    use serde::de::{MapAccess, Visitor};
    use serde::ser::SerializeMap;
    use serde::{Deserializer, Serializer};

    use super::Metric;

    pub fn serialize<S: Serializer>(list: &[(String, Metric)], s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(list.len()))?;
        for (name, value) in list {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<(String, Metric)>, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Vec<(String, Metric)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of numbers")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    list.push(pair);
                }
                Ok(list)
            }
        }
        d.deserialize_map(Pairs)
    }
}
