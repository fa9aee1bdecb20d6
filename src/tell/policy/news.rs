//! What the policy is told, and what it answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Event, FindingState, ProgressState, Severity};
use crate::tell::alert::{Alert, End, Finding, OfRanks, RunFacts};

/// What happened, as far as somebody may want to hear of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// The run began.
    Started,
    /// Where training stands, and the `elapsed_s` when that last changed.
    Progress {
        /// As it stands.
        now: ProgressState,
        /// `None` while it never moved.
        moved_s: Option<f64>,
    },
    /// The judge's word.
    Finding {
        /// What it says.
        finding: Finding,
        /// How serious.
        severity: Severity,
        /// Raised, updated, cleared.
        state: FindingState,
        /// Whether `Evidence` for it will follow: the alarm waits for it, [`EVIDENCE_S`] at most.
        awaits_evidence: bool,
    },
    /// What `act` found out about a finding.
    Evidence {
        /// The finding's name.
        finding: String,
        /// A few lines.
        stacks: Vec<String>,
    },
    /// What the ranks of the job say now, by the subject of an alert.
    Ranks(BTreeMap<String, OfRanks>),
    /// Others of the job spoke until now: who was told of what, which is all that is known to
    /// hold.
    TakenOver(Vec<Inherited>),
    /// Others of the job go on, and will say how it ended: what waits is told, and nothing after.
    Left,
    /// The run ended. Nothing is told after it.
    Ended(End),
    /// Where many jobs are watched: a finding of this one.
    Of {
        /// The job; one of the same id is the same.
        run: Arc<RunFacts>,
        /// What it is.
        finding: Box<Happening>,
    },
    /// This job, by its id, is over: what held of it no longer does.
    Over(String),
    /// Nobody watches any more; what is held back goes now.
    Closing,
    /// Time passed.
    Tick,
}

/// The job and the finding; where one run is watched, the job is nobody.
pub(super) type Key = (String, String);

impl Happening {
    /// The judge's word as an event says it; `None` for any other event.
    pub fn of_event(event: &Event, awaits_evidence: bool) -> Option<Self> {
        let Event::Finding {
            name,
            cause,
            severity,
            state,
            because,
            since_s,
            evidence,
            advice,
        } = event
        else {
            return None;
        };
        Some(Self::Finding {
            finding: Finding {
                name: name.clone(),
                cause: cause.clone(),
                because: because.clone(),
                since_s: *since_s,
                evidence: evidence.clone(),
                advice: advice.clone(),
            },
            severity: *severity,
            state: *state,
            awaits_evidence,
        })
    }
}

/// A finding of which others of the job have told.
#[derive(Clone, Debug, PartialEq)]
pub struct Inherited {
    /// As they told it.
    pub finding: Finding,
    /// How serious.
    pub severity: Severity,
    /// Which channels know.
    pub told: Vec<String>,
}

/// One alert for some channels.
#[derive(Clone, Debug, PartialEq)]
pub struct Send {
    /// Their names, sorted, not empty.
    pub to: Vec<String>,
    /// What they are told.
    pub alert: Alert,
    /// Which of several jobs it is about.
    pub run: Option<Arc<RunFacts>>,
}

impl Send {
    /// Whether it is about the same finding of the same job.
    pub(super) fn is_about(&self, (job, finding): &Key) -> bool {
        let of = self.run.as_ref().map_or("", |run| &run.id);
        self.alert.subject() == finding && of == job
    }
}
