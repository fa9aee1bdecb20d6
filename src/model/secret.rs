//! Secrets: where they are kept, and text that must never be printed.
//!
//! Owns the types that make a leak a compile error instead of a review finding: nothing here
//! shows a value unless it is asked to `expose` it. Reading the environment or a file is done
//! where the secret is used.

use std::fmt;
use std::path::PathBuf;

/// What is printed in place of a secret.
pub const MASK: &str = "***";

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
        ] {
            assert!(!shown.contains("slack") && shown.contains("***"), "{shown}");
        }
        let SecretRef::Literal(hidden) = literal else {
            panic!("a literal");
        };
        assert!(hidden.expose().ends_with("/token"));
    }

    #[test]
    fn references_are_shown_as_written() {
        for text in ["env:FEISHU_URL", "file:~/.feishu"] {
            assert_eq!(SecretRef::parse(text).to_string(), text);
        }
    }
}
