//! Whom a patrol leaves alone.
//!
//! Owns the patterns. Pure.

use crate::model::Exemption;

/// The first exemption that a job of this user with this command has.
pub fn exemption<'a>(
    list: &'a [Exemption],
    user: &str,
    uid: u32,
    command: &str,
) -> Option<&'a Exemption> {
    let number = uid.to_string();
    list.iter().find(|e| {
        let by_user = e.user.as_ref().is_none_or(|u| u == user || *u == number);
        by_user && e.command.as_ref().is_none_or(|p| fits(p, command))
    })
}

/// Whether the whole text is as the pattern says.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where the last `*` stood, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || text.get(t) == Some(c) => {
                p += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((at, taken)) => {
                    *taken += 1;
                    (p, t) = (*at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(user: Option<&str>, command: Option<&str>) -> Vec<Exemption> {
        vec![Exemption {
            user: user.map(str::to_owned),
            command: command.map(str::to_owned),
            why: None,
        }]
    }

    #[test]
    fn what_is_absent_fits_all_and_both_must_fit() {
        let fits = |user, command| {
            exemption(
                &list(user, command),
                "ana",
                1000,
                "python jupyter-lab --port 1",
            )
            .is_some()
        };
        assert!(fits(Some("ana"), None) && fits(Some("1000"), None));
        assert!(fits(None, Some("*jupyter*")) && fits(Some("ana"), Some("python *")));
        assert!(!fits(Some("an"), None) && !fits(Some("bob"), Some("*jupyter*")));
        assert!(!fits(Some("ana"), Some("jupyter*")) && !fits(Some("ana"), Some("*train*")));
    }

    #[test]
    fn patterns() {
        for (pattern, text, wanted) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("训*", "训练.py", true),
            ("**x", "yx", true),
        ] {
            assert_eq!(fits(pattern, text), wanted, "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_fits_itself_with_parts_left_open(text in "[a-c]{0,12}", from in 0_usize..12, n in 0_usize..12) {
            let from = from.min(text.len());
            let to = (from + n).min(text.len());
            let pattern = format!("{}*{}", &text[..from], &text[to..]);
            prop_assert!(fits(&pattern, &text));
            let longer = format!("{text}x");
            prop_assert!(!fits(&text, &longer));
        }
    }
}
