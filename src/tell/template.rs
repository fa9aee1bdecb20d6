//! Templates of the user's own, for bodies of webhooks and for texts.
//!
//! Owns the engine, its bounds, and what a template sees. What comes from the job is put in as
//! data: it closes no quote of JSON and makes no line of a text.

use std::collections::BTreeMap;

use minijinja::value::{Serde, Value, ValueKind};
use minijinja::{Environment, Error, Output, State, UndefinedBehavior};
use serde_json::json;

use super::letter::Letter;
use super::payload::payload;
use super::text;

/// The most that a template may make, bytes.
const RENDERED: usize = 256 * 1024;
/// Steps that a template may take.
const FUEL: u64 = 500_000;
/// The template's name inside the engine.
const NAME: &str = "template";

/// What a template makes, and so how values are put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// JSON: text is escaped, so that `{"text": "{{ title }}"}` is right whatever a run is
    /// called.
    Json,
    /// Any text: values as they are.
    Plain,
    /// Lines for people: a value from the job makes no line, and no control character.
    Lines,
}

impl Shape {
    /// A body that begins like JSON is JSON.
    pub fn of_body(source: &str) -> Self {
        let start = source.trim_start();
        let is_tag = ["{{", "{%", "{#"].iter().any(|tag| start.starts_with(tag));
        if start.starts_with(['{', '[']) && !is_tag {
            Self::Json
        } else {
            Self::Plain
        }
    }
}

/// A template that was read.
#[derive(Debug)]
pub struct Template {
    engine: Environment<'static>,
    shape: Shape,
}

impl Template {
    /// Reads it.
    ///
    /// # Errors
    /// It is no template: the line and what is wrong, without its text.
    pub fn new(source: &str, shape: Shape) -> Result<Self, String> {
        let mut engine = Environment::new();
        engine.set_fuel(Some(FUEL));
        engine.set_undefined_behavior(UndefinedBehavior::Chainable);
        match shape {
            Shape::Json => engine.set_formatter(put_json),
            Shape::Lines => engine.set_formatter(put_line),
            Shape::Plain => {}
        }
        engine
            .add_template_owned(NAME, source.to_owned())
            .map_err(|e| wrong(&e))?;
        Ok(Self { engine, shape })
    }

    /// What it makes.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The type of the body that it makes.
    pub fn content_type(&self) -> &'static str {
        match self.shape {
            Shape::Json => "application/json",
            Shape::Plain | Shape::Lines => "text/plain; charset=utf-8",
        }
    }

    /// What it makes of a [`context`].
    ///
    /// # Errors
    /// It can't be made, is too long, or isn't the JSON that it begins like.
    pub fn render(&self, context: &Value) -> Result<String, String> {
        let made = self
            .engine
            .get_template(NAME)
            .and_then(|template| template.render(context))
            .map_err(|e| wrong(&e))?;
        if made.len() > RENDERED {
            return Err("its template makes more than 256 KiB".to_owned());
        }
        let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(&made).is_ok();
        if self.shape == Shape::Json && !is_json() {
            return Err(
                "its template begins like JSON, and what it makes is not valid JSON".to_owned(),
            );
        }
        Ok(made)
    }
}

/// What a template sees: `type`, `timestamp` and `data` of the standard payload; the texts for
/// people as `title` and `text`, and the lines of the latter by name as `lines`; the user's
/// `secrets` by name.
pub fn context(letter: &Letter, shape: Shape, secrets: &BTreeMap<&str, &str>) -> Value {
    // Only where lines are made are ours put in as they are.
    let own = |text: String| match shape {
        Shape::Lines => Value::from_safe_string(text),
        Shape::Json | Shape::Plain => Value::from(text),
    };
    let standard = payload(&letter.alert, &letter.run);
    let part = |name: &str| Value::from(Serde(standard.get(name).unwrap_or(&json!(null))));
    let lines = text::lines(&letter.alert, &letter.run, letter.style.tongue);
    let lines: BTreeMap<&str, Value> = text::by_name(&lines)
        .into_iter()
        .map(|(name, line)| (name, own(line)))
        .collect();
    let all = [
        ("type", part("type")),
        ("timestamp", part("timestamp")),
        ("data", part("data")),
        ("title", own(letter.title())),
        ("text", own(letter.body())),
        ("lines", Value::from(lines)),
        (
            "secrets",
            Value::from_pairs(secrets.iter().map(|(name, value)| (*name, *value))),
        ),
    ];
    Value::from_pairs(all)
}

fn wrong(error: &Error) -> String {
    let line = error
        .line()
        .map_or_else(String::new, |n| format!(", line {n}"));
    format!("its template is wrong{line}: {}", error.kind())
}

/// Puts a value into JSON: text without its quotes, which the template writes.
fn put_json(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let encoded = serde_json::to_string(value).unwrap_or_default();
    let text = match value.kind() {
        // What `tojson` made is JSON already.
        _ if value.is_safe() => value.to_string(),
        ValueKind::Undefined => String::new(),
        ValueKind::String => {
            let inner = encoded.strip_prefix('"').and_then(|e| e.strip_suffix('"'));
            inner.unwrap_or_default().to_owned()
        }
        _ => encoded,
    };
    out.write_str(&text).map_err(Error::from)
}

/// Puts a value into lines for people; our own texts have lines already.
fn put_line(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let text = match value.kind() {
        ValueKind::Undefined | ValueKind::None => String::new(),
        _ if value.is_safe() => value.to_string(),
        _ => text::clean(&value.to_string()),
    };
    out.write_str(&text).map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_ends_in_a_quote_is_valid_json() {
        let mut letter = Letter::sample();
        for name in ["a \"b\"", "\"", "\\", "\\\"", ""] {
            letter.run.name = name.to_owned();
            let template = Template::new(r#"{"n": "{{ data.run.name }}"}"#, Shape::Json).unwrap();
            let context = context(&letter, Shape::Json, &BTreeMap::new());
            let made = template.render(&context).unwrap();
            let read: serde_json::Value = serde_json::from_str(&made).unwrap();
            assert_eq!(read["n"], name);
        }
    }
}
