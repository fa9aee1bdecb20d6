//! Round numbers for axes, and times along a run.
//!
//! Owns where ticks stand and how they are written. Pure.

use crate::model::units::seconds_text;

/// The least of 1, 2, 5 times a power of ten that isn't below this.
pub fn round_up(x: f64) -> f64 {
    if !x.is_finite() || x <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(x.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power);
    steps
        .into_iter()
        .find(|step| *step >= x * 0.999_999)
        .unwrap_or(x)
}

/// Seconds between the marks of a time axis, so that about `n` fit.
pub fn time_step(span_s: f64, n: f64) -> f64 {
    const STEPS: [f64; 22] = [
        1.0,
        2.0,
        5.0,
        10.0,
        15.0,
        30.0,
        60.0,
        120.0,
        300.0,
        600.0,
        900.0,
        1800.0,
        3600.0,
        7200.0,
        10_800.0,
        21_600.0,
        43_200.0,
        86_400.0,
        172_800.0,
        345_600.0,
        604_800.0,
        1_209_600.0,
    ];
    let wanted = span_s / n;
    if wanted < 1.0 {
        return round_up(wanted);
    }
    STEPS
        .into_iter()
        .find(|s| *s >= wanted)
        .unwrap_or_else(|| round_up(wanted))
}

/// A mark of the time axis: `0`, `30 s`, `5 m`, `1 h 30 m`, `2 d`.
pub fn time_mark(seconds: f64, step: f64) -> String {
    if seconds == 0.0 {
        return "0".to_owned();
    }
    if step < 1.0 {
        return seconds_text(seconds);
    }
    let whole = seconds.round() as u64;
    let parts = [
        (whole / 86_400, "d"),
        (whole / 3600 % 24, "h"),
        (whole / 60 % 60, "m"),
        (whole % 60, "s"),
    ];
    let shown: Vec<String> = parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, unit)| format!("{n} {unit}"))
        .collect();
    shown.join(" ")
}

/// A value as a person reads it: three digits or so.
pub fn value_text(x: f64) -> String {
    let size = x.abs();
    let decimals = match size {
        s if s == 0.0 || s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        s if s >= 0.01 => 3,
        s if s >= 0.001 => 4,
        _ => return format!("{x:.1e}"),
    };
    let text = format!("{x:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        let rounded = [81.0, 0.23, 400.0, f64::NAN].map(|x| round_up(x).to_string());
        assert_eq!(rounded, ["100", "0.25", "500", "1"]);
        let steps = [31.4, 604_800.0].map(|span| time_step(span, 6.0).to_string());
        assert_eq!(steps, ["10", "172800"]);
        assert_eq!(time_mark(5400.0, 1800.0), "1 h 30 m");
        assert_eq!(time_mark(0.5, 0.5), "0.5 s");
        assert_eq!(
            ["0", "81.3", "2.44", "0.012", "312"],
            [0.0, 81.3, 2.44, 0.012, 312.4]
                .map(value_text)
                .each_ref()
                .map(String::as_str)
        );
    }
}
