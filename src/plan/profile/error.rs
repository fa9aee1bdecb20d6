//! What is wrong with a profile: where, what, what to do. Never a value that may be secret.

use std::fmt;

use super::node::Place;

/// The first mistake of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// Where; None where no file could be read or two layers don't fit together.
    place: Option<Place>,
    /// The key (`judge.stalled.after`); empty for the file as a whole.
    path: String,
    /// What is wrong and what to do.
    what: String,
    /// The expression and the marks under its mistake.
    marked: Option<String>,
}

impl ProfileError {
    /// A mistake at a place.
    pub fn new(place: &Place, path: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: Some(place.clone()),
            path: path.into(),
            what: what.into(),
            marked: None,
        }
    }

    /// A mistake that has no place in a file: `what` says where.
    pub fn general(what: impl Into<String>) -> Self {
        Self {
            place: None,
            path: String::new(),
            what: what.into(),
            marked: None,
        }
    }

    /// With two lines that show the mistake.
    #[must_use]
    pub fn marked(mut self, lines: String) -> Self {
        self.marked = Some(lines);
        self
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)?;
        for line in self.marked.iter().flat_map(|lines| lines.lines()) {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ProfileError {}

/// Text of a profile as a message may repeat it: a plain, short word. Whatever else it is may
/// be a secret that stands in the wrong place.
pub fn shown(text: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '%');
    let short = !text.is_empty() && text.chars().count() <= 24;
    (short && text.chars().all(plain)).then_some(text)
}

/// `'word' `, or nothing where it can't be shown.
pub fn quoted(text: &str) -> String {
    shown(text).map_or_else(|| "what stands here".to_owned(), |word| format!("'{word}'"))
}

/// A key as a message may name it.
pub fn key_name(key: &str) -> &str {
    shown(key).unwrap_or("(a key that is no name)")
}
