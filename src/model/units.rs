//! Durations and sizes as people write them.

use std::time::Duration;

use thiserror::Error;

/// What is wrong with a quantity, in words that name the cure.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UnitError {
    /// No number at the start.
    #[error("'{0}' is not a {1}: it must start with a number, like {2}")]
    NoNumber(String, &'static str, &'static str),
    /// A number, but no unit or an unknown one.
    #[error("'{text}' has {problem}: write one of {units}, like {example}", problem = if unit.is_empty() { "no unit".to_owned() } else { format!("the unknown unit '{unit}'") })]
    Unit {
        /// What was typed.
        text: String,
        /// The part that isn't a unit.
        unit: String,
        /// Units that would do.
        units: &'static str,
        /// A right one.
        example: &'static str,
    },
    /// Out of the range that can be meant.
    #[error("'{0}' is out of range: {1}")]
    Range(String, &'static str),
}

/// A duration such as `500ms`, `1s`, `10m`, `1h30m`, `2d` (a day is 24 h); `0` needs no unit.
pub fn duration(text: &str) -> Result<Duration, UnitError> {
    const UNITS: &str = "ms, s, m, h, d";
    let trimmed = text.trim();
    if trimmed == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = trimmed;
    let mut total = 0.0_f64;
    if rest.is_empty() {
        return Err(UnitError::NoNumber(text.to_owned(), "duration", "30s"));
    }
    while !rest.is_empty() {
        let (number, after) = leading_number(rest)
            .ok_or_else(|| UnitError::NoNumber(text.to_owned(), "duration", "30s"))?;
        let end = after
            .find(|c: char| c.is_ascii_digit() || c.is_whitespace())
            .unwrap_or(after.len());
        let (unit, tail) = after.split_at(end);
        let seconds = match unit {
            "ms" => 1e-3,
            "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => {
                return Err(UnitError::Unit {
                    text: text.to_owned(),
                    unit: unit.to_owned(),
                    units: UNITS,
                    example: "30s",
                });
            }
        };
        total += number * seconds;
        rest = tail.trim_start();
    }
    Duration::try_from_secs_f64(total)
        .ok()
        .filter(|d| d.as_secs() < 366 * 86_400)
        .ok_or_else(|| UnitError::Range(text.to_owned(), "a year is the most"))
}

/// A size in MiB such as `512MiB`, `20GiB`, `1TiB`; `0` needs no unit.
pub fn size_mib(text: &str) -> Result<f64, UnitError> {
    const UNITS: &str = "KiB, MiB, GiB, TiB";
    if text.trim() == "0" {
        return Ok(0.0);
    }
    let (number, unit) = leading_number(text.trim())
        .ok_or_else(|| UnitError::NoNumber(text.to_owned(), "size", "8GiB"))?;
    let factor = match unit {
        "KiB" => 1.0 / 1024.0,
        "MiB" => 1.0,
        "GiB" => 1024.0,
        "TiB" => 1024.0 * 1024.0,
        _ => {
            return Err(UnitError::Unit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                units: UNITS,
                example: "8GiB",
            });
        }
    };
    Ok(number * factor)
}

/// A number at the start of `text`, and what follows it.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    number.parse().ok().map(|n| (n, rest.trim_start()))
}

/// A span of seconds as a person writes it: `0.4 s`, `31.4 s`, `12m 05s`, `3h 04m`, `2d 03h`.
pub fn seconds_text(seconds: f64) -> String {
    let s = seconds.max(0.0);
    if s < 59.95 {
        return format!("{s:.1} s");
    }
    let whole = s.round() as u64;
    let (d, h, m, s) = (
        whole / 86_400,
        whole / 3600 % 24,
        whole / 60 % 60,
        whole % 60,
    );
    match (d, h) {
        (0, 0) => format!("{m}m {s:02}s"),
        (0, _) => format!("{h}h {m:02}m"),
        _ => format!("{d}d {h:02}h"),
    }
}

/// A plain number as a person writes it: `97`, `48.2`; a small one with three digits, `0.00312`.
pub fn number_text(number: f64) -> String {
    let decimals = if number == 0.0 || number.abs() >= 1.0 || !number.is_finite() {
        1
    } else {
        // Of 0.00312 the logarithm is -2.5: 5 decimals.
        (2.0 - number.abs().log10().floor()).clamp(1.0, 12.0) as usize
    };
    let text = format!("{number:.decimals$}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0" } else { short }.to_owned()
}

/// Mebibytes as a person writes them: `512 MiB`, `6.0 GiB`.
pub fn mib_text(mib: f64) -> String {
    if mib >= 1024.0 {
        format!("{:.1} GiB", mib / 1024.0)
    } else {
        format!("{mib:.0} MiB")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, mib) in [
            ("512MiB", 512.0),
            ("1.5 GiB", 1536.0),
            ("1TiB", 1_048_576.0),
            ("0", 0.0),
        ] {
            assert_eq!(size_mib(text), Ok(mib), "{text}");
        }
        for text in ["", "8", "8GB", "8 gib", "GiB", "-1GiB", "much"] {
            assert!(size_mib(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_as_people_write_them() {
        for (text, ms) in [
            ("500ms", 500),
            ("1s", 1000),
            ("1.5s", 1500),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("2d", 172_800_000),
            ("0", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn a_wrong_unit_names_the_right_ones() {
        let said = duration("5parsecs").map_err(|e| e.to_string());
        assert_eq!(
            said,
            Err(
                "'5parsecs' has the unknown unit 'parsecs': write one of ms, s, m, h, d, like 30s"
                    .into()
            )
        );
        assert_eq!(
            duration("5").map_err(|e| e.to_string()),
            Err("'5' has no unit: write one of ms, s, m, h, d, like 30s".into())
        );
        assert!(duration("soon").is_err());
        assert!(duration("").is_err());
        assert!(duration("-1s").is_err());
        assert!(duration("1e9d").is_err());
        assert!(duration("99999999d").is_err());
    }

    #[test]
    fn spans_read_naturally() {
        assert_eq!(seconds_text(0.42), "0.4 s");
        assert_eq!(seconds_text(725.0), "12m 05s");
        assert_eq!(seconds_text(11_040.0), "3h 04m");
        assert_eq!(seconds_text(59.96), "1m 00s");
        assert_eq!(seconds_text(183_600.0), "2d 03h");
    }

    #[test]
    fn numbers_keep_what_counts() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (97.04, "97"),
            (48.249, "48.2"),
            (1200.0, "1200"),
            (-3.25, "-3.2"),
            (0.5, "0.5"),
            (0.003_124_9, "0.00312"),
            (1e-15, "0"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(number_text(number), text);
        }
    }
}
