//! Numbers in JSON: a whole one is written without a fraction, as whoever displayed it did,
//! and a GPU's index as a number although a MIG device goes by a name.

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

/// For `#[serde(with)]`: a GPU by its NVML index (a number) or its name (`MIG-<uuid>`).
pub mod gpu {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes an index as a number.
    pub fn serialize<S: Serializer>(gpu: &str, s: S) -> Result<S::Ok, S::Error> {
        match gpu.parse::<u32>() {
            Ok(index) => s.serialize_u32(index),
            Err(_) => s.serialize_str(gpu),
        }
    }

    /// Reads either.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Index(u32),
            Name(String),
        }
        Ok(match Written::deserialize(d)? {
            Written::Index(index) => index.to_string(),
            Written::Name(name) => name,
        })
    }
}
