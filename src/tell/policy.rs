//! Who is told what, and when: pure, so that every case can be tried without a clock.
//!
//! Owns routes, repeats, caps, and what becomes of a storm. Time is an argument; must not know
//! what a message looks like or whether it arrives.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{FindingState, ProgressState, Repeat, Severity, Stamp, TellSettings};

use super::alert::{About, Alert, End, Finding, OfRanks, Progress, RunFacts, State};

mod gate;
mod news;
mod pulse;
mod routes;
#[cfg(test)]
mod tests;

use gate::Gate;
use news::Key;
pub use news::{Happening, Inherited, Send};
pub use pulse::Pulse;
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

/// A finding that holds.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug)]
pub struct Policy {
    routes: Routes,
    repeat: Repeat,
    open: BTreeMap<Key, Open>,
    habits: BTreeMap<Key, Habit>,
    gate: Gate,
    progress: ProgressState,
    moved_s: Option<f64>,
    ranks: BTreeMap<String, OfRanks>,
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
            ranks: BTreeMap::new(),
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
            Happening::Ranks(ranks) => self.ranks = ranks,
            Happening::TakenOver(known) => self.taken_over(at.elapsed_s, known),
            Happening::Left => return self.left(at),
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

    /// What waits, as it would be sent if nobody could wait any longer.
    pub fn waiting(&self, at: &Stamp) -> Vec<Send> {
        let mut open = self.open.values();
        let waits = |open: &Open| !self.ignorant(open).is_empty();
        if self.over || (self.gate.due_s().is_none() && !open.any(waits)) {
            return Vec::new();
        }
        self.clone().left(at)
    }

    /// What channels were told that holds.
    pub fn known(&self) -> Vec<Inherited> {
        let told = self.open.values().filter(|open| !open.told.is_empty());
        told.map(|open| Inherited {
            finding: open.finding.clone(),
            severity: open.severity,
            told: open.told.clone(),
        })
        .collect()
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

    /// From now on we speak for the job, or no longer.
    fn taken_over(&mut self, now_s: f64, known: Vec<Inherited>) {
        self.open.clear();
        for Inherited {
            finding,
            severity,
            told,
        } in known
        {
            let key = (String::new(), finding.name.clone());
            self.holds(now_s, key.clone(), (finding, None), severity, None);
            if let Some(open) = self.open.get_mut(&key) {
                open.told = told;
            }
        }
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
        let mut alert = Alert {
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
            of_ranks: OfRanks::default(),
        };
        if let Some(ranks) = self.ranks.get(alert.subject()) {
            alert.of_ranks.clone_from(ranks);
        }
        alert
    }

    fn left(&mut self, at: &Stamp) -> Vec<Send> {
        self.over = true;
        let due = self.what_is_due(at, true);
        let mut all = self.gate.last(due);
        all.retain(|send| !send.to.is_empty());
        all
    }

    fn ended(&mut self, at: &Stamp, end: End) -> Vec<Send> {
        let mut all = self.left(at);
        let severity = if end.is_well() {
            Severity::Note
        } else {
            Severity::Warning
        };
        let to = self.routes.of_end(end.is_well());
        let alert = self.alert(at, About::Finished(end), State::Raised, severity);
        all.extend((!to.is_empty()).then_some(Send {
            to,
            alert,
            run: None,
        }));
        all
    }
}
