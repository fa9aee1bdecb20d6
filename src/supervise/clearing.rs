//! What is left of the job after its main process: found, waited for, or ended.
//!
//! Owns looking for them (our descendants: we are their subreaper) and signalling them, each by
//! PID and start time. Nothing of our own is among them: helper, hooks and tools are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::launch::relay::Relays;
use crate::launch::signals;
use crate::launch::stop::{Ladder, Order, Rung};
use crate::model::ProcessId;
use crate::observe::{self, JobTree, ProcFs, ProcessState};
use crate::report::{Fate, Leftover};

use super::job_process::{command_of, continue_if_stopped, signal_exactly};
use super::state::Clear;
use super::watchers::Watchers;

/// Some need a moment to end by themselves, `tee` above all: they get it as long as output comes
/// and so long without any,
const LINGER: Duration = Duration::from_secs(2);
/// but no longer than this in all.
const LINGER_AT_MOST: Duration = Duration::from_secs(10);
/// Whoever is gone this soon after the main process wasn't left behind.
const PASSING: Duration = Duration::from_millis(500);
/// Those who aren't our own children end without a word to us.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The same, where nobody is in a hurry.
const WAIT_EVERY: Duration = Duration::from_secs(1);
/// What happens so soon after a look is looked at together.
const TOGETHER: Duration = Duration::from_millis(5);
/// A program of ours is started within about this.
const STARTING: Duration = Duration::from_millis(10);

/// One of them.
#[derive(Default)]
struct Member {
    command: String,
    /// It was signalled, or waited for long enough to be worth a word.
    is_told: bool,
    /// Why it can't be ended.
    stuck: Option<String>,
}

/// What is left, and what is done about it.
pub struct Clearing {
    main: ProcessId,
    how: Clear,
    since: Duration,
    ladder: Ladder,
    members: BTreeMap<ProcessId, Member>,
    alive: BTreeSet<ProcessId>,
    looked: Duration,
    next: Duration,
    /// Bytes relayed, and when these were so many first.
    relayed: (u64, Duration),
    lingers: bool,
    is_over: bool,
}

impl Clearing {
    /// The main process has ended now.
    pub fn new(main: ProcessId, grace: Duration, now: Duration) -> Self {
        Self {
            main,
            how: Clear::Wait,
            since: now,
            ladder: Ladder::new(Some(grace)),
            members: BTreeMap::new(),
            alive: BTreeSet::new(),
            looked: now,
            next: now,
            relayed: (0, now),
            lingers: true,
            is_over: false,
        }
    }

    /// From now on this is done. `in_hurry`: nobody gets time to end by himself.
    pub fn go_on(&mut self, how: Clear, in_hurry: bool, now: Duration) {
        self.how = how;
        self.lingers &= !in_hurry && how != Clear::Hurry;
        if how == Clear::Hurry {
            self.ladder.hurry(now);
        }
        self.next = now;
    }

    /// Nothing more is done.
    pub fn stop(&mut self) {
        self.is_over = true;
    }

    /// When it has to look at the latest.
    pub fn next(&self) -> Option<Duration> {
        (!self.is_over).then_some(self.next)
    }

    /// Looks and does what is due; true once it is over. `changed`: a child of ours or a relay
    /// has changed.
    pub fn look(
        &mut self,
        relays: &Relays,
        watchers: &Watchers,
        now: Duration,
        changed: bool,
    ) -> bool {
        if changed {
            // A crowd of orphans that end is one look, not a thousand.
            self.next = self.next.min(self.looked + TOGETHER);
        }
        if self.is_over || now < self.next {
            return false;
        }
        self.looked = now;
        let main = self.main;
        let found = watchers.apart_from_own(|own| leftovers(main, own));
        let Some(found) = found else {
            // A program of ours is being started, and can't be told from theirs.
            self.next = now + STARTING;
            return false;
        };
        self.meet(&found, now);
        self.is_over = match self.how {
            Clear::Wait => {
                self.next = now + WAIT_EVERY;
                self.alive.is_empty()
            }
            Clear::Kill | Clear::Hurry => self.climb(relays, watchers, now),
        };
        self.is_over
    }

    /// Those that are worth a word, but for those that simply live.
    pub fn handled(&self) -> Vec<Leftover> {
        let told = self.members.iter().filter(|(_, m)| m.is_told);
        told.filter_map(|(who, member)| {
            let fate = match &member.stuck {
                _ if !self.alive.contains(who) => Fate::Ended,
                Some(why) => Fate::Stuck(why.clone()),
                None => return None,
            };
            Some(Leftover {
                pid: who.pid,
                command: Some(member.command.clone()),
                gpu_mem_mib: None,
                fate,
            })
        })
        .collect()
    }

    fn meet(&mut self, found: &[observe::Leftover], now: Duration) {
        self.alive = found.iter().map(|left| left.id).collect();
        let stays = self.how == Clear::Wait && now >= self.since + PASSING;
        for left in found {
            let member = self.members.entry(left.id).or_default();
            // It may have been seen on the way to its program.
            if member.command.is_empty() || left.state != ProcessState::Disk {
                member.command = command_of(left);
            }
            member.is_told |= stays;
        }
    }

    fn climb(&mut self, relays: &Relays, watchers: &Watchers, now: Duration) -> bool {
        self.next = now + LOOK_EVERY;
        if self.alive.is_empty() {
            return true;
        }
        if self.lingers && self.may_linger(relays, now) {
            return false;
        }
        self.lingers = false;
        for order in self.ladder.look(&self.alive, now) {
            self.send(order, watchers);
        }
        if let Some(next) = self.ladder.next() {
            self.next = self.next.min(next);
        }
        let is_over = self.ladder.is_over();
        if is_over {
            for who in self.ladder.left() {
                if let Some(member) = self.members.get_mut(&who) {
                    member.is_told = true;
                    let why = "it waits in the kernel, KILL or not".to_owned();
                    member.stuck.get_or_insert(why);
                }
            }
        }
        is_over
    }

    /// Output is still coming, or came a moment ago, from somebody who may be at his end.
    fn may_linger(&mut self, relays: &Relays, now: Duration) -> bool {
        if relays.all_ended() {
            return false;
        }
        let bytes = relays.progress().iter().map(|relay| relay.bytes()).sum();
        if self.relayed.0 != bytes {
            self.relayed = (bytes, now);
        }
        now < self.relayed.1 + LINGER && now < self.since + LINGER_AT_MOST
    }

    fn send(&mut self, order: Order, watchers: &Watchers) {
        let Some(member) = self.members.get_mut(&order.who) else {
            return;
        };
        let signal = signals::of_rung(order.rung);
        let name = signals::name(signal);
        let pid = order.who.pid;
        let mut result = format!("{name} to {} (PID {pid})", member.command);
        match signal_exactly(order.who, signal) {
            // It has ended meanwhile.
            Ok(false) => return,
            Ok(true) => {
                if order.rung == Rung::Term && continue_if_stopped(order.who) {
                    result.push_str(", and CONT, because it was stopped");
                }
            }
            Err(error) => {
                self.ladder.refused(order.who);
                result = format!("{result}: {error}");
                member.stuck = Some(error.to_string());
            }
        }
        member.is_told = true;
        watchers.act("leftovers", result);
    }
}

/// Our descendants that live, but for the main process and these of our own.
fn leftovers(main: ProcessId, own: &[u32]) -> Vec<observe::Leftover> {
    let own = own.iter().copied().collect();
    JobTree::new(ProcFs::default(), std::process::id(), own, Some(main)).leftovers()
}
