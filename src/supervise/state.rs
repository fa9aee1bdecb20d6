//! What to do when something happens to a run. Pure: it gets happenings and returns actions;
//! it knows no clock, file or process.

use crate::model::{Event, Exit, Leftovers, Outcome, RunState};

pub use words::{Action, Clear, Deed, End, Happening, Order, Reach};

#[path = "state_words.rs"]
mod words;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Running,
    /// The child has ended, others of the job may live on, and their output is still relayed.
    Clearing(Exit, Clear),
    /// The child has ended, and may be followed by another.
    Between(Exit, Step),
    Draining(Exit),
    Finishing(Exit),
    Over,
}

/// On the way from one attempt to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// What it ended of isn't known yet.
    Asking,
    /// What is left of it is ended: it may hold a GPU's memory.
    Clearing,
    /// The pause.
    Resting,
}

/// Why a run is to end before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Somebody sent a signal.
    Cancelled,
    /// A finding, by the user's own orders.
    Stopped,
    /// The same, and another start is to follow.
    Restarted,
    /// The time limit, which tells more than a signal before or after it.
    TimedOut,
}

/// The state of a run.
#[derive(Debug)]
pub struct State {
    phase: Phase,
    /// Why the run was to end before its time, if it was.
    reason: Option<Reason>,
    /// What becomes of what the child leaves behind,
    leftovers: Leftovers,
    /// and what was settled before the start.
    settled: Leftovers,
    relays_ended: bool,
    /// The child draws on a PTY of ours, whose size we must pass on.
    has_terminal: bool,
    /// So often it may be started again.
    restarts_left: u32,
    /// The signal that ended the run while there was no child to die of it.
    interrupted: Option<i32>,
}

const HUP: i32 = 1;
const INT: i32 = 2;
const QUIT: i32 = 3;
const KILL: i32 = 9;
const TERM: i32 = 15;
const STOPS_OF_A_TERMINAL: [i32; 3] = [20, 21, 22];
const CONT: i32 = 18;
const WINCH: i32 = 28;

/// As `timeout(1)` does.
const TIMED_OUT: i32 = 124;
/// Ended because of a finding: a code that neither a limit nor a failed start has.
const STOPPED: i32 = 123;

/// The signals by which somebody says that a run shall end (numbers as on every Linux
/// architecture that NVIDIA supports).
fn asks_to_end(signal: i32) -> bool {
    [HUP, INT, QUIT, TERM].contains(&signal)
}

impl State {
    /// A run whose child has just been started. `relays`: whether anything is relayed at all.
    pub fn new(relays: bool, has_terminal: bool, leftovers: Leftovers) -> Self {
        Self {
            phase: Phase::Running,
            reason: None,
            leftovers,
            settled: leftovers,
            relays_ended: !relays,
            has_terminal,
            restarts_left: 0,
            interrupted: None,
        }
    }

    /// It may be started again so often.
    #[must_use]
    pub fn with_restarts(self, restarts_left: u32) -> Self {
        Self {
            restarts_left,
            ..self
        }
    }

    /// The same run as if its child had just been started: what became of the last happening is
    /// unknown, and whoever asks tells again what has ended.
    #[must_use]
    pub fn afresh(&self) -> Self {
        Self {
            phase: Phase::Running,
            restarts_left: 0,
            ..*self
        }
    }

    /// Takes in what happened; what comes back is to be done in that order.
    pub fn handle(&mut self, happening: Happening) -> Vec<Action> {
        match happening {
            Happening::Signal {
                signal,
                name,
                reach,
                from,
                sender,
                ignored,
            } => {
                let event = Event::Signal {
                    name,
                    from,
                    forwarded: self.forwards(reach),
                    sender,
                };
                let ends = asks_to_end(signal) && reach != Reach::FromJob && !ignored;
                self.signal((signal, ends), reach, event)
            }
            // A terminal's stop was meant for us as well. Any other is passed on where somebody
            // sits before a terminal that would seem hung; elsewhere watching goes on.
            Happening::ChildStopped { signal, foreground }
                if foreground || STOPS_OF_A_TERMINAL.contains(&signal) =>
            {
                vec![Action::Stop(signal)]
            }
            Happening::ChildStopped { .. } => Vec::new(),
            Happening::ChildEnded(exit) => self.child_ended(exit),
            Happening::TimeIsUp => self.time_is_up(),
            Happening::Ordered(order) => self.ordered(order),
            Happening::Answered(again) => self.answered(again),
            Happening::Rested => match self.phase {
                Phase::Between(_, Step::Resting) => vec![Action::StartAgain],
                _ => Vec::new(),
            },
            Happening::StartedAgain(runs) => self.started_again(runs),
            Happening::ChildKilled => {
                // It had no chance to end its own.
                self.leftovers = Leftovers::Kill;
                Vec::new()
            }
            Happening::Unkillable => match self.phase {
                Phase::Running => self.clear(Exit::default()),
                _ => Vec::new(),
            },
            Happening::Cleared => self.cleared(),
            Happening::RelaysEnded => {
                self.relays_ended = true;
                match self.phase {
                    Phase::Draining(exit) => self.finish(exit),
                    _ => Vec::new(),
                }
            }
            Happening::WatchersDone | Happening::Overdue => match self.phase {
                Phase::Finishing(exit) => self.leave(exit),
                _ => Vec::new(),
            },
        }
    }

