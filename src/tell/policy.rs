//! Who is told what, and when: pure, so that every case can be tried without a clock.
//!
//! Owns routes, repeats, caps, and what becomes of a storm. Time is an argument; must not know
//! what a message looks like or whether it arrives.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Event, FindingState, ProgressState, Repeat, Severity, Stamp, TellSettings};

use super::alert::{About, Alert, End, Finding, Progress, RunFacts, State};

mod gate;
mod routes;
#[cfg(test)]
mod tests;

use gate::Gate;
pub use routes::{DESKTOP, Routes};

/// An alarm waits this long for its evidence, seconds.
pub const EVIDENCE_S: f64 = 5.0;
/// What still holds is said again at most so often for a growing age: with the default factor
/// of 2 the last time is after 32 times the age at which it was raised.
const REMINDERS: u32 = 5;
/// The least age from which reminders grow, and the least time between two, seconds.
const REMIND_FROM_S: f64 = 300.0;
/// A finding that is raised more often than this in a run is told ever more seldom.
const FREE_RAISES: u32 = 3;
/// The first and the longest pause of a finding that comes and goes, seconds.
const PAUSE_S: (f64, f64) = (60.0, 3600.0);

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
type Key = (String, String);

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
    fn is_about(&self, (job, finding): &Key) -> bool {
        let of = self.run.as_ref().map_or("", |run| &run.id);
        self.alert.subject() == finding && of == job
    }
}

/// A finding that holds.
#[derive(Debug)]
struct Open {
    finding: Finding,
    run: Option<Arc<RunFacts>>,
    severity: Severity,
    stacks: Vec<String>,
    /// Its evidence is waited for until then.
    evidence_s: Option<f64>,
    /// It comes and goes, and isn't told again until then.
    pause_s: Option<f64>,
    /// Who was told that it holds.
    told: Vec<String>,
    /// When it was last told.
    said_s: f64,
    reminders: u32,
}

impl Open {
    /// When it may be told.
    fn ready_s(&self) -> f64 {
        let waits = [self.evidence_s, self.pause_s].into_iter().flatten();
        waits.fold(f64::NEG_INFINITY, f64::max)
    }

    /// When it is said again.
    fn reminder_s(&self, repeat: Repeat) -> Option<f64> {
        if self.told.is_empty() || self.finding.because.is_some() {
            return None;
        }
        match repeat {
            Repeat::Never => None,
            Repeat::Every(pause) => Some(self.said_s + pause.as_secs_f64().max(PAUSE_S.0)),
            Repeat::Growing(_) if self.reminders >= REMINDERS => None,
            Repeat::Growing(factor) => {
                let age = (self.said_s - self.finding.since_s).max(REMIND_FROM_S);
                let then = self.finding.since_s + age * factor;
                Some(then.max(self.said_s + REMIND_FROM_S))
            }
        }
    }
}

/// How a finding behaved in this run.
#[derive(Debug, Default)]
struct Habit {
    raises: u32,
    /// How often a raise was told.
    told: u32,
    /// When that was last done.
    said_s: Option<f64>,
}

impl Habit {
    /// Until when it isn't told again.
    fn pause_s(&self) -> Option<f64> {
        let over = self.told.checked_sub(FREE_RAISES)?;
        let pause = PAUSE_S.0 * f64::from(2_u32.saturating_pow(over));
        Some(self.said_s? + pause.min(PAUSE_S.1))
    }
}

/// Decides.
#[derive(Debug)]
pub struct Policy {
    routes: Routes,
    repeat: Repeat,
    open: BTreeMap<Key, Open>,
    habits: BTreeMap<Key, Habit>,
    gate: Gate,
    progress: ProgressState,
    moved_s: Option<f64>,
    over: bool,
}

