//! One alert on its way to one channel.

use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::model::{Exit, Severity, Verdict};

use super::alert::{About, Alert, End, Finding, OfRanks, Progress, RunFacts, State};
use super::cut::{Budget, cut};
use super::texts::Style;

/// Letters and digits of ids.
const ALPHABET: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// An alert, and what goes with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    /// The same on every try, so that a receiver can tell a repetition.
    pub id: String,
    /// What it says.
    pub alert: Alert,
    /// The run that it is about.
    pub run: RunFacts,
    /// How its texts are written.
    #[serde(skip)]
    pub style: Style,
}

impl Letter {
    /// With a new id.
    pub fn new(alert: Alert, run: RunFacts, style: impl Into<Style>) -> Self {
        Self {
            id: format!("msg_{}", token(24)),
            alert,
            run,
            style: style.into(),
        }
    }

    /// Something to try a template with.
    pub fn sample() -> Self {
        let run = RunFacts {
            id: "20260101-000000-sample-0000".to_owned(),
            name: "sample".to_owned(),
            ..RunFacts::default()
        };
        let mut alert = test_alert(String::new());
        alert.about = About::Finding(Finding {
            name: "stalled".to_owned(),
            cause: None,
            because: None,
            since_s: 0.0,
            evidence: Map::new(),
            advice: Some("a \"quoted\" word".to_owned()),
        });
        Self::new(alert, run, Style::default())
    }

    /// Another one: how a run ended.
    pub fn sample_end() -> Self {
        let mut letter = Self::sample();
        letter.alert.about = About::Finished(End {
            exit: Exit {
                code: Some(1),
                signal: None,
            },
            verdict: Verdict::default(),
        });
        letter
    }

    /// Whether it tells how the run ended.
    pub fn is_end(&self) -> bool {
        matches!(self.alert.about, About::Finished(_))
    }

    /// The same, as something that is over.
    #[must_use]
    pub fn over(&self) -> Self {
        let mut over = self.clone();
        over.alert.state = State::Cleared;
        over
    }

    /// One line.
    pub fn title(&self) -> String {
        self.style.title(self)
    }

    /// Some lines.
    pub fn body(&self) -> String {
        self.style.body(self)
    }

    /// Title and body, cut to a budget.
    pub fn text(&self, budget: Budget) -> String {
        cut(&format!("{}\n{}", self.title(), self.body()), budget)
    }
}

/// So many random letters and digits.
pub fn token(length: usize) -> String {
    let random = (0..length).filter_map(|_| fastrand::choice(ALPHABET));
    random.map(|b| char::from(*b)).collect()
}

/// What `gpuwatch alert test` sends.
pub fn test_alert(time: String) -> Alert {
    Alert {
        about: About::Test,
        state: State::Raised,
        severity: Severity::Warning,
        time,
        elapsed_s: 0.0,
        progress: Progress::default(),
        stacks: Vec::new(),
        times: 1,
        others: Vec::new(),
        more: 0,
        of_ranks: OfRanks::default(),
    }
}
