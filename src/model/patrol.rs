//! What a patrol is told: the resolved `patrol` section of a profile.

/// Whom a patrol leaves alone, and how it reaches the owners of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatrolSettings {
    /// Jobs that nobody is told about.
    pub exempt: Vec<Exemption>,
    /// Whether a job's owner gets messages on the desktop.
    pub desktop: bool,
    /// The channel of type email by which owners get mail.
    pub mail: Option<String>,
    /// What follows the user's name and `@` in an owner's address.
    pub domain: Option<String>,
}

impl Default for PatrolSettings {
    fn default() -> Self {
        Self {
            exempt: Vec::new(),
            desktop: true,
            mail: None,
            domain: None,
        }
    }
}

/// Jobs that are left alone. What is absent fits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exemption {
    /// The owner's login name, or number.
    pub user: Option<String>,
    /// A pattern for the whole command: `*` is any text, `?` any character.
    pub command: Option<String>,
    /// For people.
    pub why: Option<String>,
}
