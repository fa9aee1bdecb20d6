//! What the output said that matters, in its order.
//!
//! Owns the lines of each kind that count, what is pending, and who asked the run to end. Judges
//! nothing.

use crate::model::{Event, LineSource, Logged};
use crate::read::fingerprint::ranks::label;
use crate::read::fingerprint::{Kind, fingerprint};

use super::ranks::Ranks;
use super::tracebacks::Tracebacks;

/// So many lines are kept: there are fewer kinds.
const LINES: usize = 128;
/// What a program goes on from for so long, with progress, has not ended it, seconds. A collective
/// whose rank is gone makes no progress at all; a loader has some batches ready.
const SURVIVED_S: f64 = 60.0;

/// One line that matters.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// When, in seconds of the run.
    pub at_s: f64,
    /// Its place among all lines that were told.
    pub order: u64,
    /// What it says.
    pub kind: Kind,
    /// Its text.
    pub text: String,
}

impl Told {
    /// The rank that printed it, if it has a label.
    pub fn rank(&self) -> Option<u32> {
        label(&self.text).0
    }
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

/// Somebody asked the run to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// `TERM`, `INT`, ...
    pub name: String,
    /// `terminal`, `group`, or the sender's PID.
    pub from: String,
    /// What the sender calls itself.
    pub sender: Option<String>,
}

/// The story so far.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// A line of each kind, in their order: the first one, but of failures that the program went
    /// on from the first one after that.
    pub lines: Vec<Told>,
    /// The tracebacks.
    pub tracebacks: Tracebacks,
    /// What was told of ranks.
    pub ranks: Ranks,
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
    /// The first signal that asked the run to end.
    pub asked: Option<Asked>,
    /// Lines so far.
    order: u64,
}

impl Story {
    /// Takes in an event; what the line says, if it is one. `moved_s`: when progress was last
    /// made, in seconds of the run.
    pub fn event(&mut self, logged: &Logged, moved_s: Option<f64>) -> Option<Kind> {
        let at_s = logged.stamp.elapsed_s;
        match &logged.event {
            Event::Framework { name, gpu, .. } => {
                let (name, gpu) = (name.clone(), *gpu);
                self.loaded = Some(Loaded { name, gpu, at_s });
                None
            }
            Event::Signal {
                name, from, sender, ..
            } if ["INT", "TERM", "HUP", "QUIT"].contains(&name.as_str()) => {
                self.asked.get_or_insert_with(|| Asked {
                    name: name.clone(),
                    from: from.clone(),
                    sender: sender.clone(),
                });
                None
            }
            Event::Line { text, stream, .. } => self.line(at_s, *stream, text, moved_s),
            _ => None,
        }
    }

    fn line(
        &mut self,
        at_s: f64,
        source: LineSource,
        text: &str,
        moved_s: Option<f64>,
    ) -> Option<Kind> {
        self.named = self.named.or_else(|| framework(text));
        let kind = fingerprint(text)?;
        self.order += 1;
        self.told = kind.framework().or(self.told);
        match kind {
            Kind::Ready => self.ready = true,
            Kind::Prompt => self.prompt_s = Some(at_s),
            Kind::CollectiveTimeout => self.collective_s = Some(at_s),
            _ => {}
        }
        self.ranks.line(kind, text);
        let order = self.order;
        self.tracebacks.line(kind, text, source, at_s, order);
        if kind.is_failure() {
            self.lines
                .retain(|l| l.kind != kind || !survived(l.at_s, moved_s));
        }
        if kind != Kind::Exception && self.lines.len() < LINES && !self.told(kind) {
            let text = text.to_owned();
            self.lines.push(Told {
                at_s,
                order,
                kind,
                text,
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

    /// The first line of these kinds.
    pub fn first(&self, is_meant: impl Fn(Kind) -> bool) -> Option<&Told> {
        self.lines.iter().find(|l| is_meant(l.kind))
    }
}

/// Whether the program went on from what happened then, and made progress.
pub fn survived(at_s: f64, moved_s: Option<f64>) -> bool {
    moved_s.is_some_and(|moved| moved - at_s > SURVIVED_S)
}

/// What follows from something else as a rule.
pub fn is_consequence(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::CollectiveTimeout | Kind::RankLost | Kind::RankEnded
    )
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