    fn cleared(&mut self) -> Vec<Action> {
        match self.phase {
            Phase::Clearing(exit, _) => self.drain(exit),
            Phase::Between(exit, Step::Clearing) => {
                self.phase = Phase::Between(exit, Step::Resting);
                vec![Action::Rest]
            }
            _ => Vec::new(),
        }
    }

    fn forwards(&self, reach: Reach) -> bool {
        self.phase == Phase::Running && reach == Reach::UsAlone
    }

    /// `ends`: it is meant to end the run.
    fn signal(&mut self, (signal, ends): (i32, bool), reach: Reach, event: Event) -> Vec<Action> {
        let running = self.phase == Phase::Running;
        let forward = self.forwards(reach);
        let mut actions = Vec::new();
        if signal == WINCH && self.has_terminal && running {
            let told = reach != Reach::UsAlone;
            actions.push(Action::Resize { told });
        } else if forward {
            actions.push(Action::Forward(signal));
        }
        // While the child lives its own stop is ours.
        let waits = matches!(self.phase, Phase::Clearing(..) | Phase::Between(..));
        if waits && STOPS_OF_A_TERMINAL.contains(&signal) && reach != Reach::FromJob {
            actions.push(Action::Stop(signal));
        }
        if signal == CONT && self.has_terminal {
            actions.push(Action::CopySize);
        }
        // A window is resized a hundred times a minute while it is dragged.
        if signal != WINCH {
            actions.push(Action::Log(event));
        }
        if ends {
            actions.extend(self.asked_to_end(signal));
        }
        actions
    }

    fn asked_to_end(&mut self, signal: i32) -> Vec<Action> {
        match self.phase {
            Phase::Running if self.reason.is_some_and(|r| r != Reason::Restarted) => Vec::new(),
            Phase::Running => {
                self.reason = Some(Reason::Cancelled);
                vec![Action::Cancelling, Action::Asked]
            }
            Phase::Between(exit, step) => {
                self.reason = Some(Reason::Cancelled);
                self.interrupted = Some(signal);
                let mut actions = vec![Action::Cancelling];
                actions.extend(match step {
                    Step::Asking => self.clear(exit),
                    Step::Clearing => self.see_to(exit, Clear::Hurry),
                    Step::Resting => self.drain(exit),
                });
                actions
            }
            Phase::Clearing(exit, Clear::Kill) => self.see_to(exit, Clear::Hurry),
            // The child is gone; what we still wait for isn't worth another signal.
            Phase::Clearing(exit, Clear::Wait | Clear::Hurry) => self.drain(exit),
            Phase::Draining(exit) => self.finish(exit),
            Phase::Finishing(exit) => self.leave(exit),
            Phase::Over => Vec::new(),
        }
    }

    /// Whoever is asked to end already is left to it: the user's word goes before a finding's.
    fn ordered(&mut self, order: Order) -> Vec<Action> {
        if self.phase != Phase::Running || self.reason.is_some() {
            return Vec::new();
        }
        match order.deed {
            Deed::Signal(_) => vec![Action::SendFor(order)],
            Deed::Restart if self.restarts_left > 0 => {
                self.reason = Some(Reason::Restarted);
                vec![Action::StopFor(order)]
            }
            // One more that hangs is ended all the same.
            Deed::Restart | Deed::Stop => {
                let order = Order {
                    deed: Deed::Stop,
                    ..order
                };
                self.reason = Some(Reason::Stopped);
                // What hangs with it would hold the GPU.
                self.leftovers = Leftovers::Kill;
                vec![Action::StopFor(order)]
            }
        }
    }

    /// The limit is the job's: whom we wait for after the child has no more time either.
    fn time_is_up(&mut self) -> Vec<Action> {
        match self.phase {
            Phase::Running if self.reason == Some(Reason::Stopped) => Vec::new(),
            Phase::Running => {
                self.reason = Some(Reason::TimedOut);
                // A script may end and leave behind what it was the limit of.
                self.leftovers = Leftovers::Kill;
                vec![Action::TimeOut]
            }
            Phase::Clearing(exit, Clear::Wait) => {
                self.reason = Some(Reason::TimedOut);
                self.see_to(exit, Clear::Kill)
            }
            Phase::Between(exit, step) => {
                self.reason = Some(Reason::TimedOut);
                match step {
                    Step::Asking | Step::Clearing => self.see_to(exit, Clear::Kill),
                    Step::Resting => self.drain(exit),
                }
            }
            _ => Vec::new(),
        }
    }

