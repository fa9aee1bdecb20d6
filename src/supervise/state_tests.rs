//! What is done about what happens, in which order.

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
        sender: None,
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
    let mut state = State::new(true, false, Leftovers::Report);
    assert_eq!(forwards(&state.handle(signal(TERM, Reach::UsAlone))), 1);
    assert_eq!(forwards(&state.handle(signal(TERM, Reach::Child))), 0);
    assert_eq!(forwards(&state.handle(signal(10, Reach::FromJob))), 0);
}

#[test]
fn cancelling_is_written_once_and_a_success_undoes_it() {
    let mut state = State::new(true, false, Leftovers::Report);
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
        let mut state = State::new(false, false, Leftovers::Report);
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
    let mut state = State::new(true, false, Leftovers::Report);
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
        State::new(true, true, Leftovers::Report)
            .handle(Happening::ChildStopped { signal, foreground })
    };
    assert_eq!(stop(20, false), vec![Action::Stop(20)]);
    assert_eq!(stop(19, true), vec![Action::Stop(19)]);
    assert_eq!(stop(19, false), vec![]);
}

#[test]
fn a_resize_is_passed_on_only_where_a_pty_stands_in() {
    let resized = |terminal, reach| {
        State::new(true, terminal, Leftovers::Report).handle(signal(WINCH, reach))
    };
    assert_eq!(
        resized(true, Reach::Child),
        vec![Action::Resize { told: true }]
    );
    assert_eq!(
        resized(true, Reach::UsAlone),
        vec![Action::Resize { told: false }]
    );
    assert_eq!(resized(false, Reach::Child), vec![]);
    assert_eq!(resized(false, Reach::UsAlone), vec![Action::Forward(WINCH)]);
}

fn said(actions: &[Action]) -> Vec<&Action> {
    let loud = |a: &&Action| !matches!(a, Action::Log(_));
    actions.iter().filter(loud).collect()
}

fn left_as(actions: &[Action]) -> Option<Exit> {
    actions.iter().find_map(|a| match a {
        Action::Leave(exit) => Some(*exit),
        _ => None,
    })
}

fn end_of(actions: &[Action]) -> Option<(RunState, Outcome)> {
    actions.iter().find_map(|a| match a {
        Action::Finish(end) => Some((end.state, end.outcome)),
        _ => None,
    })
}

#[test]
fn a_time_limit_is_124_whatever_the_child_answers() {
    let term = Exit {
        code: None,
        signal: Some(TERM),
    };
    for exit in [OK, term] {
        let mut state = State::new(false, false, Leftovers::Report);
        assert_eq!(state.handle(Happening::TimeIsUp), [Action::TimeOut]);
        let ended = state.handle(Happening::ChildEnded(exit));
        assert_eq!(said(&ended), [&Action::Clear(Clear::Kill)]);
        let finish = state.handle(Happening::Cleared);
        let timed_out = (RunState::Finished, Outcome::TimedOut);
        assert_eq!(end_of(&finish), Some(timed_out));
        let left = left_as(&state.handle(Happening::WatchersDone));
        assert_eq!(left.and_then(|exit| exit.code), Some(124));
    }
}

#[test]
fn a_time_limit_after_the_end_says_nothing() {
    let mut state = State::new(true, false, Leftovers::Report);
    state.handle(Happening::ChildEnded(OK));
    assert_eq!(state.handle(Happening::TimeIsUp), []);
    state.handle(Happening::RelaysEnded);
    assert_eq!(state.handle(Happening::TimeIsUp), []);
    let left = left_as(&state.handle(Happening::WatchersDone));
    assert_eq!(left, Some(OK));
}

#[test]
fn leftovers_are_seen_to_while_output_is_relayed() {
    for (leftovers, how) in [
        (Leftovers::Wait, Clear::Wait),
        (Leftovers::Kill, Clear::Kill),
    ] {
        let mut state = State::new(true, false, leftovers);
        let actions = state.handle(Happening::ChildEnded(OK));
        assert_eq!(said(&actions), [&Action::Clear(how)]);
        assert_eq!(state.handle(Happening::Cleared), [Action::Drain]);
        let finish = state.handle(Happening::RelaysEnded);
        assert_eq!(end_of(&finish), Some((RunState::Finished, Outcome::Ok)));
    }
}

#[test]
fn who_asks_again_waits_no_longer() {
    let ctrl_c = || signal(INT, Reach::Child);
    let mut waits = State::new(true, false, Leftovers::Wait);
    waits.handle(Happening::ChildEnded(OK));
    assert_eq!(said(&waits.handle(ctrl_c())), [&Action::Drain]);
    let mut kills = State::new(true, false, Leftovers::Kill);
    kills.handle(Happening::ChildEnded(OK));
    let hurry = Action::Clear(Clear::Hurry);
    assert_eq!(said(&kills.handle(ctrl_c())), [&hurry]);
    assert_eq!(said(&kills.handle(ctrl_c())), [&Action::Drain]);
}

#[test]
fn a_wait_ends_with_the_time_limit() {
    let mut state = State::new(false, false, Leftovers::Wait);
    state.handle(Happening::ChildEnded(OK));
    let kill = [Action::Clear(Clear::Kill)];
    assert_eq!(state.handle(Happening::TimeIsUp), kill);
    let finish = state.handle(Happening::Cleared);
    let timed_out = (RunState::Finished, Outcome::TimedOut);
    assert_eq!(end_of(&finish), Some(timed_out));
}

