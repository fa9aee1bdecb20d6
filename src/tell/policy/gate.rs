//! What becomes of a storm: the first alerts go at once, the rest are gathered into one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::model::Severity;

use super::super::alert::{Alert, Brief, RunFacts, State};
use super::{Key, Send};

/// So many alerts within [`WINDOW_S`] go at once.
const BURST: usize = 3;
/// What comes on top is gathered for this long, seconds.
const WINDOW_S: f64 = 10.0;
/// More than this within an hour, and everything is gathered for [`LONG_WINDOW_S`].
const HOURLY: usize = 30;
/// Ten minutes, in seconds.
const LONG_WINDOW_S: f64 = 600.0;
/// An hour, in seconds.
const HOUR_S: f64 = 3600.0;
/// Gathered alerts that are named one by one; the rest is a count.
const NAMED: usize = 20;
/// Gathered alerts that are held at the most: beyond, the least important are counted alone.
const HELD: usize = 200;

/// Lets alerts pass, or holds them.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    /// When alerts passed, within the last hour.
    passed: VecDeque<f64>,
    held: Vec<Send>,
    /// How many more there were, by channel.
    counted: BTreeMap<String, u32>,
    due_s: Option<f64>,
}

impl Gate {
    /// What of `new`, and of what is held, goes now.
    pub fn pass(&mut self, now_s: f64, new: Vec<Send>) -> Vec<Send> {
        while self.passed.front().is_some_and(|s| now_s - s > HOUR_S) {
            self.passed.pop_front();
        }
        let mut out = Vec::new();
        for send in new.into_iter().filter(|send| !send.to.is_empty()) {
            let recent = self.passed.iter().filter(|s| now_s - **s < WINDOW_S);
            let crowded = recent.count() >= BURST || self.passed.len() >= HOURLY;
            if self.held.is_empty() && !crowded {
                self.passed.push_back(now_s);
                out.push(send);
                continue;
            }
            self.hold(send);
            let window = if self.passed.len() >= HOURLY {
                LONG_WINDOW_S
            } else {
                WINDOW_S
            };
            self.due_s.get_or_insert(now_s + window);
        }
        if self.due_s.is_some_and(|due_s| due_s <= now_s) {
            self.passed.push_back(now_s);
            out.extend(self.release());
        }
        out
    }

    /// When what is held goes.
    pub fn due_s(&self) -> Option<f64> {
        self.due_s
    }

    /// A finding is over. If it is held back that it holds, that is forgotten; returns the
    /// channels that will not hear of it.
    pub(super) fn forget(&mut self, key: &Key) -> Vec<String> {
        let mut unheard = Vec::new();
        self.held.retain(|send| {
            let same = send.is_about(key) && send.alert.state != State::Cleared;
            if same && send.alert.state == State::Raised {
                unheard.extend(send.to.iter().cloned());
            }
            !same
        });
        if self.held.is_empty() {
            self.due_s = None;
        }
        unheard
    }

    /// Everything, because it is the end.
    pub fn last(&mut self, new: Vec<Send>) -> Vec<Send> {
        self.held.extend(new);
        self.release()
    }

    fn hold(&mut self, send: Send) {
        self.held.push(send);
        if self.held.len() <= HELD {
            return;
        }
        // Of equals the newest: the first one tells how it began.
        let least = self
            .held
            .iter()
            .enumerate()
            .min_by_key(|(i, s)| (rank(s), Reverse(*i)));
        if let Some(at) = least.map(|(at, _)| at) {
            for channel in self.held.remove(at).to {
                *self.counted.entry(channel).or_default() += 1;
            }
        }
    }

    /// What is held: one alert for each channel.
    fn release(&mut self) -> Vec<Send> {
        self.due_s = None;
        let held = std::mem::take(&mut self.held);
        let counted = std::mem::take(&mut self.counted);
        let mut of_channel: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
        for (i, send) in held.iter().enumerate() {
            for channel in &send.to {
                of_channel.entry(channel).or_default().push(i);
            }
        }
        let mut groups: BTreeMap<(Vec<usize>, u32), Vec<String>> = BTreeMap::new();
        for (channel, alerts) in of_channel {
            let more = counted.get(channel).copied().unwrap_or_default();
            groups
                .entry((alerts, more))
                .or_default()
                .push(channel.clone());
        }
        groups
            .into_iter()
            .filter_map(|((indices, more), to)| {
                let sends = indices.iter().filter_map(|i| held.get(*i));
                let (mut alert, run) = together(sends.collect())?;
                alert.more += more;
                Some(Send { to, alert, run })
            })
            .collect()
    }
}

/// The most serious one (what holds before what is over, then the first), naming the others.
fn together(mut sends: Vec<&Send>) -> Option<(Alert, Option<Arc<RunFacts>>)> {
    sends.sort_by_key(|send| Reverse(rank(send)));
    let (first, others) = sends.split_first()?;
    let mut alert = first.alert.clone();
    alert.more = others.len() as u32;
    alert.others = others
        .iter()
        .take(NAMED)
        .map(|other| Brief {
            name: subject(other),
            state: other.alert.state,
            severity: other.alert.severity,
        })
        .collect();
    Some((alert, first.run.clone()))
}

/// How much it matters: what is over less than what holds.
fn rank(send: &Send) -> (bool, Severity) {
    (send.alert.state != State::Cleared, send.alert.severity)
}

/// Of several jobs' findings, whose it is.
fn subject(send: &Send) -> String {
    let name = send.alert.subject().to_owned();
    match &send.run {
        Some(run) => {
            let user = run.user.as_deref().unwrap_or("?");
            format!("{name} ({} of {user})", run.name)
        }
        None => name,
    }
}
