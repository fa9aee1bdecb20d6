//! Findings and their life: raised once, updated when told to, cleared.
//!
//! Owns what is open, the settings of each finding, and that a finding which another explains
//! doesn't alarm. Must not know why anything is found.

use serde_json::{Map, Number, Value};

use crate::model::{Event, FindingSettings, FindingState, JudgeSettings, Severity};

/// The judge's word, as it goes into `events.jsonl`.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// From the closed list of DETECTION section 4, or a user's rule.
    pub name: String,
    /// Which of the finding's causes, where one is known.
    pub cause: Option<String>,
    /// How serious; a note where another finding explains it.
    pub severity: Severity,
    /// Raised, updated, cleared.
    pub state: FindingState,
    /// The finding that explains this one: only the first cause alarms.
    pub because: Option<String>,
    /// `elapsed_s` when the condition began.
    pub since_s: f64,
    /// Numbers, flat; the unit is in the key's name.
    pub evidence: Map<String, Value>,
    /// What to do, in one or two sentences.
    pub advice: Option<String>,
}

impl From<Finding> for Event {
    fn from(finding: Finding) -> Self {
        Self::Finding {
            name: finding.name,
            cause: finding.cause,
            severity: finding.severity,
            state: finding.state,
            because: finding.because,
            since_s: finding.since_s,
            evidence: finding.evidence,
            advice: finding.advice,
        }
    }
}

/// Numbers under names. A number that is missing isn't there.
#[derive(Clone, Debug, Default)]
pub struct Evidence(Map<String, Value>);

impl Evidence {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A number, rounded to a tenth.
    pub fn num(mut self, name: &str, value: impl Into<Option<f64>>) -> Self {
        if let Some(value) = value.into().filter(|x| x.is_finite()) {
            let rounded = (value * 10.0).round() / 10.0;
            let number = if rounded.fract() == 0.0 && rounded.abs() < 9e15 {
                Some(Number::from(rounded as i64))
            } else {
                Number::from_f64(rounded)
            };
            if let Some(number) = number {
                self.0.insert(name.to_owned(), Value::Number(number));
            }
        }
        self
    }

    /// A number of any size, to four digits at least.
    pub fn figures(mut self, name: &str, value: impl Into<Option<f64>>) -> Self {
        let value = value.into();
        let Some(value) = value.filter(|x| x.abs() < 100.0 && x.fract() != 0.0) else {
            return self.num(name, value);
        };
        let decimals = (3.0 - value.abs().log10().floor()).clamp(0.0, 300.0);
        let rounded = format!("{value:.0$}", decimals as usize).parse().ok();
        if let Some(number) = rounded.and_then(Number::from_f64) {
            self.0.insert(name.to_owned(), Value::Number(number));
        }
        self
    }

    /// A word.
    pub fn text(mut self, name: &str, value: impl Into<Option<String>>) -> Self {
        if let Some(value) = value.into() {
            self.0.insert(name.to_owned(), Value::String(value));
        }
        self
    }

    /// A GPU by its label: NVML's index as a number, or a MIG device's name.
    pub fn gpu(self, name: &str, label: &str) -> Self {
        match label.parse::<u32>() {
            Ok(index) => self.num(name, f64::from(index)),
            Err(_) => self.text(name, label.to_owned()),
        }
    }

    /// A list of process ids.
    pub fn pids(mut self, pids: impl IntoIterator<Item = u32>) -> Self {
        let list: Vec<Value> = pids.into_iter().map(Value::from).collect();
        if !list.is_empty() {
            self.0.insert("pids".to_owned(), Value::Array(list));
        }
        self
    }
}

/// What a rule says when its condition begins to hold.
#[derive(Clone, Debug)]
pub struct Claim {
    name: String,
    cause: Option<String>,
    severity: Severity,
    because: Option<String>,
    since_s: f64,
    evidence: Evidence,
    advice: Option<String>,
}

impl Claim {
    /// A claim of this severity, true since `since_s`.
    pub fn new(name: &str, severity: Severity, since_s: f64) -> Self {
        Self {
            name: name.to_owned(),
            cause: None,
            severity,
            because: None,
            since_s,
            evidence: Evidence::default(),
            advice: None,
        }
    }

    /// With this cause.
    pub fn cause(mut self, cause: impl Into<Option<&'static str>>) -> Self {
        self.cause = cause.into().map(str::to_owned);
        self
    }

    /// Explained by this finding.
    pub fn because(mut self, name: Option<String>) -> Self {
        self.because = name;
        self
    }

