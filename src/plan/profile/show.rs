//! A merged tree as YAML, each value with where it comes from. No secret is in it.

use super::keys::{Kind, PROFILE};
use super::node::{Node, Value};
use crate::model::SecretRef;
use crate::plan::{argv, secrets};

/// The tree as text.
pub fn shown(tree: &Node) -> String {
    let mut lines = Vec::new();
    map(tree, 0, &mut Vec::new(), &mut lines);
    lines.push(String::new());
    lines.join("\n")
}

fn map<'a>(node: &'a Node, depth: usize, path: &mut Vec<&'a str>, lines: &mut Vec<String>) {
    for (key, value) in node.entries() {
        path.push(&key.name);
        let start = format!("{}{}:", "  ".repeat(depth), key.name);
        if matches!(&value.value, Value::Map(entries) if !entries.is_empty()) {
            lines.push(start);
            map(value, depth + 1, path, lines);
        } else if is_block(value) {
            lines.push(format!("{start}{}", origin(value)));
            let indent = "  ".repeat(depth + 1);
            for item in value.items() {
                lines.push(format!("{indent}- {}", flow(item, path)));
            }
        } else {
            lines.push(format!("{start} {}{}", flow(value, path), origin(value)));
        }
        path.pop();
    }
}

/// A list of maps: one line an item.
fn is_block(node: &Node) -> bool {
    node.items()
        .iter()
        .any(|item| matches!(item.value, Value::Map(_)))
}

fn origin(node: &Node) -> String {
    format!("  # {}:{}", node.place.source, node.place.line)
}

/// A value on one line. JSON is YAML.
fn flow<'a>(node: &'a Node, path: &mut Vec<&'a str>) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Flag(flag) => flag.to_string(),
        Value::Whole(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => scalar(text, path),
        Value::List(items) => {
            let items: Vec<String> = if is_command(path) {
                // An option and its secret may be two words.
                let words: Vec<_> = items
                    .iter()
                    .filter_map(Node::text)
                    .map(Into::into)
                    .collect();
                argv::recorded(&words)
                    .iter()
                    .map(|word| quoted(word))
                    .collect()
            } else {
                items.iter().map(|item| flow(item, path)).collect()
            };
            format!("[{}]", items.join(", "))
        }
        Value::Map(entries) => {
            let mut shown = Vec::new();
            for (key, value) in entries {
                path.push(&key.name);
                shown.push(format!("{}: {}", key.name, flow(value, path)));
                path.pop();
            }
            format!("{{{}}}", shown.join(", "))
        }
    }
}

fn is_command(path: &[&str]) -> bool {
    match path {
        ["tell", "channels", _, "argv"] => true,
        ["act", .., last] => *last == "command",
        _ => false,
    }
}

/// What stands at a place of a profile.
fn kind_at(path: &[&str]) -> Option<&'static Kind> {
    let (first, rest) = path.split_first()?;
    let first = &PROFILE.iter().find(|key| key.name == *first)?.kind;
    rest.iter().try_fold(first, |kind, name| below(kind, name))
}

fn below(kind: &'static Kind, name: &str) -> Option<&'static Kind> {
    match kind {
        Kind::Section(keys) => keys.iter().find(|k| k.name == name).map(|k| &k.kind),
        Kind::Map(inner) => Some(inner),
        Kind::List(inner) => below(inner, name),
        _ => None,
    }
}

fn scalar(text: &str, path: &[&str]) -> String {
    match path {
        _ if matches!(kind_at(path), Some(Kind::Secret)) => {
            quoted(&SecretRef::parse(text).to_string())
        }
        ["env", .., name] => quoted(&secrets::mask_variable(name, text)),
        ["tell", "channels", _, "template"] => quoted(secrets::MASK),
        _ if is_plain(text) => text.to_owned(),
        _ => quoted(text),
    }
}

/// Text that reads as the same text without quotes.
fn is_plain(text: &str) -> bool {
    let first = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let rest = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.'));
    first
        && rest
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "nan" | "inf"
        )
}

/// In double quotes, control characters escaped.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::profile::keys::CHANNEL;

    /// Every key that takes a secret, whatever it is called.
    #[test]
    fn no_key_for_a_secret_shows_one() {
        let mut checked = 0;
        for key in CHANNEL {
            let shown = match &key.kind {
                Kind::Secret => scalar("s3cret", &["tell", "channels", "x", key.name]),
                Kind::Map(Kind::Secret) => {
                    scalar("s3cret", &["tell", "channels", "x", key.name, "y"])
                }
                _ => continue,
            };
            assert_eq!(shown, "\"***\"", "{}", key.name);
            checked += 1;
        }
        assert_eq!(checked, 5);
        let kept = scalar("env:TOKEN", &["tell", "channels", "x", "token"]);
        assert_eq!(kept, "\"env:TOKEN\"");
    }
}
