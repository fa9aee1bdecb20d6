//! Names of runs. Pure: the time and the salt are given.
//!
//! Owns the form of an id. Must not know clocks, files or chance.

/// The most characters of a name that an id carries.
const NAME_MAX: usize = 40;

/// `YYYYMMDD-HHMMSS-<name>-<4 hex>`.
///
/// `started` is RFC 3339 (its own offset's date and time are used). The name is made of
/// `[A-Za-z0-9._-]`, at most 40 characters, `run` where nothing is left of it.
pub fn run_id(started: &str, name: &str, salt: u16) -> String {
    let digits: String = started
        .chars()
        .take_while(|c| !matches!(c, '.' | '+' | 'Z' | 'z'))
        .filter(char::is_ascii_digit)
        .take(14)
        .collect();
    let (date, time) = digits.split_at(digits.len().min(8));
    format!("{date}-{time}-{}-{salt:04x}", safe_name(name))
}

/// A name as it may stand in a file name.
pub fn safe_name(name: &str) -> String {
    let mut safe = String::new();
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
            c
        } else {
            '-'
        };
        // A row of replaced characters says no more than one.
        if !(c == '-' && safe.ends_with('-')) {
            safe.push(c);
        }
        if safe.len() == NAME_MAX {
            break;
        }
    }
    let trimmed = safe.trim_matches(['-', '.']);
    if trimmed.is_empty() {
        "run".to_owned()
    } else {
        trimmed.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_time_and_run() {
        assert_eq!(
            run_id("2026-11-30T09:15:02.000+08:00", "train", 0x7f3a),
            "20261130-091502-train-7f3a"
        );
    }

    #[test]
    fn a_name_is_made_safe_and_short() {
        let name = |n: &str| run_id("2026-11-30T09:15:02Z", n, 1);
        assert_eq!(name("../../etc/passwd"), "20261130-091502-etc-passwd-0001");
        assert_eq!(name("a b\n\x1b[31m"), "20261130-091502-a-b-31m-0001");
        assert_eq!(name("训练"), "20261130-091502-run-0001");
        assert_eq!(name(""), "20261130-091502-run-0001");
        assert_eq!(name(&"x".repeat(900)).len(), 16 + 40 + 5);
    }
}
