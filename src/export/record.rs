//! A recorded run as tables: its samples as they are, or samples and events as lines of JSON in
//! the order in which they happened.

use serde_json::{Map, Value};

/// A row of `samples.csv` as a line's object; a missing reading is null.
pub fn row<'a>(
    columns: impl Iterator<Item = &'a str>,
    fields: impl Iterator<Item = &'a str>,
) -> Value {
    let mut object = Map::new();
    object.insert("kind".to_owned(), Value::from("sample"));
    for (column, field) in columns.zip(fields) {
        object.insert(column.to_owned(), value(field));
    }
    Value::Object(object)
}

/// A number where it is one that JSON has; a NaN loss stays the word that it is.
fn value(field: &str) -> Value {
    if field.is_empty() {
        return Value::Null;
    }
    match serde_json::from_str::<Value>(field) {
        Ok(number @ Value::Number(_)) => number,
        _ => Value::from(field),
    }
}

/// When an entry happened, seconds since the start: what lines are sorted by.
pub fn elapsed_s(entry: &Value) -> f64 {
    entry
        .get("elapsed_s")
        .and_then(Value::as_f64)
        .unwrap_or_default()
}

/// Two streams, each in order, as one. Of two at once the event comes first, as it is judged.
pub fn merged(
    events: impl Iterator<Item = Value>,
    samples: impl Iterator<Item = Value>,
) -> impl Iterator<Item = Value> {
    let (mut events, mut samples) = (events.peekable(), samples.peekable());
    std::iter::from_fn(move || match (events.peek(), samples.peek()) {
        (Some(event), Some(sample)) if elapsed_s(event) > elapsed_s(sample) => samples.next(),
        (Some(_), _) => events.next(),
        (None, _) => samples.next(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_keeps_what_is_missing_and_what_is_no_number() {
        let columns = [
            "time",
            "elapsed_s",
            "gpu",
            "loss",
            "rate",
            "step",
            "throttle",
        ];
        let fields = [
            "2026-11-30T09:15:02.000+08:00",
            "1.5",
            "0",
            "nan",
            "",
            "7",
            "none",
        ];
        assert_eq!(
            row(columns.into_iter(), fields.into_iter()),
            json!({"kind": "sample", "time": fields[0], "elapsed_s": 1.5, "gpu": 0, "loss": "nan", "rate": null, "step": 7, "throttle": "none"})
        );
    }

    #[test]
    fn entries_come_in_order() {
        let at = |kind: &str, s: f64| json!({"kind": kind, "elapsed_s": s});
        let events = [at("e", 0.0), at("e", 1.0), at("e", 2.5)];
        let samples = [at("s", 1.0), at("s", 2.0), at("s", 3.0)];
        let order: Vec<_> = merged(events.into_iter(), samples.into_iter())
            .map(|e| {
                format!(
                    "{}{}",
                    e["kind"].as_str().unwrap_or_default(),
                    elapsed_s(&e)
                )
            })
            .collect();
        assert_eq!(order, ["e0", "e1", "s1", "s2", "e2.5", "s3"]);
    }
}
