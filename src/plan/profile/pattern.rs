//! `progress.patterns[]`: lines of the user's own.
//!
//! Owns what a pattern has to be, and where it is wrong.

use std::ops::Range;

use super::error::ProfileError;
use super::node::Node;
use super::read::required;
use super::values;
use crate::model::Pattern;
use crate::plan::expression::ExpressionError;
use crate::plan::nearest::suggestion;

/// Reads one.
///
/// # Errors
/// The first mistake, with the part of the expression that is wrong.
pub(super) fn pattern(node: &Node, path: &str) -> Result<Pattern, ProfileError> {
    let name = required(node, "name", path)?;
    let regex = required(node, "regex", path)?;
    check(&regex).map_err(|error| {
        let place = node.get("regex").map_or(&node.place, |regex| &regex.place);
        ProfileError::new(place, format!("{path}.regex"), error.what.clone())
            .marked(error.underlined())
    })?;
    let phase = node.get("phase").and_then(values::phase);
    Ok(Pattern {
        name,
        regex,
        phase: phase.unwrap_or_default(),
    })
}

fn check(regex: &str) -> Result<(), ExpressionError> {
    if let Err(error) = regex_syntax::parse(regex) {
        let (what, span) = match &error {
            regex_syntax::Error::Parse(error) => (error.kind().to_string(), *error.span()),
            regex_syntax::Error::Translate(error) => (error.kind().to_string(), *error.span()),
            other => {
                return Err(ExpressionError::new(
                    regex,
                    0..regex.len(),
                    other.to_string(),
                ));
            }
        };
        let what = format!("this is no regular expression: {what}");
        let at = span.start.offset..span.end.offset;
        return Err(ExpressionError::new(regex, at, what));
    }
    let compiled = regex::RegexBuilder::new(regex)
        .size_limit(Pattern::MOST_BYTES)
        .build();
    let compiled = compiled.map_err(|_| {
        let what = "this is too large for an expression that is tried on every line: \
                    make its repetitions smaller";
        ExpressionError::new(regex, 0..regex.len(), what)
    })?;
    let groups: Vec<&str> = compiled.capture_names().flatten().collect();
    if let Some(stranger) = groups.iter().find(|name| !Pattern::GROUPS.contains(name)) {
        let near = suggestion(stranger, Pattern::GROUPS);
        let known = Pattern::GROUPS.join(", ");
        let what = format!("there is no group '{stranger}': known are {known}{near}");
        return Err(ExpressionError::new(regex, named(regex, stranger), what));
    }
    if groups.is_empty() {
        let what = "it needs a named group at least, like (?<step>[0-9]+)";
        return Err(ExpressionError::new(regex, 0..regex.len(), what));
    }
    Ok(())
}

/// Where a group's name stands, `(?<name>` or `(?P<name>`.
fn named(regex: &str, name: &str) -> Range<usize> {
    let at = regex
        .find(&format!("<{name}>"))
        .map_or(0, |bracket| bracket + 1);
    at..at + name.len()
}
