//! The JSON Schema of profiles, for editors.

use serde_json::{Map, Value, json};

use super::keys::{KeyOf, Kind, PROFILE};
use crate::model::names::FINDINGS;

/// The schema (draft 2020-12).
pub fn schema() -> Value {
    let mut schema = section(PROFILE);
    if let Value::Object(object) = &mut schema {
        object.shift_insert(
            0,
            "$schema".to_owned(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        object.shift_insert(1, "title".to_owned(), json!("A profile of gpuwatch"));
    }
    schema
}

fn section(keys: &[KeyOf]) -> Value {
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| {
            let mut schema = nullable(&kind(&key.kind));
            if let Value::Object(object) = &mut schema {
                object.insert("description".to_owned(), json!(key.doc));
            }
            (key.name.to_owned(), schema)
        })
        .collect();
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

/// Null may stand anywhere and means the default.
fn nullable(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn kind(kind: &Kind) -> Value {
    const DURATION: &str = r"^\s*([0-9.]+\s*(ms|s|sec|m|min|h|d)\s*)+$|^0$";
    const SIZE: &str = r"^[0-9.]+\s*(KiB|MiB|GiB|TiB)$";
    match kind {
        Kind::Text | Kind::Secret | Kind::Expression => json!({"type": "string"}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Switch => json!({"enum": [true, false, "auto"]}),
        Kind::Choice(words) => json!({"enum": words}),
        Kind::Duration(word) => {
            let mut forms = vec![
                json!({"type": "string", "pattern": DURATION}),
                json!({"const": 0}),
            ];
            forms.extend(word.map(|word| json!({"const": word})));
            json!({"anyOf": forms})
        }
        Kind::Repeat => json!({"anyOf": [
            {"const": "never"},
            {"type": "string", "pattern": r"^[0-9.]+x$"},
            {"type": "string", "pattern": DURATION},
        ]}),
        Kind::Gpus => json!({"anyOf": [
            {"enum": ["free", "auto", "none"]},
            {"type": "integer", "minimum": 1},
            {"type": "string", "pattern": "^([0-9]+|id:.+)$"},
        ]}),
        Kind::Size => json!({"anyOf": [{"type": "string", "pattern": SIZE}, {"const": 0}]}),
        Kind::MemLimit => {
            json!({"type": "string", "pattern": r"^\s*[0-9.]+\s*(KiB|MiB|GiB|TiB|%)\s*$"})
        }
        Kind::Listen => json!({"anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 65535},
            {"type": "string", "pattern": r"^\s*([^/]*:)?[0-9]+\s*$"},
        ]}),
        Kind::Percent => json!({"type": "number", "minimum": 0, "maximum": 100}),
        Kind::Count => json!({"type": "integer", "minimum": 0}),
        Kind::Action => json!({"anyOf": [
            {"enum": ["stacks", "stop", "restart"]},
            {"type": "object", "additionalProperties": false, "required": ["signal"], "properties": {
                "signal": {"type": "string"},
            }},
            {"type": "object", "additionalProperties": false, "required": ["command"], "properties": {
                "command": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            }},
        ]}),
        Kind::List(inner) => json!({"type": "array", "items": self::kind(inner)}),
        Kind::Map(inner) => json!({
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z0-9_-]+$"},
            "additionalProperties": nullable(&self::kind(inner)),
        }),
        Kind::Findings(keys) => {
            let entry = nullable(&section(keys));
            let entries: Map<String, Value> = FINDINGS
                .iter()
                .map(|name| ((*name).to_owned(), entry.clone()))
                .collect();
            json!({"type": "object", "additionalProperties": false, "properties": entries})
        }
        Kind::Section(keys) => section(keys),
    }
}
