//! A profile as it was written: values, each with the place where it stands.
//!
//! Owns the tree that layers are merged in, so that a mistake, or the question where a value
//! comes from, is answered with a file, line and column.

use std::fmt;
use std::sync::Arc;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the user knows it, or the name of an embedded one.
    pub source: Arc<str>,
    /// From 1.
    pub line: u64,
    /// From 1, in characters.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.source, self.line, self.column)
    }
}

/// A value and its place. It may be a secret, so it has no `Debug` that shows it.
#[derive(Clone, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// The value.
    pub value: Value,
}

/// What YAML knows.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// Nothing: as if the key were not there.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// Any other number.
    Number(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys in the order written, none twice.
    Map(Vec<(Key, Node)>),
}

/// A key and its place.
#[derive(Clone, PartialEq)]
pub struct Key {
    /// Its text.
    pub name: String,
    /// Where it begins.
    pub place: Place,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.kind(), self.place)
    }
}

impl Node {
    /// What is at a key; null is nothing.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let found = self.entries().iter().find(|(known, _)| known.name == key);
        found.map(|(_, node)| node).filter(|node| !node.is_null())
    }

    /// What is at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The entries of a map; none of anything else.
    pub fn entries(&self) -> &[(Key, Node)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The text, if it is text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The flag, if it is one.
    pub fn flag(&self) -> Option<bool> {
        match self.value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self.value {
            Value::Whole(whole) => Some(whole as f64),
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Whether there is nothing.
    pub fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Flag(_) => "true or false",
            Value::Whole(_) | Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}
