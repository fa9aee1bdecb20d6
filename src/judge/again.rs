//! A command that is started again is judged anew: what an attempt printed, reached and held says
//! nothing of the next.
//!
//! Owns that each attempt's judge counts from the attempt's own start, while what it says is in
//! seconds of the run.

use crate::model::{Event, Logged, Severity};

use super::finding::{Claim, Evidence, Finding};
use super::{Input, Judge};

/// The finding that says so, until the new attempt makes progress.
pub const RESTARTED: &str = "restarted";

impl Judge {
    /// What was found of the attempt before holds no more; the sum of what time was spent on
    /// goes on.
    pub(super) fn begin_again(&mut self, logged: &Logged) -> Vec<Finding> {
        self.book.clear_all();
        let mut said = self.said();
        let mut facts = self.facts.clone();
        facts.pid = None;
        let settings = self.book.all_settings().clone();
        let mut fresh = Self::new(settings, self.rules.all(), facts);
        fresh.shares = self.shares.of_another_attempt();
        fresh.origin_s = logged.stamp.elapsed_s;
        fresh.processes.again = true;
        *self = fresh;
        self.tell_restart(&logged.event);
        said.extend(self.said());
        said
    }

    /// An input, as seen from the attempt's start.
    pub(super) fn later(&mut self, input: Input<'_>) {
        match input {
            Input::Sample(sample) => {
                let mut sample = sample.clone();
                sample.stamp.elapsed_s -= self.origin_s;
                self.take_in(Input::Sample(&sample));
            }
            Input::Event(logged) => {
                let mut logged = logged.clone();
                logged.stamp.elapsed_s -= self.origin_s;
                self.take_in(Input::Event(&logged));
            }
        }
        // It goes as it went before: no more than that is to be said of the restart.
        if self.signals.moved_s().is_some() {
            self.book.clear(RESTARTED);
        }
    }

    /// What was said since the last call, in seconds of the run.
    pub(super) fn said(&mut self) -> Vec<Finding> {
        let mut said = self.book.take();
        for finding in &mut said {
            finding.since_s += self.origin_s;
        }
        said
    }

    fn tell_restart(&mut self, event: &Event) {
        let Event::Restarted {
            number, of, why, ..
        } = event
        else {
            return;
        };
        let evidence = Evidence::default()
            .num("number", f64::from(*number))
            .num("of", f64::from(*of))
            .text("why", why.clone());
        let advice = format!(
            "The command was started again ({number} of {of} times) because of {why}: see that it goes on from its last checkpoint, and mend the cause."
        );
        let claim = Claim::new(RESTARTED, Severity::Warning, 0.0);
        self.book.raise(claim.evidence(evidence).advice(advice));
    }
}
