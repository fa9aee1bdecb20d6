//! The stop ladder: TERM, a grace, KILL. Pure: it is told who lives and what time it is, and
//! says who is to get what.
//!
//! Owns when a process may be signalled: TERM once, KILL once and only after the grace, nothing
//! to whoever is gone or has another start time. It always comes to an end: what neither dies
//! nor may be signalled is given up. Whoever appears while others have their grace is a part of
//! their answer (a handler that saves something starts programs), so it is asked only after it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::ProcessId;

/// How long a killed process may take to vanish: one that waits in the kernel may never.
pub const VANISHES_WITHIN: Duration = Duration::from_secs(2);

/// So many times a grace may pass in all: those that were there, what they started meanwhile,
/// and what these started. Whoever forks faster than that is named and left.
const ROUNDS: u32 = 3;

/// What a process is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// It is asked to end.
    Term,
    /// It is ended.
    Kill,
}

/// A signal to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// To whom.
    pub who: ProcessId,
    /// Which.
    pub rung: Rung,
}

/// Where a process stands. Times are as the caller counts them.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// When it was first asked to end, by us or by somebody else.
    asked: Option<Duration>,
    /// It is to get a TERM of ours although somebody else has asked it.
    insisted: bool,
    termed: bool,
    killed: Option<Duration>,
    /// Nothing more can be done.
    given_up: bool,
}

/// The ladder of some processes.
#[derive(Clone, Debug)]
pub struct Ladder {
    /// None: nobody is killed.
    grace: Option<Duration>,
    members: BTreeMap<ProcessId, Member>,
    /// When all of it is over, whatever there still is.
    until: Option<Duration>,
}

impl Ladder {
    /// With this grace between the rungs; None: there is no second rung.
    pub fn new(grace: Option<Duration>) -> Self {
        Self {
            grace,
            members: BTreeMap::new(),
            until: None,
        }
    }

    /// Somebody else has asked this process to end; the first time counts.
    pub fn asked(&mut self, who: ProcessId, now: Duration) {
        self.members
            .entry(who)
            .or_default()
            .asked
            .get_or_insert(now);
    }

    /// This process gets a TERM of ours, whoever has asked it before. Where nobody was to be
    /// killed, it is after this grace, which counts from that TERM.
    pub fn insist(&mut self, who: ProcessId, grace: Duration) {
        let member = self.members.entry(who).or_default();
        member.insisted = true;
        if self.grace.is_none() {
            member.asked = None;
            self.grace = Some(grace);
        }
    }

    /// The grace is over: somebody can't wait.
    pub fn hurry(&mut self, now: Duration) {
        self.grace = self.grace.map(|_| Duration::ZERO);
        let soon = now + VANISHES_WITHIN * ROUNDS;
        self.until = self.until.map(|until| until.min(soon));
    }

    /// A signal could not be sent to it although it lives: it may not be signalled by us.
    pub fn refused(&mut self, who: ProcessId) {
        if let Some(member) = self.members.get_mut(&who) {
            member.given_up = true;
        }
    }

    /// These live now: what is to be sent.
    pub fn look(&mut self, alive: &BTreeSet<ProcessId>, now: Duration) -> Vec<Order> {
        self.members.retain(|who, _| alive.contains(who));
        for who in alive {
            self.members.entry(*who).or_default();
        }
        if self.until.is_some_and(|until| now >= until) {
            self.members.values_mut().for_each(|m| m.given_up = true);
            return Vec::new();
        }
        let mut orders = self.kill_whose_grace_is_over(now);
        let in_grace = self.is_in_grace();
        orders.extend(self.ask(in_grace, now));
        if let (None, false, Some(grace)) = (self.until, orders.is_empty(), self.grace) {
            self.until = Some(now + (grace + VANISHES_WITHIN) * ROUNDS);
        }
        orders
    }

    /// When it has to be looked at again, whatever happens; None: time alone changes nothing.
    pub fn next(&self) -> Option<Duration> {
        let pending = self.members.values().filter(|m| !m.given_up);
        let next = pending.filter_map(|member| match (member.killed, member.asked) {
            (Some(at), _) => Some(at + VANISHES_WITHIN),
            (None, Some(at)) => self.grace.map(|grace| at + grace),
            (None, None) => None,
        });
        next.min()
    }

    /// Whether nothing is left that could still be done or waited for.
    pub fn is_over(&self) -> bool {
        self.members.values().all(|member| member.given_up)
    }

    /// Who is still there.
    pub fn left(&self) -> impl Iterator<Item = ProcessId> {
        self.members.keys().copied()
    }

    /// Those who don't vanish of a KILL are given up.
    fn kill_whose_grace_is_over(&mut self, now: Duration) -> Vec<Order> {
        let mut orders = Vec::new();
        for (who, member) in self.members.iter_mut().filter(|(_, m)| !m.given_up) {
            match (member.killed, member.asked, self.grace) {
                (Some(at), ..) => member.given_up = now >= at + VANISHES_WITHIN,
                (None, Some(at), Some(grace)) if now >= at + grace => {
                    member.killed = Some(now);
                    orders.push(Order {
                        who: *who,
                        rung: Rung::Kill,
                    });
                }
                _ => {}
            }
        }
        orders
    }

    fn is_in_grace(&self) -> bool {
        let waits = |m: &Member| m.asked.is_some() && m.killed.is_none() && !m.given_up;
        self.grace.is_some() && self.members.values().any(waits)
    }

    /// TERM to those who lack it. Newcomers wait until nobody has a grace any more.
    fn ask(&mut self, in_grace: bool, now: Duration) -> Vec<Order> {
        let mut orders = Vec::new();
        for (who, member) in &mut self.members {
            let new = member.asked.is_none() && !in_grace;
            let done = member.termed || member.killed.is_some() || member.given_up;
            if (new || member.insisted) && !done {
                member.termed = true;
                member.asked.get_or_insert(now);
                orders.push(Order {
                    who: *who,
                    rung: Rung::Term,
                });
            }
        }
        orders
    }
}

#[cfg(test)]
#[path = "stop_tests.rs"]
mod tests;
