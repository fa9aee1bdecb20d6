//! Numbers that a program writes for TensorBoard: event files to scalars, scalars to progress.
//!
//! Owns the framing of records, the few fields of an event that hold a scalar, and what a tag
//! says about training. Pure, and independent of how the bytes were cut. Must not know files.
//!
//! Formats: `TFRecord` as in `tensorflow/core/lib/io/record_writer.h`; the messages `Event`,
//! `Summary`, `TensorProto` as in `tensorflow/core/{util,framework}/*.proto`.

use std::collections::BTreeMap;

use prost::Message;

use super::reading::{EpochShown, Reading, StepShown};
use super::tracker::Tracker;
use super::words::{self, Counts};
use crate::model::{Mark, Metric, Phase, ProgressState};

/// A longer record holds a graph or a picture, and no scalar: it is passed over.
const LONGEST: u64 = 1 << 20;
/// Length and its checksum.
const HEAD: usize = 12;
/// Checksum of the data.
const TAIL: usize = 4;
/// Places beyond this many are not told apart from each other.
const MOST_PLACES: usize = 256;

/// One number that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// Its name: `train/loss`, `epoch_accuracy`.
    pub tag: String,
    /// The step that it was written with.
    pub step: u64,
    /// The number.
    pub value: f64,
}

/// Reads one event file as it grows. Memory is bounded.
#[derive(Clone, Debug, Default)]
pub struct EventFile {
    pending: Vec<u8>,
    /// Bytes of a long record that are still to come.
    passing: u64,
    is_damaged: bool,
}

impl EventFile {
    /// Takes bytes as they were added and gives the scalars that they complete. Behind a
    /// damaged record nothing more is read: where the next one begins nobody knows.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Vec<Scalar> {
        let mut found = Vec::new();
        while !bytes.is_empty() && !self.is_damaged {
            let passed = bytes.len().min(self.passing as usize);
            self.passing -= passed as u64;
            bytes = &bytes[passed..];
            let taken = bytes.len().min(LONGEST as usize);
            self.pending.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            self.records(&mut found);
        }
        found
    }

    /// Whether these are an event file's first bytes.
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.get(..HEAD).is_some_and(|head| length(head).is_some())
    }

    /// Whether a record was met that is none.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Takes whole records from what is pending.
    fn records(&mut self, found: &mut Vec<Scalar>) {
        let mut at = 0;
        while let Some(head) = self.pending.get(at..at + HEAD) {
            let Some(length) = length(head) else {
                self.is_damaged = true;
                self.pending = Vec::new();
                return;
            };
            if length > LONGEST {
                let here = (self.pending.len() - at - HEAD) as u64;
                let whole = length + TAIL as u64;
                at = self.pending.len() - here.saturating_sub(whole) as usize;
                self.passing = whole.saturating_sub(here);
                continue;
            }
            let (from, to) = (at + HEAD, at + HEAD + length as usize);
            let Some(sum) = self.pending.get(to..to + TAIL) else {
                break;
            };
            let data = &self.pending[from..to];
            if masked(data).to_le_bytes() == sum {
                found.extend(scalars(data));
            }
            at = to + TAIL;
        }
        self.pending.drain(..at);
    }
}

/// The length of the record's data, if the head is one.
fn length(head: &[u8]) -> Option<u64> {
    let (length, sum) = head.split_at(8);
    let is_one = masked(length).to_le_bytes() == sum;
    is_one.then(|| u64::from_le_bytes(length.try_into().unwrap_or_default()))
}

/// CRC-32C, masked as `record_writer.h` does.
fn masked(data: &[u8]) -> u32 {
    crc32c::crc32c(data)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<SummaryValue>,
}

#[derive(Clone, PartialEq, Message)]
struct SummaryValue {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
    #[prost(message, optional, tag = "8")]
    tensor: Option<Tensor>,
}

/// A tensor; of its fields those that hold a scalar's value.
#[derive(Clone, PartialEq, Message)]
struct Tensor {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(bytes = "vec", tag = "4")]
    content: Vec<u8>,
    #[prost(float, repeated, tag = "5")]
    float_val: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    double_val: Vec<f64>,
    #[prost(int32, repeated, tag = "7")]
    int_val: Vec<i32>,
    #[prost(int64, repeated, tag = "10")]
    int64_val: Vec<i64>,
}

impl Tensor {
    /// Its value, if it holds one number alone.
    fn scalar(&self) -> Option<f64> {
        let alone = (
            &self.float_val[..],
            &self.double_val[..],
            &self.int_val[..],
            &self.int64_val[..],
        );
        match alone {
            ([value], [], [], []) => Some(plain(*value)),
            ([], [value], [], []) => Some(*value),
            ([], [], [value], []) => Some(f64::from(*value)),
            ([], [], [], [value]) => Some(*value as f64),
            ([], [], [], []) => self.in_content(),
            _ => None,
        }
    }

