//! Secrets: where they are kept, and text that must never be printed.
//!
//! Owns the types that make a leak a compile error instead of a review finding: nothing here
//! shows a value unless it is asked to `expose` it. Reading the environment or a file is done
//! where the secret is used.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is printed in place of a secret.
const MASK: &str = "***";

/// Text that is printed as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself: for the request that needs it, never for a message.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// A secret as a profile names it: `env:NAME`, `file:PATH`, or the secret itself.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// In this variable of the environment.
    Env(String),
    /// The content of this file, as written in the profile: a leading `~/` is the home
    /// directory, a relative path begins at the working directory.
    File(PathBuf),
    /// The secret itself.
    Literal(Hidden),
}

impl SecretRef {
    /// What a text refers to.
    pub fn parse(text: &str) -> Self {
        if let Some(name) = text.strip_prefix("env:") {
            Self::Env(name.to_owned())
        } else if let Some(path) = text.strip_prefix("file:") {
            Self::File(PathBuf::from(path))
        } else {
            Self::Literal(Hidden::new(text))
        }
    }
}

/// The reference as it was written; a literal secret as `***`.
impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Literal(hidden) => hidden.fmt(f),
        }
    }
}

impl fmt::Debug for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As it is displayed: what is written somewhere can't be read back as a secret.
impl Serialize for SecretRef {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_str(Text)
    }
}

/// Takes text; whatever else stands there is refused without being repeated.
struct Text;

impl serde::de::Visitor<'_> for Text {
    type Value = SecretRef;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text: env:NAME, file:PATH or the value itself")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SecretRef, E> {
        Ok(SecretRef::parse(text))
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<SecretRef, E> {
        Err(E::custom(NOT_TEXT))
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<SecretRef, E> {
        Err(E::custom(NOT_TEXT))
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<SecretRef, E> {
        Err(E::custom(NOT_TEXT))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<SecretRef, E> {
        Err(E::custom(NOT_TEXT))
    }
}

const NOT_TEXT: &str = "a secret must be text: write it in quotes, or as env:NAME or file:PATH";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let literal = SecretRef::parse("https://hooks.slack.com/services/T0/B0/token");
        for shown in [
            format!("{literal}"),
            format!("{literal:?}"),
            format!("{:#?}", Some(&literal)),
            serde_json::to_string(&literal).unwrap(),
        ] {
            assert!(!shown.contains("slack") && shown.contains("***"), "{shown}");
        }
        let SecretRef::Literal(hidden) = literal else {
            panic!("a literal");
        };
        assert!(hidden.expose().ends_with("/token"));
        let wrong = serde_json::from_str::<SecretRef>("823746").unwrap_err();
        assert!(!wrong.to_string().contains("823746"), "{wrong}");
    }

    #[test]
    fn references_are_shown_as_written() {
        for text in ["env:FEISHU_URL", "file:~/.feishu"] {
            assert_eq!(SecretRef::parse(text).to_string(), text);
        }
    }
}
