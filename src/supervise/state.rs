//! What to do when something happens to a run. Pure: it gets happenings and returns actions;
//! it knows no clock, file or process.

use crate::model::{Event, Exit, Outcome, RunState};

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A signal arrived at us.
    Signal {
        /// Its number.
        signal: i32,
        /// Its name, for the record.
        name: String,
        /// Who else got it.
        reach: Reach,
        /// Where it came from, for the record.
        from: String,
        /// Our caller ignored it: it is the child's affair alone.
        ignored: bool,
    },
    /// The child was stopped.
    ChildStopped {
        /// By this signal.
        signal: i32,
        /// We are in the foreground of a terminal: a shell waits for us there.
        foreground: bool,
    },
    /// The child ended.
    ChildEnded(Exit),
    /// No relay has anything more to deliver.
    RelaysEnded,
    /// The watchers have written everything.
    WatchersDone,
    /// The watchers took too long.
    Overdue,
}

/// Who has a signal that came to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The child has it as well.
    Child,
    /// We alone.
    UsAlone,
    /// We alone, from a process of the job: meant for the child's parent.
    FromJob,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send this signal to the child.
    Forward(i32),
    /// Copy the terminal's size, which may have changed while nobody was told.
    CopySize,
    /// Copy the terminal's size, then tell the child once more that it changed: its handler
    /// may have read the old size.
    Resize,
    /// Stop as the child was stopped, so that our shell takes over the terminal.
    Stop(i32),
    /// Write to disk that the run is being cancelled.
    Cancelling,
    /// Note this in the record.
    Log(Event),
    /// Deliver what the child left in its streams.
    Drain,
    /// Tell the watchers to write their last, and how it ended.
    Finish(End),
    /// Leave.
    Leave(Exit),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The child's own end.
    pub exit: Exit,
    /// The state to be recorded.
    pub state: RunState,
    /// The outcome to be recorded.
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Running,
    Draining(Exit),
    Finishing(Exit),
    Over,
}

/// The state of a run.
#[derive(Debug)]
pub struct State {
    phase: Phase,
    cancelled: bool,
    relays_ended: bool,
    /// The child draws on a PTY of ours, whose size we must pass on.
    has_terminal: bool,
}

const HUP: i32 = 1;
const INT: i32 = 2;
const QUIT: i32 = 3;
const TERM: i32 = 15;
const STOPS_OF_A_TERMINAL: [i32; 3] = [20, 21, 22];
const CONT: i32 = 18;
const WINCH: i32 = 28;

/// The signals by which somebody says that a run shall end (numbers as on every Linux
/// architecture that NVIDIA supports).
fn asks_to_end(signal: i32) -> bool {
    [HUP, INT, QUIT, TERM].contains(&signal)
}

