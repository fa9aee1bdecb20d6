//! YAML text to a tree. The one place that knows the YAML library.
//!
//! Owns what is refused before anybody looks at a key: too much text, too much nesting, aliases
//! that multiply, repeated keys, several documents. Booleans are `true` and `false` alone.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Error as YamlError, Spanned, options::MergeKeyPolicy};

use super::error::{ProfileError, key_name};
use super::node::{Key, Node, Place, Value};

/// A profile larger than this was not written by a person.
pub const MAX_BYTES: usize = 1024 * 1024;

/// Values in a profile, and levels of nesting.
const MAX_NODES: usize = 10_000;
const MAX_DEPTH: usize = 24;

/// Reads a text; one without a value is an empty map.
pub fn read(text: &str, source: &str) -> Result<Node, ProfileError> {
    let source: Arc<str> = source.into();
    let start = Place {
        source: Arc::clone(&source),
        line: 1,
        column: 1,
    };
    if text.len() > MAX_BYTES {
        return Err(ProfileError::new(&start, "", TOO_LARGE));
    }
    let options = serde_yaml::options! {
        strict_booleans: true,
        with_snippet: false,
        merge_keys: MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        budget: serde_yaml::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_aliases: 100,
            max_anchors: 100,
            max_recorded_anchor_events: MAX_NODES,
        },
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: MAX_NODES,
            max_replay_stack_depth: 8,
            max_alias_expansions_per_anchor: 100,
        },
    };
    let parsed: Result<Spanned<Raw>, YamlError> = serde_yaml::from_str_with_options(text, options);
    let mut node = match parsed {
        Ok(raw) => placed(raw, &source),
        Err(error) => return Err(explain(&error, &start)),
    };
    if node.is_null() {
        node.value = Value::Map(Vec::new());
    }
    Ok(node)
}

/// Said of files, too, whose reading was stopped there.
pub const TOO_LARGE: &str = "the file is larger than 1 MiB: this is no profile";

const TWICE: &str = "a key stands here twice: keep one of them";
const NOT_FINITE: &str = "this number is not finite";

/// A value as the library hands it over.
enum Raw {
    Scalar(Value),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

fn placed(raw: Spanned<Raw>, source: &Arc<str>) -> Node {
    let place = place(raw.referenced, source);
    let value = match raw.value {
        Raw::Scalar(value) => value,
        Raw::List(items) => Value::List(items.into_iter().map(|i| placed(i, source)).collect()),
        Raw::Map(entries) => {
            let entry = |(key, node): (Spanned<String>, Spanned<Raw>)| {
                let place = self::place(key.referenced, source);
                let name = key.value;
                (Key { name, place }, placed(node, source))
            };
            Value::Map(entries.into_iter().map(entry).collect())
        }
    };
    Node { place, value }
}

fn place(location: serde_yaml::Location, source: &Arc<str>) -> Place {
    Place {
        source: Arc::clone(source),
        line: location.line().max(1),
        column: location.column().max(1),
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Flag(flag)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Whole(number)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Raw, E> {
        let whole = i64::try_from(number).map(Value::Whole);
        Ok(Raw::Scalar(whole.unwrap_or(Value::Number(number as f64))))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Raw, E> {
        if number.is_finite() {
            Ok(Raw::Scalar(Value::Number(number)))
        } else {
            Err(E::custom(NOT_FINITE))
        }
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Text(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        let mut known = HashSet::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            // The library refuses equal keys; `1` and "1" are equal here.
            if !known.insert(key.value.clone()) {
                return Err(A::Error::custom(TWICE));
            }
            entries.push((key, map.next_value()?));
        }
        Ok(Raw::Map(entries))
    }
}

/// The library's error in our words. Its own may quote the text, which may be a secret; the
/// parser's (`ExternalMessage`) are fixed sentences.
fn explain(error: &YamlError, start: &Place) -> ProfileError {
    let error = error.without_snippet();
    let place = error
        .location()
        .map_or_else(|| start.clone(), |l| place(l, &start.source));
    let what = match error {
        YamlError::DuplicateMappingKey { key: Some(key), .. } => {
            let key = key_name(key);
            format!("the key '{key}' stands here twice: keep one of them")
        }
        YamlError::DuplicateMappingKey { key: None, .. } => TWICE.to_owned(),
        YamlError::ExternalMessage { msg, .. } => format!("this is not YAML: {msg}"),
        YamlError::Message { msg, .. } if msg == NOT_FINITE => NOT_FINITE.to_owned(),
        YamlError::Message { msg, .. } if msg == TWICE => TWICE.to_owned(),
        YamlError::UnknownAnchor { .. } => {
            "'*' refers to an anchor that is not there: put text that begins with '*' in quotes"
                .to_owned()
        }
        YamlError::MergeKeyNotAllowed { .. } => {
            "'<<' is not known here: use 'extends: NAME' at the top".to_owned()
        }
        YamlError::MultipleDocuments { .. } => {
            "a second document begins here: a profile is one document".to_owned()
        }
        YamlError::UnsupportedTag { .. } => "tags ('!...') are not known here".to_owned(),
        YamlError::Budget { .. }
        | YamlError::AliasReplayLimitExceeded { .. }
        | YamlError::AliasExpansionLimitExceeded { .. }
        | YamlError::AliasReplayStackDepthExceeded { .. }
        | YamlError::AliasReplayCounterOverflow { .. } => {
            "there is too much here (values, levels or aliases): this is no profile".to_owned()
        }
        YamlError::AliasError { error, .. } => return explain(error, start),
        YamlError::Unexpected { expected, .. } => {
            format!("this is not YAML: {expected} is missing")
        }
        _ => "this can't be read as YAML".to_owned(),
    };
    ProfileError::new(&place, "", what)
}
