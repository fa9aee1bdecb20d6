//! Whether a tree has the keys and types that the table asks for.
//!
//! Owns what is said about a wrong key or type. Values that are secret, or may be one in the
//! wrong place, are never repeated.

use super::error::{ProfileError, key_name, quoted, shown};
use super::keys::{KeyOf, Kind, names};
use super::node::{Key, Node, Value};
use super::values;
use crate::model::names::FINDINGS;
use crate::plan::nearest::suggestion;

/// The first mistake in a tree.
pub fn check(node: &Node, section: &'static [KeyOf]) -> Result<(), ProfileError> {
    keys(node, section, "")
}

fn node(node: &Node, kind: &'static Kind, path: &str) -> Result<(), ProfileError> {
    if node.is_null() {
        return Ok(());
    }
    match kind {
        Kind::List(kind) => items(node, kind, path),
        Kind::Map(kind) => named(node, kind, path),
        Kind::Section(section) => keys(node, section, path),
        Kind::Findings(section) => findings(node, section, path),
        Kind::Action => action(node, path),
        _ => scalar(node, kind).map_err(|what| ProfileError::new(&node.place, path, what)),
    }
}

fn scalar(node: &Node, kind: &Kind) -> Result<(), String> {
    match kind {
        Kind::Text | Kind::Secret | Kind::Expression => text(node).map(drop),
        Kind::Flag => match node.flag() {
            Some(_) => Ok(()),
            None => Err(instead(node, "true or false")),
        },
        Kind::Switch => match (node.flag(), node.text()) {
            (Some(_), _) | (_, Some("auto")) => Ok(()),
            _ => Err(instead(node, "auto, true or false")),
        },
        Kind::Choice(words) => choice(node, words),
        Kind::Duration(word) => match node.text() {
            Some(text) if Some(text) == *word => Ok(()),
            Some(text) if shown(text).is_none() => {
                Err("this is no duration: write it like 30s or 10m".to_owned())
            }
            _ => values::duration(node).map(drop),
        },
        Kind::Repeat => values::repeat(node).map(drop),
        Kind::Gpus => values::gpu_choice(node).map(drop),
        Kind::Size => values::size_mib(node).map(drop),
        Kind::MemLimit => values::mem_limit(node).map(drop),
        Kind::Listen => values::listen(node).map(drop),
        Kind::Percent => match node.number() {
            Some(number) if (0.0..=100.0).contains(&number) => Ok(()),
            Some(_) => Err("the number must be from 0 to 100".to_owned()),
            None => Err(instead(node, "a number from 0 to 100, without a unit")),
        },
        Kind::Count => match node.value {
            Value::Whole(0..=1_000_000_000) => Ok(()),
            _ => Err(instead(node, "a whole number, 0 or more")),
        },
        Kind::List(_) | Kind::Map(_) | Kind::Section(_) | Kind::Findings(_) | Kind::Action => {
            Ok(())
        }
    }
}

fn text(node: &Node) -> Result<&str, String> {
    node.text().ok_or_else(|| match node.value {
        Value::Flag(_) | Value::Whole(_) | Value::Number(_) => {
            format!(
                "text must stand here, not {}: put it in quotes",
                node.kind()
            )
        }
        _ => format!("text must stand here, not {}", node.kind()),
    })
}

