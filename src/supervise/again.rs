//! The command is started again: what it ended of is asked, a pause passes, and it gets the
//! streams, the environment and the signal mask that it had.
//!
//! Owns what must be kept for that: our copies of the child's ends of the streams above all,
//! without which a relay would be at its end together with the first attempt.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::launch::child::Child;
use crate::launch::streams::Streams;
use crate::model::{ANY_FAILURE, Action, Event, Exit, Restart, duration_text};
use crate::supervise::orders::Answer;
use crate::supervise::prepare::Prepared;
use crate::supervise::ring::Ring;
use crate::supervise::state::{Deed, Happening, Order};
use crate::sys::signals::Mask;
use crate::sys::spawn::Unspawned;

use super::Run;

/// How often it is looked whether the last output was delivered,
const SETTLING: Duration = Duration::from_millis(5);
/// for so long: whoever reads the user's stream may be slow.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);
/// The sample after the end comes within an interval, which may be long: then what is known by
/// now must do,
const TELLS_WITHIN: Duration = Duration::from_secs(3);
/// and without any answer nothing is started again.
const ANSWERS_WITHIN: Duration = Duration::from_secs(8);

/// What is needed to start the command again.
pub(super) struct Again {
    argv: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    streams: Streams,
    mask: Mask,
    ring: Arc<Ring>,
    settings: Restart,
    /// Starts after the first.
    done: u32,
    /// Because of what the next one is.
    why: Option<String>,
    asked: Option<Asked>,
    /// The pause, and since when it lasts.
    pause: Option<(Instant, Duration)>,
}

/// What the last attempt ended of is asked.
struct Asked {
    exit: Exit,
    since: Instant,
    /// All that it printed is on its way to whoever reads it.
    is_read: bool,
    is_urgent: bool,
}

impl Again {
    /// Of a command that has been started so; None where it won't be again.
    pub(super) fn keep(
        prepared: &Prepared,
        mut streams: Streams,
        mask: Mask,
        ring: &Arc<Ring>,
    ) -> Option<Self> {
        let settings = &prepared.request.settings;
        let mut actions = settings.act.0.values().flatten();
        let by_act = actions.any(|action| *action == Action::Restart);
        let restart = settings.end.restart.clone();
        if restart.max == 0 || restart.on.is_empty() && !by_act {
            streams.child_started();
            return None;
        }
        Some(Self {
            argv: prepared.request.argv.clone(),
            env: prepared.environment(),
            streams,
            mask,
            ring: Arc::clone(ring),
            settings: restart,
            done: 0,
            why: None,
            asked: None,
            pause: None,
        })
    }

    /// So often.
    pub(super) fn most(&self) -> u32 {
        self.settings.max
    }

    /// After how long it has to be looked at.
    pub(super) fn due(&self) -> Option<Duration> {
        let asked = self.asked.as_ref().map(|asked| {
            let within = match (asked.is_read, asked.is_urgent) {
                (false, _) => return SETTLING,
                (true, false) => TELLS_WITHIN,
                (true, true) => ANSWERS_WITHIN,
            };
            within.saturating_sub(asked.since.elapsed())
        });
        let pause = self
            .pause
            .map(|(since, pause)| pause.saturating_sub(since.elapsed()));
        asked.into_iter().chain(pause).min()
    }
}

impl Run {
    /// The next end of the command comes of this finding.
    pub(super) fn restarts_for(&mut self, order: &Order) {
        if let (Deed::Restart, Some(again)) = (order.deed, &mut self.again) {
            again.why = Some(order.finding.clone());
        }
    }

    /// The command has ended: of what?
    pub(super) fn ask_why(&mut self, exit: Exit) {
        if let Some(again) = &mut self.again {
            again.asked = Some(Asked {
                exit,
                since: Instant::now(),
                is_read: false,
                is_urgent: false,
            });
        } else {
            self.happened.push_front(Happening::Answered(false));
        }
    }

    /// Output can't be delivered any more: the next attempt would be started for nobody, and
    /// die of it.
    pub(super) fn no_more_starts(&mut self) {
        self.again = None;
    }

    /// Does what is due.
    pub(super) fn look_again(&mut self) -> Option<Happening> {
        let again = self.again.as_mut()?;
        if again.pause.is_some_and(|(at, pause)| at.elapsed() >= pause) {
            again.pause = None;
            return Some(Happening::Rested);
        }
        let asked = again.asked.as_mut()?;
        let waited = asked.since.elapsed();
        if !asked.is_read && (self.relays.are_settled() || waited >= SETTLED_WITHIN) {
            asked.is_read = true;
            if self.relays.all_ended() {
                self.watchers.why_now(asked.exit);
            } else {
                again.ring.end_attempt();
            }
        }
        if asked.is_read && !asked.is_urgent && waited >= TELLS_WITHIN {
            asked.is_urgent = true;
            self.watchers.why_now(asked.exit);
        }
        let answer = self.orders.as_ref().and_then(|orders| orders.take_answer());
        let cause = match answer {
            Some(Answer(cause)) => cause,
            None if waited >= ANSWERS_WITHIN => None,
            None => return None,
        };
        again.asked = None;
        if again.why.is_none() && again.settings.is_on(cause.as_deref()) {
            again.why = Some(cause.unwrap_or_else(|| ANY_FAILURE.to_owned()));
        }
        Some(Happening::Answered(again.why.is_some()))
    }

    /// The pause before the next start.
    pub(super) fn rest(&mut self) {
        let Some(again) = &mut self.again else { return };
        let number = again.done + 1;
        let pause = again.settings.pause(number);
        again.pause = Some((Instant::now(), pause));
        let why = again.why.as_deref().unwrap_or_default();
        let (max, pause) = (again.settings.max, duration_text(pause));
        let result = format!("in {pause}, {number} of {max} times, because of {why}");
        self.watchers.act("restart", result);
    }

    /// Starts the command again.
    pub(super) fn start_again(&mut self) -> Happening {
        let last = self.child.ended().unwrap_or_default();
        let Some(again) = &mut self.again else {
            return Happening::StartedAgain(false);
        };
        self.relays.copy_sizes();
        again.done += 1;
        // Said before: a sample may see the new process at once, and it is nobody's orphan.
        self.watchers.starting_again(Event::Restarted {
            number: again.done,
            of: again.settings.max,
            why: again.why.take().unwrap_or_default(),
            code: last.code,
            signal: last.signal,
        });
        match Child::start(&again.argv, &again.env, &again.streams, again.mask) {
            Ok((child, early)) => {
                self.watchers.started_again(child.pid());
                self.stopper.started_again(child.pid());
                (self.child, self.early, self.ended) = (child, early, None);
                Happening::StartedAgain(true)
            }
            Err(error) => {
                let (Unspawned::Exec(why) | Unspawned::Own(why)) = error;
                let text = format!("the command can't be started again: {why}");
                self.watchers.problem(text);
                Happening::StartedAgain(false)
            }
        }
    }
}
