//! Numbers in JSON: a whole one is written without a fraction, as whoever displayed it did.

use serde::{Deserialize, Deserializer, Serializer};

/// Beyond this not every whole number is a float (2^53).
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Writes one number.
pub fn put<S: Serializer>(number: f64, s: S) -> Result<S::Ok, S::Error> {
    if number.fract() == 0.0 && number.abs() < EXACT {
        s.serialize_i64(number as i64)
    } else {
        s.serialize_f64(number)
    }
}

/// For `#[serde(with)]`: writes a number or null.
#[allow(clippy::ref_option, reason = "serde passes a reference to the field")]
pub fn serialize<S: Serializer>(number: &Option<f64>, s: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => put(*number, s),
        None => s.serialize_none(),
    }
}

/// For `#[serde(with)]`: reads a number or null.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    Option::deserialize(d)
}