fn choice(node: &Node, words: &[&'static str]) -> Result<(), String> {
    let list = words.join(", ");
    match node.text() {
        Some(text) if words.contains(&text) => Ok(()),
        Some(text) => {
            let near = shown(text).map(|text| suggestion(text, words.iter().copied()));
            let near = near.unwrap_or_default();
            Err(format!(
                "{} won't do: write one of {list}{near}",
                quoted(text)
            ))
        }
        None => Err(format!("{} won't do: write one of {list}", node.kind())),
    }
}

/// What must stand here in the place of what does.
fn instead(node: &Node, right: &str) -> String {
    match node.text() {
        Some(text) => format!("{} won't do: write {right}", quoted(text)),
        None => format!("{} won't do: write {right}", node.kind()),
    }
}

fn items(list: &Node, kind: &'static Kind, path: &str) -> Result<(), ProfileError> {
    if !matches!(list.value, Value::List(_)) {
        let what = format!("a list must stand here, like [...], not {}", list.kind());
        return Err(ProfileError::new(&list.place, path, what));
    }
    for (i, item) in list.items().iter().enumerate() {
        let path = format!("{path}[{i}]");
        if item.is_null() {
            return Err(ProfileError::new(
                &item.place,
                path,
                "this item is empty: fill it or leave it out",
            ));
        }
        node(item, kind, &path)?;
    }
    Ok(())
}

fn named(map: &Node, kind: &'static Kind, path: &str) -> Result<(), ProfileError> {
    is_map(map, path)?;
    for (key, value) in map.entries() {
        if !is_name(&key.name) {
            let what = "this can't be a name: use letters, digits, '_' and '-'";
            return Err(ProfileError::new(&key.place, path, what));
        }
        node(value, kind, &below(path, key))?;
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    !name.is_empty() && name.len() <= 128 && name.bytes().all(plain)
}

fn keys(map: &Node, section: &'static [KeyOf], path: &str) -> Result<(), ProfileError> {
    is_map(map, path)?;
    for (key, value) in map.entries() {
        match section.iter().find(|known| known.name == key.name) {
            Some(known) => node(value, &known.kind, &below(path, key))?,
            None => return Err(unknown(key, path, names(section))),
        }
    }
    Ok(())
}

fn findings(map: &Node, section: &'static [KeyOf], path: &str) -> Result<(), ProfileError> {
    is_map(map, path)?;
    for (key, value) in map.entries() {
        if !FINDINGS.contains(&key.name.as_str()) {
            return Err(unknown(key, path, FINDINGS.iter().copied()));
        }
        let path = below(path, key);
        keys_or_null(value, section, &path)?;
        let literal = ["below", "for"]
            .iter()
            .find(|name| value.get(name).is_some());
        if let Some(name) = literal.filter(|_| key.name != "idle_holding") {
            let what = format!(
                "'{name}' is known to idle_holding alone: use 'after', or a rule of your own"
            );
            return Err(ProfileError::new(&value.place, path, what));
        }
    }
    Ok(())
}

fn keys_or_null(map: &Node, section: &'static [KeyOf], path: &str) -> Result<(), ProfileError> {
    if map.is_null() {
        return Ok(());
    }
    keys(map, section, path)
}

fn action(node: &Node, path: &str) -> Result<(), ProfileError> {
    const WITH_MORE: &[KeyOf] = &[
        KeyOf {
            name: "command",
            kind: Kind::List(&Kind::Text),
            doc: "the program and its arguments",
        },
        KeyOf {
            name: "signal",
            kind: Kind::Text,
            doc: "the signal's name",
        },
    ];
    match &node.value {
        Value::Map(_) => keys(node, WITH_MORE, path),
        _ if matches!(node.text(), Some("stacks" | "stop" | "restart")) => Ok(()),
        _ => {
            let what = "stacks, {command: [PROGRAM, ARGUMENT...]}, {signal: NAME}, stop or restart";
            Err(ProfileError::new(&node.place, path, instead(node, what)))
        }
    }
}

fn is_map(map: &Node, path: &str) -> Result<(), ProfileError> {
    if matches!(map.value, Value::Map(_)) {
        return Ok(());
    }
    let what = format!("keys and values must stand here, not {}", map.kind());
    Err(ProfileError::new(&map.place, path, what))
}

fn unknown(
    key: &Key,
    path: &str,
    known: impl Iterator<Item = &'static str> + Clone,
) -> ProfileError {
    let near = suggestion(&key.name, known.clone());
    let what = if near.is_empty() {
        let known: Vec<&str> = known.collect();
        format!("there is no such key; known are {}", known.join(", "))
    } else {
        format!("there is no such key{near}")
    };
    ProfileError::new(&key.place, below(path, key), what)
}

fn below(path: &str, key: &Key) -> String {
    let name = key_name(&key.name);
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