impl State {
    /// A run whose child has just been started. `relays`: whether anything is relayed at all.
    pub fn new(relays: bool, has_terminal: bool) -> Self {
        Self {
            phase: Phase::Running,
            cancelled: false,
            relays_ended: !relays,
            has_terminal,
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
                ignored,
            } => {
                let mut actions = self.signal(signal, name, reach, from);
                if asks_to_end(signal) && reach != Reach::FromJob && !ignored {
                    actions.extend(self.asked_to_end());
                }
                actions
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

    fn signal(&mut self, signal: i32, name: String, reach: Reach, from: String) -> Vec<Action> {
        let running = self.phase == Phase::Running;
        let forward = running && reach == Reach::UsAlone;
        let mut actions = Vec::new();
        if signal == WINCH && self.has_terminal && running {
            actions.push(Action::Resize);
        } else if forward {
            actions.push(Action::Forward(signal));
        }
        if signal == CONT && self.has_terminal {
            actions.push(Action::CopySize);
        }
        // A window is resized a hundred times a minute while it is dragged.
        if signal != WINCH {
            actions.push(Action::Log(Event::Signal {
                name,
                from,
                forwarded: forward,
            }));
        }
        actions
    }

    fn asked_to_end(&mut self) -> Vec<Action> {
        match self.phase {
            Phase::Running if self.cancelled => Vec::new(),
            Phase::Running => {
                self.cancelled = true;
                vec![Action::Cancelling]
            }
            // The child is gone; what we still wait for isn't worth another signal.
            Phase::Draining(exit) => self.finish(exit),
            Phase::Finishing(exit) => self.leave(exit),
            Phase::Over => Vec::new(),
        }
    }

    fn child_ended(&mut self, exit: Exit) -> Vec<Action> {
        self.phase = Phase::Draining(exit);
        if self.relays_ended {
            self.finish(exit)
        } else {
            vec![Action::Drain]
        }
    }

    fn finish(&mut self, exit: Exit) -> Vec<Action> {
        self.phase = Phase::Finishing(exit);
        let (state, outcome) = if exit.is_success() {
            (RunState::Finished, Outcome::Ok)
        } else if self.cancelled {
            (RunState::Cancelled, Outcome::Cancelled)
        } else if exit.signal.is_some() {
            (RunState::Finished, Outcome::Killed)
        } else {
            (RunState::Finished, Outcome::Failed)
        };
        vec![Action::Finish(End {
            exit,
            state,
            outcome,
        })]
    }

    fn leave(&mut self, exit: Exit) -> Vec<Action> {
        self.phase = Phase::Over;
        vec![Action::Leave(exit)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: Exit = Exit {
        code: Some(0),
        signal: None,
    };

    fn signal(signal: i32, reach: Reach) -> Happening {
        Happening::Signal {
            signal,
            name: String::new(),
            reach,
            from: String::new(),
            ignored: false,
        }
    }

    fn forwards(actions: &[Action]) -> usize {
        actions
            .iter()
            .filter(|a| matches!(a, Action::Forward(_)))
            .count()
    }

    #[test]
    fn only_what_the_child_lacks_is_forwarded() {
        let mut state = State::new(true, false);
        assert_eq!(forwards(&state.handle(signal(TERM, Reach::UsAlone))), 1);
        assert_eq!(forwards(&state.handle(signal(TERM, Reach::Child))), 0);
        assert_eq!(forwards(&state.handle(signal(10, Reach::FromJob))), 0);
    }

    #[test]
    fn cancelling_is_written_once_and_a_success_undoes_it() {
        let mut state = State::new(true, false);
        assert!(
            state
                .handle(signal(INT, Reach::Child))
                .contains(&Action::Cancelling)
        );
        assert!(
            !state
                .handle(signal(INT, Reach::Child))
                .contains(&Action::Cancelling)
        );
        assert!(
            state
                .handle(Happening::ChildEnded(OK))
                .contains(&Action::Drain)
        );
        let finish = state.handle(Happening::RelaysEnded);
        assert_eq!(
            finish,
            vec![Action::Finish(End {
                exit: OK,
                state: RunState::Finished,
                outcome: Outcome::Ok
            })]
        );
        assert_eq!(
            state.handle(Happening::WatchersDone),
            vec![Action::Leave(OK)]
        );
        assert_eq!(state.handle(Happening::Overdue), vec![]);
    }

    #[test]
    fn a_cancelled_child_that_fails_is_cancelled_and_an_unasked_death_is_killed() {
        let died = Exit {
            code: None,
            signal: Some(TERM),
        };
        for (asked, outcome) in [(true, Outcome::Cancelled), (false, Outcome::Killed)] {
            let mut state = State::new(false, false);
            if asked {
                state.handle(signal(TERM, Reach::UsAlone));
            }
            let actions = state.handle(Happening::ChildEnded(died));
            let end = actions.iter().find_map(|a| match a {
                Action::Finish(end) => Some(end.outcome),
                _ => None,
            });
            assert_eq!(end, Some(outcome));
        }
    }

    #[test]
    fn a_signal_while_draining_ends_the_wait_and_reaches_nobody() {
        let mut state = State::new(true, false);
        state.handle(Happening::ChildEnded(OK));
        let actions = state.handle(signal(INT, Reach::Child));
        assert!(actions.iter().any(|a| matches!(a, Action::Finish(_))));
        assert_eq!(forwards(&actions), 0);
        assert_eq!(state.handle(Happening::RelaysEnded), vec![]);
        assert!(
            state
                .handle(signal(INT, Reach::UsAlone))
                .contains(&Action::Leave(OK))
        );
    }

    #[test]
    fn a_stop_stops_us_where_somebody_waits_at_a_terminal() {
        let stop = |signal, foreground| {
            State::new(true, true).handle(Happening::ChildStopped { signal, foreground })
        };
        assert_eq!(stop(20, false), vec![Action::Stop(20)]);
        assert_eq!(stop(19, true), vec![Action::Stop(19)]);
        assert_eq!(stop(19, false), vec![]);
    }

    #[test]
    fn a_resize_is_passed_on_only_where_a_pty_stands_in() {
        let resized = |terminal, reach| State::new(true, terminal).handle(signal(WINCH, reach));
        assert_eq!(resized(true, Reach::Child), vec![Action::Resize]);
        assert_eq!(resized(true, Reach::UsAlone), vec![Action::Resize]);
        assert_eq!(resized(false, Reach::Child), vec![]);
        assert_eq!(resized(false, Reach::UsAlone), vec![Action::Forward(WINCH)]);
    }
}
