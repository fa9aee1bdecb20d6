//! How much of a GPU's memory the command is told to use.

use std::fmt;
use std::str::FromStr;

use super::units::{mib_text, size_mib};

/// Less than this holds no framework's context, so it can't be meant.
const LEAST_MIB: f64 = 64.0;
/// More than any GPU will have for long, MiB.
pub const MOST_GPU_MIB: f64 = 64.0 * 1024.0 * 1024.0;

/// Of each GPU of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemLimit {
    /// So many MiB.
    Mib(f64),
    /// So many percent of what it has.
    Percent(f64),
}

impl FromStr for MemLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str = "write a size like 6GiB or a share like 80%";
        if let Some(number) = text.trim().strip_suffix('%') {
            return match number.trim_end().parse::<f64>() {
                Ok(share) if (1.0..=100.0).contains(&share) => Ok(Self::Percent(share)),
                Ok(_) => Err(format!(
                    "'{text}' is out of range: 1% is the least, 100% the most"
                )),
                Err(_) => Err(format!("'{text}' is no share: {FORMS}")),
            };
        }
        let mib = size_mib(text).map_err(|e| format!("{e}, or a share like 80%"))?;
        if (LEAST_MIB..=MOST_GPU_MIB).contains(&mib) {
            Ok(Self::Mib(mib))
        } else {
            Err(format!(
                "'{text}' is out of range: 64MiB is the least, 64TiB the most"
            ))
        }
    }
}

impl fmt::Display for MemLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mib(mib) => f.write_str(&mib_text(*mib)),
            Self::Percent(share) => write!(f, "{share}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MemLimit;

    #[test]
    fn limits_as_people_write_them() {
        for (text, limit) in [
            ("6GiB", MemLimit::Mib(6144.0)),
            ("1.5 GiB", MemLimit::Mib(1536.0)),
            ("80%", MemLimit::Percent(80.0)),
            (" 12.5 %", MemLimit::Percent(12.5)),
            ("100%", MemLimit::Percent(100.0)),
        ] {
            assert_eq!(text.parse(), Ok(limit), "{text}");
        }
        for (text, said) in [
            ("", "like 80%"),
            ("6", "no unit"),
            ("6GB", "unknown unit 'GB'"),
            ("much", "like 80%"),
            ("0", "out of range"),
            ("1KiB", "out of range"),
            ("99999TiB", "out of range"),
            ("-1GiB", "must start with a number"),
            ("0%", "out of range"),
            ("120%", "out of range"),
            ("-5%", "out of range"),
            ("NaN%", "out of range"),
            ("%", "is no share"),
            ("x%", "is no share"),
        ] {
            let error = text.parse::<MemLimit>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