    /// Whether this end may be followed by another start. Never one that somebody asked for,
    /// whether by us or by a signal to the child alone.
    fn may_restart(&self, exit: Exit) -> bool {
        let by_signal = exit.signal.or(exit.code.map(|code| code - 128));
        let is_asked = by_signal.is_some_and(asks_to_end);
        let may = match self.reason {
            Some(Reason::Restarted) => true,
            None => !exit.is_success() && !is_asked,
            Some(_) => false,
        };
        may && self.restarts_left > 0
    }

    fn answered(&mut self, again: bool) -> Vec<Action> {
        let Phase::Between(exit, Step::Asking) = self.phase else {
            return Vec::new();
        };
        if !again {
            return self.clear(exit);
        }
        self.phase = Phase::Between(exit, Step::Clearing);
        vec![Action::Clear(Clear::Kill)]
    }

    fn started_again(&mut self, runs: bool) -> Vec<Action> {
        let Phase::Between(exit, _) = self.phase else {
            return Vec::new();
        };
        self.reason = None;
        if !runs {
            return self.drain(exit);
        }
        self.restarts_left -= 1;
        self.leftovers = self.settled;
        self.phase = Phase::Running;
        Vec::new()
    }

    fn child_ended(&mut self, exit: Exit) -> Vec<Action> {
        let mut actions = vec![Action::Log(Event::Exited {
            code: exit.code,
            signal: exit.signal,
        })];
        let may_restart = self.may_restart(exit);
        match &mut self.phase {
            Phase::Running if may_restart => {
                self.phase = Phase::Between(exit, Step::Asking);
                actions.push(Action::AskWhy(exit));
            }
            Phase::Running => actions.extend(self.clear(exit)),
            // It was given up, and ends after all.
            Phase::Clearing(known, _) | Phase::Draining(known) => *known = exit,
            Phase::Between(..) | Phase::Finishing(_) | Phase::Over => {}
        }
        actions
    }

    /// The child is no more to be waited for.
    fn clear(&mut self, exit: Exit) -> Vec<Action> {
        match self.leftovers {
            Leftovers::Report => self.drain(exit),
            Leftovers::Wait => self.see_to(exit, Clear::Wait),
            Leftovers::Kill => self.see_to(exit, Clear::Kill),
        }
    }

    fn see_to(&mut self, exit: Exit, how: Clear) -> Vec<Action> {
        self.phase = Phase::Clearing(exit, how);
        vec![Action::Clear(how)]
    }

    fn drain(&mut self, exit: Exit) -> Vec<Action> {
        self.phase = Phase::Draining(exit);
        if self.relays_ended {
            self.finish(exit)
        } else {
            vec![Action::Drain]
        }
    }

    fn finish(&mut self, exit: Exit) -> Vec<Action> {
        self.phase = Phase::Finishing(exit);
        vec![Action::Finish(self.end(exit))]
    }

    /// What this end of the child means.
    pub fn end(&self, exit: Exit) -> End {
        let (state, outcome) = if self.reason == Some(Reason::TimedOut) {
            (RunState::Finished, Outcome::TimedOut)
        } else if self.reason == Some(Reason::Stopped) {
            (RunState::Finished, Outcome::Stopped)
        } else if exit.is_success() {
            (RunState::Finished, Outcome::Ok)
        } else if self.reason == Some(Reason::Cancelled) {
            (RunState::Cancelled, Outcome::Cancelled)
        } else if exit.signal.is_some() {
            (RunState::Finished, Outcome::Killed)
        } else {
            (RunState::Finished, Outcome::Failed)
        };
        End {
            exit,
            state,
            outcome,
        }
    }

    /// What our caller sees.
    pub fn shown(&self, exit: Exit) -> Exit {
        let by_us = match self.reason {
            Some(Reason::TimedOut) => Some(TIMED_OUT),
            Some(Reason::Stopped) => Some(STOPPED),
            Some(Reason::Cancelled | Reason::Restarted) | None => None,
        };
        if by_us.is_some() {
            Exit {
                code: by_us,
                signal: None,
            }
        } else if self.interrupted.is_some() {
            // As a child would have died of it.
            Exit {
                code: None,
                signal: self.interrupted,
            }
        } else if exit == Exit::default() {
            // Given up: what it would not die of.
            Exit {
                code: None,
                signal: Some(KILL),
            }
        } else {
            exit
        }
    }

    fn leave(&mut self, exit: Exit) -> Vec<Action> {
        self.phase = Phase::Over;
        vec![Action::Leave(self.shown(exit))]
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