impl Policy {
    /// With these channels and routes; `desktop` says whether the desktop hears alarms besides.
    pub fn new(settings: &TellSettings, desktop: bool) -> Self {
        Self {
            routes: Routes::new(settings, desktop),
            repeat: settings.repeat,
            open: BTreeMap::new(),
            habits: BTreeMap::new(),
            gate: Gate::default(),
            progress: ProgressState::default(),
            moved_s: None,
            over: false,
        }
    }

    /// What is to be sent now.
    pub fn handle(&mut self, at: &Stamp, happening: Happening) -> Vec<Send> {
        if self.over {
            return Vec::new();
        }
        let mut due = Vec::new();
        match happening {
            Happening::Started => {
                let to = self.routes.of_start();
                let alert = self.alert(at, About::Started, State::Raised, Severity::Note);
                due.push(Send {
                    to,
                    alert,
                    run: None,
                });
            }
            Happening::Progress { now, moved_s } => {
                self.progress = now;
                self.moved_s = moved_s;
            }
            Happening::Of { run, finding } => due.extend(self.found(at, Some(run), *finding)),
            found @ Happening::Finding { .. } => due.extend(self.found(at, None, found)),
            Happening::Over(job) => due.extend(self.gone(at, &job)),
            Happening::Closing => {
                self.over = true;
                return self.gate.last(Vec::new());
            }
            Happening::Evidence { finding, stacks } => {
                if let Some(open) = self.open.get_mut(&(String::new(), finding)) {
                    open.stacks = stacks;
                    open.evidence_s = None;
                }
            }
            Happening::Ended(end) => return self.ended(at, end),
            Happening::Tick => {}
        }
        due.extend(self.what_is_due(at, false));
        self.gate.pass(at.elapsed_s, due)
    }

    /// When time alone makes something due, in `elapsed_s`.
    pub fn due_s(&self) -> Option<f64> {
        if self.over {
            return None;
        }
        let open = self.open.values().flat_map(|open| {
            let raise = (!self.ignorant(open).is_empty()).then(|| open.ready_s());
            [raise, open.reminder_s(self.repeat)]
        });
        let due = open.chain([self.gate.due_s()]).flatten();
        due.min_by(f64::total_cmp)
    }

    /// The judge's word.
    fn found(
        &mut self,
        at: &Stamp,
        run: Option<Arc<RunFacts>>,
        happening: Happening,
    ) -> Option<Send> {
        let Happening::Finding {
            finding,
            severity,
            state,
            awaits_evidence,
        } = happening
        else {
            return None;
        };
        let job = run.as_ref().map_or_else(String::new, |run| run.id.clone());
        let key = (job, finding.name.clone());
        if state == FindingState::Cleared {
            return self.cleared(at, &key, finding);
        }
        let waits = awaits_evidence.then_some(at.elapsed_s + EVIDENCE_S);
        self.holds(at.elapsed_s, key, (finding, run), severity, waits);
        None
    }

    /// A job is over, and with it all that held of it.
    fn gone(&mut self, at: &Stamp, job: &str) -> Vec<Send> {
        let held: Vec<(Key, Finding)> = self
            .open
            .iter()
            .filter(|((of, _), _)| of == job)
            .map(|(key, open)| (key.clone(), open.finding.clone()))
            .collect();
        let told = held
            .into_iter()
            .filter_map(|(key, finding)| self.cleared(at, &key, finding))
            .collect();
        self.habits.retain(|(of, _), _| of != job);
        told
    }

    /// A finding was raised, or its facts changed.
    fn holds(
        &mut self,
        now_s: f64,
        key: Key,
        (finding, run): (Finding, Option<Arc<RunFacts>>),
        severity: Severity,
        evidence_s: Option<f64>,
    ) {
        if let Some(open) = self.open.get_mut(&key) {
            open.finding = finding;
            // It may become an alarm for somebody who wasn't told.
            open.severity = severity;
            return;
        }
        let habit = self.habits.entry(key.clone()).or_default();
        habit.raises += 1;
        let open = Open {
            severity,
            stacks: Vec::new(),
            evidence_s,
            pause_s: habit.pause_s(),
            told: Vec::new(),
            said_s: now_s,
            reminders: 0,
            finding,
            run,
        };
        self.open.insert(key, open);
    }