    /// By its type (types.proto): 1 float, 2 double, 3 int32, 9 int64.
    fn in_content(&self) -> Option<f64> {
        let bytes = &self.content[..];
        match self.dtype {
            1 => Some(plain(f32::from_le_bytes(bytes.try_into().ok()?))),
            2 => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
            3 => Some(f64::from(i32::from_le_bytes(bytes.try_into().ok()?))),
            9 => Some(i64::from_le_bytes(bytes.try_into().ok()?) as f64),
            _ => None,
        }
    }
}

/// The shortest number that is this one in single precision: 0.1 and not 0.10000000149.
fn plain(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// The scalars of one event; none where the bytes are no event.
fn scalars(data: &[u8]) -> Vec<Scalar> {
    let Ok(event) = Event::decode(data) else {
        return Vec::new();
    };
    let Ok(step) = u64::try_from(event.step) else {
        return Vec::new();
    };
    let values = event.summary.unwrap_or_default().value;
    values
        .into_iter()
        .filter_map(|value| {
            let simple = value.simple_value.map(plain);
            Some(Scalar {
                value: simple.or_else(|| value.tensor?.scalar())?,
                tag: value.tag,
                step,
            })
        })
        .collect()
}

/// One directory.
#[derive(Clone, Default)]
struct Place {
    tracker: Tracker,
    /// A loss is written there: its steps are training's, whatever others count.
    has_loss: bool,
}

/// Progress by what was written, of each directory for itself.
#[derive(Clone, Default)]
pub struct Scalars {
    places: BTreeMap<String, Place>,
    /// Where training wrote last.
    last: String,
    /// The last loss, wherever it was written.
    loss: Option<f64>,
}

impl Scalars {
    /// Takes what was written in `place`, the directory below the one that is followed, and
    /// gives the changes of training's state, oldest first.
    pub fn absorb(&mut self, place: &str, t: Option<f64>, written: &[Scalar]) -> Vec<Mark> {
        if words::is_eval(place) {
            return Vec::new();
        }
        let room = self.places.len() < MOST_PLACES || self.places.contains_key(place);
        let place = if room { place } else { "" };
        let mut marks = Vec::new();
        for mut reading in readings(written) {
            self.loss = reading.loss.or(self.loss);
            let here = self.places.entry(place.to_owned()).or_default();
            here.has_loss |= reading.loss.is_some();
            if here.has_loss && reading.loss.is_none() {
                reading.step = None;
            }
            if here.tracker.apply(reading, t) == Some(Phase::Train) {
                marks.push(here.tracker.mark(Phase::Train, t, None));
                place.clone_into(&mut self.last);
            }
        }
        marks
    }

    /// Where training stands by what was written last.
    pub fn state(&self) -> ProgressState {
        let last = self.places.get(&self.last);
        let mut state = last.map(|place| place.tracker.state()).unwrap_or_default();
        state.loss = state.loss.or(self.loss.map(Metric));
        state
    }
}

/// What each step says, in the order in which it was written.
fn readings(written: &[Scalar]) -> Vec<Reading> {
    let mut steps: Vec<(u64, Reading)> = Vec::new();
    for scalar in written {
        let Some(reading) = reading(scalar) else {
            continue;
        };
        match steps.last_mut() {
            Some((step, last)) if *step == scalar.step => merge(last, reading),
            _ => steps.push((scalar.step, reading)),
        }
    }
    steps.into_iter().map(|(_, reading)| reading).collect()
}

fn merge(into: &mut Reading, more: Reading) {
    into.epoch = more.epoch.or(into.epoch);
    into.step = more.step.or(into.step.take());
    into.loss = more.loss.or(into.loss);
}

/// None where it isn't training's.
fn reading(scalar: &Scalar) -> Option<Reading> {
    let tag = scalar.tag.to_lowercase();
    if words::is_eval(&tag) || tag.starts_with("hparam") || tag.starts_with("_hparams_") {
        return None;
    }
    let mut reading = Reading {
        source: "tensorboard".into(),
        phase: Phase::Train,
        says_train: true,
        is_told: true,
        ..Reading::default()
    };
    let leaf = tag.rsplit('/').next().unwrap_or_default();
    let epoch = |value: f64| EpochShown {
        value,
        total: None,
        done: false,
        fractional: value.fract() != 0.0,
    };
    // Keras writes `epoch_loss` with the epoch as its step.
    if let Some(what) = leaf.strip_prefix("epoch_") {
        reading.epoch = Some(epoch(scalar.step as f64));
        reading.loss = words::loss_fit(what).map(|_| scalar.value);
        return Some(reading);
    }
    reading.step = Some(StepShown {
        n: scalar.step,
        total: None,
        name: "step".to_owned(),
        bar: false,
        whole_run: true,
    });
    let counts = words::counter(leaf).map(|(counts, _)| counts);
    if counts == Some(Counts::Epochs) && scalar.value >= 0.0 && scalar.value.is_finite() {
        reading.epoch = Some(epoch(scalar.value));
    } else {
        let loss = words::loss_fit(&tag).filter(|fit| *fit <= 2);
        reading.loss = loss.map(|_| scalar.value);
    }
    Some(reading)
}

#[cfg(test)]
#[path = "scalars_tests.rs"]
mod tests;
