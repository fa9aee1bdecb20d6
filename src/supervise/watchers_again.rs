//! What the watchers are told of a run that a finding ends, and of a command that is started
//! again.

use std::sync::atomic::Ordering;

use crate::model::{Event, Exit, ProgressState};

use super::super::desk::Entry;
use super::super::progress::Voice;
use super::super::state::{Deed, Order};
use super::Watchers;

impl Watchers {
    /// A finding ends the command.
    pub fn stopping_for(&self, order: Order) {
        let what = match order.deed {
            Deed::Restart => "restart",
            Deed::Stop | Deed::Signal(_) => "stop",
        };
        self.act(what, format!("because of {}", order.finding));
        if order.deed == Deed::Stop {
            self.desk.put(Entry::Stopping(order.finding));
        }
    }

    /// What the command ended of is to be said now.
    pub fn why_now(&self, exit: Exit) {
        self.desk.put(Entry::WhyNow(exit));
    }

    /// The command is about to be started again.
    pub fn starting_again(&self, restarted: Event) {
        // Where the last attempt stood says nothing of this one.
        for voice in [Voice::Said, Voice::Shown, Voice::Scalars] {
            self.progress.tell(voice, ProgressState::default());
        }
        self.log(restarted);
    }

    /// It runs again, as this process.
    pub fn started_again(&self, pid: u32) {
        self.log(Event::Started { pid });
        self.main.store(pid, Ordering::Relaxed);
    }
}
