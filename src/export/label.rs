//! Labels: whatever text comes in, what goes out is short, one line, and escaped.

/// The most characters of a value.
const MOST: usize = 64;

/// Names and values of one series, in the order written.
pub type Labels = Vec<(&'static str, String)>;

/// A value as people may see it in a table: no control characters, no marks that reorder what
/// is written around them, no more than 64 characters.
pub fn cleaned(text: &str) -> String {
    let mut clean = String::new();
    let mut n = 0;
    for c in text.trim().chars() {
        let c = if is_unsafe(c) { ' ' } else { c };
        // A row of replaced characters says no more than one.
        if c == ' ' && clean.ends_with(' ') {
            continue;
        }
        if n == MOST - 1 {
            clean.push('…');
            break;
        }
        clean.push(c);
        n += 1;
    }
    clean
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{061c}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// `{name="value",...}`, or nothing. An empty value is the same as no label, and is left out.
pub fn written(labels: &Labels) -> String {
    let mut text = String::new();
    for (name, value) in labels {
        let value = cleaned(value);
        if value.is_empty() {
            continue;
        }
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(name);
        text.push_str("=\"");
        escape_into(&mut text, &value);
        text.push('"');
    }
    if !text.is_empty() {
        text.push('}');
    }
    text
}

fn escape_into(text: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str(r"\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str(r"\n"),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_is_one_short_line() {
        assert_eq!(cleaned("a \"b\"\\"), "a \"b\"\\");
        assert_eq!(cleaned(" a\n\t\x1b[31mb\u{202e}c "), "a [31mb c");
        assert_eq!(cleaned("训练"), "训练");
        let long = cleaned(&"长".repeat(900));
        assert_eq!(long.chars().count(), MOST);
        assert!(long.ends_with('…'));
        assert_eq!(cleaned("x".repeat(63).as_str()), "x".repeat(63));
    }

    #[test]
    fn quotes_and_backslashes_are_escaped() {
        let labels = vec![
            ("name", "say \"hi\" \\n".to_owned()),
            ("user", String::new()),
        ];
        assert_eq!(written(&labels), r#"{name="say \"hi\" \\n"}"#);
        assert_eq!(written(&Vec::new()), "");
    }

    /// What a parser makes of what was written.
    fn read_back(text: &str) -> Option<String> {
        let mut rest = text.strip_prefix("{name=\"")?.strip_suffix("\"}")?.chars();
        let mut value = String::new();
        while let Some(c) = rest.next() {
            match c {
                '"' | '\n' => return None,
                '\\' => value.push(match rest.next()? {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    _ => return None,
                }),
                c => value.push(c),
            }
        }
        Some(value)
    }

    proptest! {
        #[test]
        fn any_text_survives_as_its_cleaned_self(text in any::<String>()) {
            let labels = vec![("name", text.clone())];
            let (clean, written) = (cleaned(&text), written(&labels));
            prop_assert!(clean.chars().count() <= MOST);
            prop_assert!(!clean.chars().any(is_unsafe));
            if clean.is_empty() {
                prop_assert_eq!(written, "");
            } else {
                prop_assert_eq!(read_back(&written), Some(clean));
            }
        }

        #[test]
        fn bytes_that_are_no_text_do_too(bytes in any::<Vec<u8>>()) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let written = written(&vec![("name", text.clone())]);
            prop_assert_eq!(written.is_empty(), cleaned(&text).is_empty());
            prop_assert!(written.is_empty() || read_back(&written).is_some());
        }
    }
}