    /// With these numbers.
    pub fn evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = evidence;
        self
    }

    /// With this advice.
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// What is open, and what was said since the caller last took it.
#[derive(Clone, Debug, Default)]
pub struct Book {
    settings: JudgeSettings,
    open: Vec<Finding>,
    said: Vec<Finding>,
    /// Alarms in the order in which they were raised, for the verdict.
    alarms: Vec<Finding>,
}

/// So many alarms are remembered for the verdict: the first ones matter.
const ALARMS: usize = 64;

impl Book {
    /// Nothing found yet.
    pub fn new(settings: JudgeSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// All of them.
    pub fn all_settings(&self) -> &JudgeSettings {
        &self.settings
    }

    /// Says of all that holds that it no longer does.
    pub fn clear_all(&mut self) {
        for mut finding in std::mem::take(&mut self.open) {
            finding.state = FindingState::Cleared;
            self.said.push(finding);
        }
    }

    /// The settings of a finding.
    pub fn settings(&self, name: &str) -> FindingSettings {
        self.settings.of(name)
    }

    /// The finding of this name that holds now.
    pub fn open(&self, name: &str) -> Option<&Finding> {
        self.open.iter().find(|f| f.name == name)
    }

    /// Whether a finding of this name holds now.
    pub fn holds(&self, name: &str) -> bool {
        self.open(name).is_some()
    }

    /// The finding of this name that holds now and that somebody was told of: by itself, or by
    /// what explains it. It may explain others.
    pub fn told(&self, name: &str) -> Option<&Finding> {
        let told = |f: &&Finding| f.severity > Severity::Note || f.because.is_some();
        self.open(name).filter(told)
    }

    /// Alarms so far, in their order.
    pub fn alarms(&self) -> &[Finding] {
        &self.alarms
    }

    /// Says that a condition holds. Nothing happens where it is known, or not looked for.
    pub fn raise(&mut self, claim: Claim) {
        if self.holds(&claim.name) {
            return;
        }
        let Some(severity) = self.severity(&claim) else {
            return;
        };
        let finding = Finding {
            name: claim.name,
            cause: claim.cause,
            severity,
            state: FindingState::Raised,
            because: claim.because,
            since_s: claim.since_s,
            evidence: claim.evidence.0,
            advice: claim.advice,
        };
        self.remember(&finding);
        self.open.push(finding.clone());
        self.said.push(finding);
    }

    /// Says that what holds has become this serious. Nothing happens where it was so before.
    pub fn worsen(&mut self, claim: Claim) {
        let severity = self.severity(&claim);
        let Some(at) = self.open.iter().position(|f| f.name == claim.name) else {
            return;
        };
        let Some(severity) = severity.filter(|s| *s > self.open[at].severity) else {
            return;
        };
        let finding = &mut self.open[at];
        finding.severity = severity;
        finding.state = FindingState::Updated;
        finding.because = None;
        finding.evidence = claim.evidence.0;
        finding.advice = claim.advice;
        let finding = finding.clone();
        self.remember(&finding);
        self.said.push(finding);
    }

    /// How serious a claim is; None: it isn't looked for.
    fn severity(&self, claim: &Claim) -> Option<Severity> {
        let settings = self.settings.of(&claim.name);
        let explained = claim.because.is_some().then_some(Severity::Note);
        let own = explained.or(settings.severity).unwrap_or(claim.severity);
        settings.on.then_some(own)
    }

    fn remember(&mut self, finding: &Finding) {
        let known = self.alarms.iter().any(|f| f.name == finding.name);
        let again = finding.state == FindingState::Updated && known;
        if finding.severity > Severity::Note && !again && self.alarms.len() < ALARMS {
            self.alarms.push(finding.clone());
        }
    }

    /// Says that it still holds, with other numbers.
    pub fn update(&mut self, name: &str, evidence: Evidence) {
        if let Some(open) = self.open.iter_mut().find(|f| f.name == name) {
            open.evidence = evidence.0;
            open.state = FindingState::Updated;
            self.said.push(open.clone());
        }
    }

    /// Says that it no longer holds, with the numbers of the moment.
    pub fn conclude(&mut self, name: &str, evidence: Evidence) {
        if let Some(open) = self.open.iter_mut().find(|f| f.name == name) {
            open.evidence = evidence.0;
        }
        self.clear(name);
    }

    /// Says that it no longer holds.
    pub fn clear(&mut self, name: &str) {
        let Some(at) = self.open.iter().position(|f| f.name == name) else {
            return;
        };
        let mut finding = self.open.remove(at);
        finding.state = FindingState::Cleared;
        self.said.push(finding);
    }

    /// What was said since the last call.
    pub fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.said)
    }
}