    /// The end of a finding is told to those who know of it; for others there is nothing to
    /// take back.
    fn cleared(&mut self, at: &Stamp, key: &Key, finding: Finding) -> Option<Send> {
        let open = self.open.remove(key)?;
        let unheard = self.gate.forget(key);
        let mut to = open.told;
        to.retain(|channel| !unheard.contains(channel));
        let about = About::Finding(finding);
        let alert = self.alert(at, about, State::Cleared, open.severity);
        Some(Send {
            to,
            alert,
            run: open.run,
        })
    }

    /// Raises and reminders whose time has come; at the run's end, also those that wait.
    fn what_is_due(&mut self, at: &Stamp, last: bool) -> Vec<Send> {
        let keys: Vec<Key> = self.open.keys().cloned().collect();
        let mut due = Vec::new();
        for key in keys {
            let Some(mut open) = self.open.remove(&key) else {
                continue;
            };
            due.extend(self.say(at, &key, &mut open, last));
            self.open.insert(key, open);
        }
        due
    }

    fn say(&mut self, at: &Stamp, key: &Key, open: &mut Open, last: bool) -> Option<Send> {
        let now_s = at.elapsed_s;
        let new = self.ignorant(open);
        if !new.is_empty() && (last || open.ready_s() <= now_s) {
            open.told.extend(new.iter().cloned());
            open.told.sort();
            open.said_s = now_s;
            if let Some(habit) = self.habits.get_mut(key) {
                habit.told += 1;
                habit.said_s = Some(now_s);
            }
            return Some(self.send(at, (key, open), State::Raised, new));
        }
        if open.reminder_s(self.repeat).is_some_and(|s| s <= now_s) {
            open.reminders += 1;
            open.said_s = now_s;
            return Some(self.send(at, (key, open), State::Reminded, open.told.clone()));
        }
        None
    }

    /// Who should know that it holds, and doesn't. What another finding explains is no alarm.
    fn ignorant(&self, open: &Open) -> Vec<String> {
        if open.finding.because.is_some() {
            return Vec::new();
        }
        let mut to = self.routes.of_finding(&open.finding.name, open.severity);
        to.retain(|channel| !open.told.contains(channel));
        to
    }

    fn send(&self, at: &Stamp, (key, open): (&Key, &Open), state: State, to: Vec<String>) -> Send {
        let about = About::Finding(open.finding.clone());
        let mut alert = self.alert(at, about, state, open.severity);
        alert.stacks.clone_from(&open.stacks);
        let habit = self.habits.get(key);
        alert.times = habit.map_or(1, |habit| habit.raises);
        Send {
            to,
            alert,
            run: open.run.clone(),
        }
    }

    fn alert(&self, at: &Stamp, about: About, state: State, severity: Severity) -> Alert {
        let age_s = self
            .moved_s
            .map(|moved_s| (at.elapsed_s - moved_s).max(0.0));
        Alert {
            about,
            state,
            severity,
            time: at.time.clone(),
            elapsed_s: at.elapsed_s,
            progress: Progress::new(&self.progress, age_s),
            stacks: Vec::new(),
            times: 1,
            others: Vec::new(),
            more: 0,
        }
    }

    fn ended(&mut self, at: &Stamp, end: End) -> Vec<Send> {
        self.over = true;
        let due = self.what_is_due(at, true);
        let mut all = self.gate.last(due);
        let severity = if end.is_well() {
            Severity::Note
        } else {
            Severity::Warning
        };
        let to = self.routes.of_end(end.is_well());
        let alert = self.alert(at, About::Finished(end), State::Raised, severity);
        all.push(Send {
            to,
            alert,
            run: None,
        });
        all.retain(|send| !send.to.is_empty());
        all
    }
}
