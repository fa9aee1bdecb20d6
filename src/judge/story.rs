//! What the output said that matters, in its order.
//!
//! Owns the first line of each kind and what is pending. Judges nothing.

use crate::model::{Event, Logged};
use crate::read::fingerprint::{Kind, fingerprint};

/// So many lines are kept: the first of each kind, and the exceptions.
const LINES: usize = 128;

/// One line that matters.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// When, in seconds of the run.
    pub at_s: f64,
    /// What it says.
    pub kind: Kind,
    /// Its text.
    pub text: String,
}

/// A framework, as an event tells of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// Its name.
    pub name: String,
    /// Whether it is a build for GPUs, where that is known.
    pub gpu: Option<bool>,
    /// Since when, in seconds of the run.
    pub at_s: f64,
}

/// The story so far.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The first line of each kind, and every exception, in their order.
    pub lines: Vec<Told>,
    /// The framework that was said or seen to be used.
    pub loaded: Option<Loaded>,
    /// The framework whose own line was seen.
    told: Option<&'static str>,
    /// The framework that some line names.
    named: Option<&'static str>,
    /// A server said that it is ready.
    pub ready: bool,
    /// A prompt was printed at this second of the run, and nothing was seen of it since.
    pub prompt_s: Option<f64>,
    /// A collective timed out, at this second of the run.
    pub collective_s: Option<f64>,
}

impl Story {
    /// Takes in an event; what the line says, if it is one.
    pub fn event(&mut self, logged: &Logged) -> Option<Kind> {
        let at_s = logged.stamp.elapsed_s;
        if let Event::Framework { name, gpu, .. } = &logged.event {
            let (name, gpu) = (name.clone(), *gpu);
            self.loaded = Some(Loaded { name, gpu, at_s });
        }
        let Event::Line { text, .. } = &logged.event else {
            return None;
        };
        self.named = self.named.or_else(|| framework(text));
        let kind = fingerprint(text)?;
        self.told = kind.framework().or(self.told);
        match kind {
            Kind::Ready => self.ready = true,
            Kind::Prompt => self.prompt_s = Some(at_s),
            Kind::CollectiveTimeout => self.collective_s = Some(at_s),
            _ => {}
        }
        if self.lines.len() < LINES && (kind == Kind::Exception || !self.told(kind)) {
            self.lines.push(Told {
                at_s,
                kind,
                text: text.clone(),
            });
        }
        Some(kind)
    }

    /// The framework: by its own lines, by what was said or seen, by a word in some line.
    pub fn framework(&self) -> Option<&str> {
        let loaded = self.loaded.as_ref().map(|loaded| loaded.name.as_str());
        self.told.or(loaded).or(self.named)
    }

    /// Whether a line of this kind was printed.
    pub fn told(&self, kind: Kind) -> bool {
        self.lines.iter().any(|l| l.kind == kind)
    }
}

fn framework(text: &str) -> Option<&'static str> {
    let names = [
        ("tensorflow", "tensorflow"),
        ("keras", "tensorflow"),
        ("torch", "pytorch"),
        ("jax", "jax"),
    ];
    let found = names.iter().find(|(word, _)| text.contains(word));
    found.map(|(_, name)| *name)
}
