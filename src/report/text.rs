//! Words and numbers as all of our texts show them.
//!
//! Owns the sanitiser: every text that comes from elsewhere (names, arguments, paths, what a
//! process calls itself, a driver's message) passes `clean` before a person's terminal sees
//! it, so that nothing recorded can move a cursor, set a title or hide behind a line's end.
//! Our own words are ASCII, without escape codes and without `\r`.

use nix::sys::signal::Signal;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::model::{Exit, Outcome, RunState, Summary, TimeSpent};

/// The text with every control character replaced by `?`: C0 (with newlines and tabs), DEL,
/// C1, line separators, and the marks that reorder what is written around them.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if is_unsafe(c) { '?' } else { c })
        .collect()
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{061c}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The text, cut to so many columns; `...` stands for the rest.
pub fn clip(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut width = 3;
    for c in text.chars() {
        width += c.width().unwrap_or(0);
        if width > columns {
            break;
        }
        kept.push(c);
    }
    kept + "..."
}

/// The text and spaces up to so many columns.
pub fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

/// Arguments as a shell would take them.
pub fn command(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quote(word)).collect();
    words.join(" ")
}

/// One word as a shell would take it.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// An RFC 3339 time for people: date, time of day to the second, offset.
pub fn when(time: &str) -> String {
    let (Some(date), Some(clock)) = (time.get(..10), time.get(11..19)) else {
        return time.to_owned();
    };
    let rest = time.get(19..).unwrap_or_default();
    let offset = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    format!("{date} {clock} {offset}")
}

/// A number with at most one decimal: `48.2`, `97`.
pub fn short(x: f64) -> String {
    let rounded = (x * 10.0).round() / 10.0;
    format!("{rounded}")
}

/// Joules for people: `812 J`, `6.0 kJ`, `1.3 kWh`.
pub fn energy(joules: f64) -> String {
    if joules < 1000.0 {
        format!("{joules:.0} J")
    } else if joules < 3.6e6 {
        format!("{:.1} kJ", joules / 1e3)
    } else {
        format!("{:.1} kWh", joules / 3.6e6)
    }
}

/// `SIGTERM`, or `signal 34`.
pub fn signal(number: i32) -> String {
    Signal::try_from(number).map_or_else(
        |_| format!("signal {number}"),
        |signal| signal.as_str().to_owned(),
    )
}

/// `exit code 3`, `SIGSEGV`; nothing while it runs.
pub fn exit(exit: Exit) -> Option<String> {
    let by_signal = exit.signal.map(signal);
    by_signal.or_else(|| exit.code.map(|code| format!("exit code {code}")))
}

/// Where a run stands, in one word.
pub fn standing(state: RunState, outcome: Option<Outcome>) -> &'static str {
    match (outcome, state) {
        (Some(Outcome::Ok), _) => "ok",
        (Some(Outcome::Failed), _) => "failed",
        (Some(Outcome::Killed), _) => "killed",
        (Some(Outcome::TimedOut), _) => "timed out",
        (Some(Outcome::Stopped), _) => "stopped",
        (Some(Outcome::Cancelled), _) | (None, RunState::Cancelled) => "cancelled",
        (Some(Outcome::Lost), _) | (None, RunState::Lost) => "lost",
        (None, RunState::Running) => "running",
        (None, RunState::Finished) => "finished",
    }
}

/// How far it came: `epoch 2/2, step 200/200, 100 %`; `None` where nothing is known.
pub fn progress(summary: &Summary) -> Option<String> {
    let of = |what: &str, n: Option<String>, total: Option<String>| {
        let n = n?;
        Some(match total {
            Some(total) => format!("{what} {n}/{total}"),
            None => format!("{what} {n}"),
        })
    };
    let float = |x: Option<f64>| x.map(|x| format!("{x}"));
    let whole = |x: Option<u64>| x.map(|x| format!("{x}"));
    list([
        of("epoch", float(summary.epoch), float(summary.epochs)),
        of("step", whole(summary.step), whole(summary.steps)),
        summary.overall_pct.map(|pct| format!("{} %", short(pct))),
    ])
}

/// What the time was spent on: `82 % training, 11 % evaluating, 7 % starting`, the largest part
/// first, those under half a percent left out; `None` where nothing was watched.
pub fn spent(time: &TimeSpent) -> Option<String> {
    let total = time.total_s();
    let mut parts = time.parts();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> = parts
        .iter()
        .filter(|(_, s)| total > 0.0 && s / total >= 0.005)
        .map(|(name, s)| format!("{:.0} % {name}", 100.0 * s / total))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The text with something before and after it; nothing where there is none.
pub fn around(before: &str, text: Option<&str>, after: &str) -> String {
    text.map_or_else(String::new, |text| format!("{before}{text}{after}"))
}

/// The parts that are known, joined by commas; `None` where none is.
pub fn list<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let known: Vec<String> = parts.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_can_drive_a_terminal() {
        assert_eq!(
            clean("a\x1b[31m\r\n\t\u{9b}2J\u{7f}\u{202e}训练"),
            "a?[31m????2J??训练"
        );
        assert_eq!(
            command(&["a b".into(), "it's".into(), String::new(), "--x=1".into()]),
            r"'a b' 'it'\''s' '' --x=1"
        );
    }

    #[test]
    fn columns_count_wide_characters() {
        assert_eq!(pad("训练", 6), "训练  ");
        assert_eq!(clip("训练训练训练", 7), "训练...");
        assert_eq!(clip("short", 7), "short");
    }

    #[test]
    fn times_and_numbers_for_people() {
        assert_eq!(
            when("2026-11-30T09:15:02.000+08:00"),
            "2026-11-30 09:15:02 +08:00"
        );
        assert_eq!(when("soon"), "soon");
        assert_eq!(when("训练训练训练训练"), "训练训练训练训练");
        assert_eq!(short(48.249), "48.2");
        assert_eq!(short(97.0), "97");
        assert_eq!(energy(6044.0), "6.0 kJ");
        assert_eq!(energy(7.2e6), "2.0 kWh");
        assert_eq!(signal(15), "SIGTERM");
        assert_eq!(signal(40), "signal 40");
    }
}
