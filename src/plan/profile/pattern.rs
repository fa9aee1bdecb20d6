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
    check(&regex).map_err(|mistake| {
        let place = node.get("regex").map_or(&node.place, |regex| &regex.place);
        let error = ProfileError::new(place, format!("{path}.regex"), &*mistake.what);
        match mistake.at {
            Some(at) => error.marked(underlined(&regex, at)),
            None => error,
        }
    })?;
    let phase = node.get("phase").and_then(values::phase);
    Ok(Pattern {
        name,
        regex,
        phase: phase.unwrap_or_default(),
    })
}

/// What is wrong, and in which bytes if not as a whole.
struct Mistake {
    what: String,
    at: Option<Range<usize>>,
}

fn check(regex: &str) -> Result<(), Mistake> {
    let mistake = |what: String, at| Err(Mistake { what, at });
    if let Err(error) = regex_syntax::parse(regex) {
        let (what, span) = match &error {
            regex_syntax::Error::Parse(error) => (error.kind().to_string(), Some(error.span())),
            regex_syntax::Error::Translate(error) => (error.kind().to_string(), Some(error.span())),
            other => (other.to_string(), None),
        };
        let at = span.map(|span| span.start.offset..span.end.offset);
        return mistake(format!("this is no regular expression: {what}"), at);
    }
    let compiled = regex::RegexBuilder::new(regex)
        .size_limit(Pattern::MOST_BYTES)
        .build();
    let Ok(compiled) = compiled else {
        let what = "this is too large for an expression that is tried on every line: \
                    make its repetitions smaller";
        return mistake(what.to_owned(), None);
    };
    let groups: Vec<&str> = compiled.capture_names().flatten().collect();
    if let Some(stranger) = groups.iter().find(|name| !Pattern::GROUPS.contains(name)) {
        let near = suggestion(stranger, Pattern::GROUPS);
        let known = Pattern::GROUPS.join(", ");
        let what = format!("there is no group '{stranger}': known are {known}{near}");
        return mistake(what, Some(named(regex, stranger)));
    }
    if groups.is_empty() {
        let what = "it needs a named group at least, like (?<step>[0-9]+)";
        return mistake(what.to_owned(), None);
    }
    Ok(())
}

/// The expression up to its mistake, which is marked. What follows isn't shown: something that
/// doesn't belong there, like an address with a token, may have been pasted.
fn underlined(regex: &str, at: Range<usize>) -> String {
    let shown = regex.get(..at.end).unwrap_or(regex);
    ExpressionError::new(shown, at, "").underlined()
}

/// Where a group's name stands, `(?<name>` or `(?P<name>`.
fn named(regex: &str, name: &str) -> Range<usize> {
    let at = regex
        .find(&format!("<{name}>"))
        .map_or(0, |bracket| bracket + 1);
    at..at + name.len()
}
