//! What the scribe does about a command that is started again: it says what it ended of, and
//! keeps the record's list.

use crate::model::{Event, Exit, Logged, Outcome, RestartRecord};
use crate::sys::defect::caught;

use super::Scribe;

impl Scribe {
    /// An end of the command, or another start.
    pub(super) fn attempts(&mut self, logged: &Logged) {
        match &logged.event {
            Event::Exited { code, signal } => {
                let (code, signal) = (*code, *signal);
                self.ended = Some(Exit { code, signal });
            }
            Event::Restarted {
                why, code, signal, ..
            } => {
                (self.ended, self.is_asked) = (None, false);
                let (code, signal) = (*code, *signal);
                self.record.restarts.push(RestartRecord {
                    elapsed_s: logged.stamp.elapsed_s,
                    why: why.clone(),
                    exit: Exit { code, signal },
                });
            }
            Event::Started { pid } if self.record.pid != Some(*pid) => {
                self.record.pid = Some(*pid);
                self.export_record();
                self.write_run();
            }
            _ => {}
        }
    }

    /// Says once what the command ended of.
    pub(super) fn say_why(&mut self, exit: Exit) {
        if self.ended.take().is_none() {
            return;
        }
        let outcome = match exit.signal {
            Some(_) => Outcome::Killed,
            None => Outcome::Failed,
        };
        let judge = self.judge.as_ref();
        let verdict = judge.and_then(|judge| caught(|| judge.verdict(outcome, exit)).ok());
        self.alarm
            .ended_of(verdict.and_then(|verdict| verdict.cause));
    }
}
