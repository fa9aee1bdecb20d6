//! How the child is brought to its end, where somebody wants that: the time limit, and KILL
//! after a grace. Then what is left of the job (`clearing`).
//!
//! Owns the run's own time, which stands still while we are stopped together with the job.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::launch::child::Child;
use crate::launch::relay::Relays;
use crate::launch::signals;
use crate::launch::stop::{Ladder, Rung};
use crate::model::{EndSettings, ProcessId};
use crate::observe::ProcFs;
use crate::report::Leftover;

use super::clearing::Clearing;
use super::job_process::continue_if_stopped;
use super::state::{Clear, Happening};
use super::watchers::Watchers;

/// The stopper of one run.
pub struct Stopper {
    settings: EndSettings,
    began: Instant,
    /// For how long we were stopped with the job.
    stopped: Duration,
    main: ProcessId,
    ladder: Ladder,
    /// What set the ladder up, for the record; None: nothing has.
    cause: Option<&'static str>,
    time_is_up: bool,
    given_up: bool,
    /// Something was ordered that can't wait for its time.
    is_due: bool,
    clearing: Option<Clearing>,
}

/// Its parent are we: until it is reaped nobody else has its PID.
fn identity(child: u32) -> ProcessId {
    let known = ProcFs::default().identity(child);
    known.unwrap_or(ProcessId {
        pid: child,
        start: 0,
    })
}

impl Stopper {
    /// For a child that has just been started.
    pub fn new(settings: EndSettings, child: u32) -> Self {
        Self {
            began: Instant::now(),
            stopped: Duration::ZERO,
            main: identity(child),
            ladder: Ladder::new(settings.kill_after),
            settings,
            cause: None,
            time_is_up: false,
            given_up: false,
            is_due: false,
            clearing: None,
        }
    }

    /// The command was started again. The limit is the run's, and goes on.
    pub fn started_again(&mut self, child: u32) {
        self.main = identity(child);
        self.ladder = Ladder::new(self.settings.kill_after);
        self.cause = None;
        self.given_up = false;
        self.clearing = None;
    }

    /// We were stopped together with the job: nobody's time ran meanwhile.
    pub fn was_stopped(&mut self, span: Duration) {
        self.stopped += span;
    }

    /// Somebody has asked the child to end.
    pub fn asked(&mut self) {
        self.ladder.asked(self.main, self.now());
        self.cause.get_or_insert("kill-after");
    }

    /// The child's time is up.
    pub fn time_out(&mut self) {
        self.ladder
            .insist(self.main, self.settings.grace_of_limit());
        self.cause = Some("time-limit");
        self.is_due = true;
    }

    /// A finding ends the child, as its time would.
    pub fn stop(&mut self) {
        self.ladder
            .insist(self.main, self.settings.grace_of_limit());
        self.cause = Some("stop");
        self.is_due = true;
    }

    /// The child has ended: sees to what is left of the job.
    pub fn clear(&mut self, how: Clear) {
        let now = self.now();
        let grace = self.settings.grace_of_leftovers();
        // Whoever wants the end doesn't wait for those who might end by themselves.
        let in_hurry = self.cause.is_some() || self.time_is_up;
        let main = self.main;
        let clearing = self
            .clearing
            .get_or_insert_with(|| Clearing::new(main, grace, now));
        clearing.go_on(how, in_hurry, now);
        self.is_due = true;
    }

    /// Whoever is left now stays.
    pub fn enough(&mut self) {
        if let Some(clearing) = &mut self.clearing {
            clearing.stop();
        }
    }

    /// What became of processes that were waited for or signalled, and are to be named.
    pub fn handled(&self) -> Vec<Leftover> {
        self.clearing
            .as_ref()
            .map_or_else(Vec::new, Clearing::handled)
    }

    /// After how long it has to look at the latest; None: not by time.
    pub fn due(&self) -> Option<Duration> {
        if self.is_due {
            return Some(Duration::ZERO);
        }
        let limit = self.settings.time_limit.filter(|_| !self.time_is_up);
        let ladder = self.ladder.next().filter(|_| !self.given_up);
        let clearing = self.clearing.as_ref().and_then(Clearing::next);
        let next = [limit, ladder, clearing].into_iter().flatten().min()?;
        Some(next.saturating_sub(self.now()))
    }

    /// Does what is due. `changed`: a child of ours or a relay has changed.
    pub fn look(
        &mut self,
        child: &Child,
        relays: &Relays,
        watchers: &Watchers,
        changed: bool,
    ) -> Vec<Happening> {
        self.is_due = false;
        let now = self.now();
        let mut happened = Vec::new();
        let limit = self.settings.time_limit.filter(|_| !self.time_is_up);
        if limit.is_some_and(|limit| now >= limit) {
            self.time_is_up = true;
            happened.push(Happening::TimeIsUp);
        }
        if let Some(cause) = self.cause.filter(|_| !self.given_up) {
            self.climb(cause, child, watchers, now, &mut happened);
        }
        if let Some(clearing) = &mut self.clearing
            && clearing.look(relays, watchers, now, changed)
        {
            happened.push(Happening::Cleared);
        }
        happened
    }

    fn climb(
        &mut self,
        cause: &str,
        child: &Child,
        watchers: &Watchers,
        now: Duration,
        happened: &mut Vec<Happening>,
    ) {
        let lives = (!child.has_ended()).then_some(self.main);
        let mut why = None;
        for order in self.ladder.look(&BTreeSet::from_iter(lives), now) {
            let signal = signals::of_rung(order.rung);
            let name = signals::name(signal);
            let sent = child.order(signal);
            let mut result = format!("{name} to PID {}", self.main.pid);
            if let Err(error) = &sent {
                self.ladder.refused(order.who);
                result = format!("{result}: {error}");
                why = Some(error.to_string());
            } else if order.rung == Rung::Kill {
                happened.push(Happening::ChildKilled);
            } else if continue_if_stopped(self.main) {
                result.push_str(", and CONT, because it was stopped");
            }
            watchers.act(cause, result);
        }
        if lives.is_some() && self.ladder.is_over() {
            self.given_up = true;
            let why = why.unwrap_or_else(|| "it waits in the kernel, KILL or not".to_owned());
            let pid = self.main.pid;
            watchers.problem(format!("the command (PID {pid}) can't be ended: {why}"));
            happened.push(Happening::Unkillable);
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.stopped)
    }
}
