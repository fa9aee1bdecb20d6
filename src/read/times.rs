//! Remaining time and rates, as they are displayed.
//!
//! Owns how durations are written. Must not know whether what is displayed is right.

use super::token::{Kind, Token};
use super::words;

/// Remaining seconds as displayed.
pub(super) fn eta(tokens: &[Token<'_>], running: bool) -> Option<f64> {
    for (i, t) in tokens.iter().enumerate() {
        // [00:12<00:34
        if t.is('<') && i > 0 && matches!(tokens[i - 1].kind, Kind::Clock(_)) {
            return span(tokens, i + 1);
        }
        if t.is_word() && words::is_remaining(t.text) {
            let skip = tokens[i + 1..]
                .iter()
                .take(2)
                .take_while(|t| t.is(':') || t.is('=') || (t.is_word() && t.text == "time"))
                .count();
            let bare = t.text.to_lowercase().ends_with("_seconds") || t.text.ends_with("_s");
            let number = tokens.get(i + 1 + skip)?;
            return span(tokens, i + 1 + skip).or_else(|| number.number().filter(|_| bare));
        }
    }
    // Keras shows the remaining time before the pace while the bar runs: "2s 49ms/step".
    tokens.windows(2).find_map(|w| {
        let paced = w[1].unit.ends_with("s/step") && running;
        if paced { seconds(&w[0]) } else { None }
    })
}

/// A duration in one or more parts: `4m10s`, `0h 1m 2s`, `1 day, 2:03:04`, `3.5 hours`.
fn span(tokens: &[Token<'_>], from: usize) -> Option<f64> {
    let mut sum = None;
    let mut i = from;
    while let Some(t) = tokens.get(i) {
        if t.is(',') && sum.is_some() {
            i += 1;
            continue;
        }
        let apart = tokens
            .get(i + 1)
            .filter(|w| w.is_word() && t.unit.is_empty());
        let (part, used) = match (t.number(), apart.and_then(|w| unit(w.text))) {
            (Some(n), Some(scale)) => (Some(n * scale), 2),
            _ => (seconds(t), 1),
        };
        let Some(part) = part else { break };
        sum = Some(sum.unwrap_or(0.0) + part);
        i += used;
        // A clock is the last part.
        if matches!(t.kind, Kind::Clock(_)) {
            break;
        }
    }
    sum
}

/// Seconds in one of these.
fn unit(word: &str) -> Option<f64> {
    Some(match word.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

fn seconds(token: &Token<'_>) -> Option<f64> {
    match token.kind {
        Kind::Clock(s) => Some(s),
        Kind::Int(n) | Kind::Float(n) => unit(token.unit).map(|scale| n * scale),
        _ => None,
    }
}

/// Steps a second as displayed.
pub(super) fn rate(tokens: &[Token<'_>], beside_bar: bool) -> Option<f64> {
    let shown = tokens.iter().enumerate().find_map(|(i, t)| {
        let n = t.number().filter(|n| n.is_finite() && *n > 0.0)?;
        if !t.unit.is_empty() {
            return pace(n, t.unit, beside_bar);
        }
        // "19.5 steps/s", "global_step/sec: 122.6", "11.65 batches/s"
        let behind = tokens
            .get(i + 1)
            .filter(|w| w.is_word() && w.text.contains('/'));
        if let Some(word) = behind {
            return pace(n, word.text, beside_bar);
        }
        let mark = i
            .checked_sub(1)
            .filter(|m| tokens[*m].is(':') || tokens[*m].is('='))?;
        let key = mark.checked_sub(1).map(|k| &tokens[k])?;
        if key.is_word() && key.text.contains('/') {
            return pace(n, key.text, false);
        }
        None
    });
    shown.or_else(|| named(tokens))
}

/// Names of steps a second, and of seconds a step.
const RATES: [&str; 5] = [
    "ups",
    "steps_per_second",
    "steps_per_sec",
    "it_per_sec",
    "iters_per_sec",
];
const TIMES: [&str; 5] = [
    "iter_time",
    "step_time",
    "time_per_step",
    "sec_per_step",
    "step_avg",
];

/// `steps_per_second=12.1`, `ups=9.8`, `iter_time: 0.312s`, `step_avg:123.11ms`.
fn named(tokens: &[Token<'_>]) -> Option<f64> {
    tokens.windows(3).find_map(|w| {
        if !(w[0].is_word() && (w[1].is(':') || w[1].is('='))) {
            return None;
        }
        let n = w[2].number().filter(|n| n.is_finite() && *n > 0.0)?;
        let name = w[0].text.strip_prefix("train_").unwrap_or(w[0].text);
        let is = |names: &[&str]| names.iter().any(|n| name.eq_ignore_ascii_case(n));
        if is(&RATES) {
            return w[2].unit.is_empty().then_some(n);
        }
        let scale = match w[2].unit {
            "ms" => 1e-3,
            "s" | "" => 1.0,
            _ => return None,
        };
        is(&TIMES).then(|| 1.0 / (n * scale))
    })
}

fn pace(n: f64, unit: &str, beside_bar: bool) -> Option<f64> {
    let (what, per) = unit.rsplit_once('/')?;
    let is_step = |word: &str| {
        word == "it" || words::counter(word).is_some_and(|(c, _)| c != words::Counts::Epochs)
    };
    let is_epoch =
        |word: &str| words::counter(word).is_some_and(|(c, _)| c == words::Counts::Epochs);
    if matches!(per, "s" | "sec" | "second") {
        let (factor, bytes) = match what.strip_prefix('k') {
            Some(rest) if rest.len() > 1 => (1e3, false),
            _ => words::scale(what),
        };
        let counted = is_step(what) || (beside_bar && !bytes && !is_epoch(what));
        return counted.then_some(
            n * if what.len() > 1 || factor > 1.0 {
                factor
            } else {
                1.0
            },
        );
    }
    let scale = match what {
        "s" | "sec" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        _ => return None,
    };
    let counted = is_step(per) || (beside_bar && !is_epoch(per));
    (counted && n > 0.0).then(|| 1.0 / (n * scale))
}