#[test]
fn a_wait_can_be_stopped_at_the_terminal() {
    let stop = || signal(20, Reach::Child);
    let mut state = State::new(false, false, Leftovers::Wait);
    assert_eq!(said(&state.handle(stop())), [&Action::Asked; 0]);
    state.handle(Happening::ChildEnded(OK));
    assert_eq!(said(&state.handle(stop())), [&Action::Stop(20)]);
}

#[test]
fn what_a_killed_child_leaves_is_ended() {
    let killed = Exit {
        code: None,
        signal: Some(KILL),
    };
    let mut state = State::new(false, false, Leftovers::Report);
    state.handle(Happening::ChildKilled);
    let actions = state.handle(Happening::ChildEnded(killed));
    assert_eq!(said(&actions), [&Action::Clear(Clear::Kill)]);
}

#[test]
fn a_child_that_can_not_be_ended_is_left() {
    let mut state = State::new(true, false, Leftovers::Report);
    state.handle(signal(TERM, Reach::UsAlone));
    state.handle(Happening::ChildKilled);
    let actions = state.handle(Happening::Unkillable);
    assert_eq!(actions, [Action::Clear(Clear::Kill)]);
    assert_eq!(state.handle(Happening::Cleared), [Action::Drain]);
    let finish = state.handle(Happening::RelaysEnded);
    let cancelled = (RunState::Cancelled, Outcome::Cancelled);
    assert_eq!(end_of(&finish), Some(cancelled));
    let left = left_as(&state.handle(Happening::WatchersDone));
    assert_eq!(left.and_then(|exit| exit.signal), Some(KILL));
}

fn ctrl_c() -> Happening {
    signal(INT, Reach::Child)
}

fn order(deed: Deed) -> Happening {
    Happening::Ordered(Order {
        deed,
        finding: "stalled".to_owned(),
    })
}

fn failed(code: i32) -> Happening {
    Happening::ChildEnded(Exit {
        code: Some(code),
        signal: None,
    })
}

#[test]
fn a_finding_stops_the_job_unless_the_user_did() {
    let mut state = State::new(true, false, Leftovers::Report);
    let actions = state.handle(order(Deed::Stop));
    assert!(matches!(&actions[..], [Action::StopFor(_)]), "{actions:?}");
    assert!(state.handle(order(Deed::Stop)).is_empty(), "once");
    let ended = state.handle(failed(1));
    assert!(ended.contains(&Action::Clear(Clear::Kill)), "{ended:?}");
    let exit = Exit {
        code: Some(0),
        signal: None,
    };
    assert_eq!(state.end(exit).outcome, Outcome::Stopped);
    assert_eq!(state.shown(exit).code, Some(123));
    let mut state = State::new(true, false, Leftovers::Report);
    state.handle(ctrl_c());
    assert!(state.handle(order(Deed::Stop)).is_empty());
}

#[test]
fn an_attempt_is_cleared_away_before_the_next_begins() {
    let mut state = State::new(true, false, Leftovers::Report).with_restarts(1);
    let asks = state.handle(failed(1));
    assert!(matches!(asks[..], [_, Action::AskWhy(_)]), "{asks:?}");
    let clear = [Action::Clear(Clear::Kill)];
    assert_eq!(state.handle(Happening::Answered(true)), clear);
    assert_eq!(state.handle(Happening::Cleared), [Action::Rest]);
    assert_eq!(state.handle(Happening::Rested), [Action::StartAgain]);
    assert!(state.handle(Happening::StartedAgain(true)).is_empty());
    // There was one to be had.
    let ended = state.handle(failed(1));
    assert!(ended.contains(&Action::Drain), "{ended:?}");
}

#[test]
fn what_somebody_ended_is_not_started_again() {
    for (code, signal) in [(Some(130), None), (None, Some(15)), (Some(0), None)] {
        let mut state = State::new(true, false, Leftovers::Report).with_restarts(1);
        let ended = state.handle(Happening::ChildEnded(Exit { code, signal }));
        assert!(ended.contains(&Action::Drain), "{code:?} {signal:?}");
    }
    // It was to be started again, and then somebody wanted its end.
    let mut state = State::new(true, false, Leftovers::Report).with_restarts(1);
    state.handle(order(Deed::Restart));
    assert!(state.handle(ctrl_c()).contains(&Action::Asked));
    assert!(state.handle(failed(1)).contains(&Action::Drain));
}

#[test]
fn between_two_attempts_a_signal_or_the_limit_is_the_end() {
    let steps = [Happening::Answered(true), Happening::Cleared];
    for passed in 0..=steps.len() {
        let between = || {
            let mut state = State::new(true, false, Leftovers::Report).with_restarts(1);
            state.handle(failed(1));
            for step in &steps[..passed] {
                state.handle(step.clone());
            }
            state
        };
        let exit = Exit {
            code: Some(1),
            signal: None,
        };
        let mut state = between();
        assert!(state.handle(ctrl_c()).contains(&Action::Cancelling));
        assert_eq!(state.shown(exit).signal, Some(INT));
        assert_eq!(state.end(exit).outcome, Outcome::Cancelled);
        assert!(state.handle(Happening::Rested).is_empty());
        let mut state = between();
        assert!(!state.handle(Happening::TimeIsUp).is_empty());
        assert_eq!(state.shown(exit).code, Some(124));
    }
}
